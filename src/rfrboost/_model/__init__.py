"""What a fitted model is made of: features, losses, layers, the network and its derivatives."""

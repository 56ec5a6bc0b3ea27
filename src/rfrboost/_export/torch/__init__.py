"""A fitted model as a PyTorch module, and its training there."""

"""Speed and memory of fits and predictions, compared with the least that the hardware allows."""

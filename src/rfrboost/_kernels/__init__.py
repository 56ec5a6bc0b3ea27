"""Compiled sums over neurons, bumps and trees, if numba is installed."""

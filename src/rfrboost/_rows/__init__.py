"""Training rows in chunks, in memory or on disk: sums over them, and draws from them."""

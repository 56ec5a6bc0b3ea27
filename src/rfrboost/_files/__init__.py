"""Model files: what may be in one, how it is written, and how it is read without trusting it."""

"""Model files: what they may hold, how they are written, and how untrusted ones are read safely."""

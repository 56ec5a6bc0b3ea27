"""Model files: what they may hold, how they are written, and how they are read without trust."""

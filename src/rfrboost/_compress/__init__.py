"""Smaller models in place of ensembles: what to keep, how to weight it, and what it costs."""

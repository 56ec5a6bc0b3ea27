"""The commands that fit nothing: they read stored results or the published runs."""

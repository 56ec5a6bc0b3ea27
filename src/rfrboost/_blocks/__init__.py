"""Rows that arrive block by block, because they are more than memory holds."""

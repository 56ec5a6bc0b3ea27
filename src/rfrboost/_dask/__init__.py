"""Fits and predictions on the workers of a Dask cluster."""

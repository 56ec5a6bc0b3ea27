"""What parameters of estimators mean outside of a fit: legal values, scorers, progress."""

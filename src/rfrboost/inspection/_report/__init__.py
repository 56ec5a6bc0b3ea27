"""The report about a model: one page that answers what one may ask about it."""

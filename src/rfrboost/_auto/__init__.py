"""The automatic model: an ensemble of members, stopped and weighted by held-out rows."""

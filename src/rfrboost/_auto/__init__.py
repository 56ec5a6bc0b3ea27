"""The automatic model: members fitted on bags of rows, stopped, stacked and calibrated by held-out rows."""

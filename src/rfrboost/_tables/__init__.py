"""From data frames to arrays of numbers: columns read, encoded and scaled."""

"""From tables to arrays of numbers: columns are read, encoded and scaled."""

"""Linear algebra, precision, threads and sizes: functions on arrays that serve every method."""

"""Linear algebra, precision, threads and sizes: functions on arrays, whatever they mean."""

"""Linear algebra, precision and threads: functions on arrays that know nothing of the method."""

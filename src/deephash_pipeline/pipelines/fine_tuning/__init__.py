"""Stage `fine_tuning`: see its README."""

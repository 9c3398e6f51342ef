"""Stage `baseline_hashing`: see its README."""

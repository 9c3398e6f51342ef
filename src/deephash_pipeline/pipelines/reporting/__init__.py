"""Stage `reporting`: see its README."""

"""Stage `evaluation`: see its README."""

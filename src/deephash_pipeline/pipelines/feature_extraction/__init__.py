"""Stage `feature_extraction`: see its README."""

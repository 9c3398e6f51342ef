"""Stage `descriptor_extraction`: see its README."""

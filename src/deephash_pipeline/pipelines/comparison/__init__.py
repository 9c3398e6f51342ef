"""Pipeline `comparison`: see its README."""

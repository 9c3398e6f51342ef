"""Pipeline `tuning`: see its README."""

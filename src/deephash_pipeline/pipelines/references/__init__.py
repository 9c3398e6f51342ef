"""Pipeline `references`: see its README."""

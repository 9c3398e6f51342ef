"""Pipeline `tuning_results`: see its README."""

"""Pipeline `paper_tables`: see its README."""

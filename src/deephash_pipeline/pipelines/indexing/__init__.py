"""Pipeline `indexing`: see its README."""

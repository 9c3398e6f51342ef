"""Pipeline `measured_cells`: see its README."""

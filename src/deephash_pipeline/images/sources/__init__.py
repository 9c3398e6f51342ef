"""Where raw images come from: folders, tables, archives and data sets, read by one function, `registry.read_source`."""

"""Where raw images come from: folders, tables, archives and data sets, chosen in `registry`."""

"""Where raw images come from: folders, tables, archives and data sets, behind one interface."""

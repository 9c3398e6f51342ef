"""Image files into arrays: in parallel, resumable, broken files listed."""

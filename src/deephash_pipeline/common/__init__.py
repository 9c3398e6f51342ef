"""Used by every room: errors, parameters, devices, randomness, progress, files."""

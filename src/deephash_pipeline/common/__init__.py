"""What every room uses: errors, parameters, devices, randomness, progress, files."""

"""Inner loops of hash functions, compiled by numba."""

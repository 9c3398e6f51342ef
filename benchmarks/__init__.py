"""Benchmarks: what the project's own kernels take beside other people's, measured in one run (`make bench`)."""

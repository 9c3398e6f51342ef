"""The paper's exponentiated loss: one formula, computed for the CPU, for CUDA devices, and in plain PyTorch."""

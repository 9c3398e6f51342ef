"""Batches of outputs and labels, drawn at random."""

import torch


def random_batch(seed, batch, code_length, classes=3, scale=1.0):
    """u (batch, code_length), float64, and class labels."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, code_length, generator=generator, dtype=torch.float64) * scale
    return u, torch.randint(classes, (batch,), generator=generator)

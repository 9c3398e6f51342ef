"""Dropout with masks that can be drawn again: counter-based, functions of (seed, layer, sample), not of a state.

A batch in chunks or divided among processes is masked like the whole, a resumed training like one never interrupted.
"""

import torch
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed, uniform_numbers

# They draw from PyTorch's generator, whose state depends on what was drawn before.
DEPENDING_ON_ORDER = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)


class CounterBasedDropout(nn.Module):
    """Dropout (inverted, like `torch.nn.Dropout`) that masks a sample by a seed and the sample's number.

    Args:
        probability: probability of a unit to be dropped.
        layer: number of the layer, so that two layers drop different units.

    Example:
        >>> dropout, z = CounterBasedDropout(0.5, layer=0), torch.ones(6, 10)
        >>> dropout.set_counter(seed=1, first=0)
        >>> whole = dropout(z)
        >>> dropout.set_counter(seed=1, first=4)
        >>> torch.equal(dropout(z[4:]), whole[4:])
        True
    """

    seed: Tensor
    first: Tensor

    def __init__(self, probability: float, layer: int) -> None:
        super().__init__()
        self.probability = probability
        self.layer = layer
        # Tensors, because torch.compile would compile anew for every value of a number.
        self.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)
        self.register_buffer("first", torch.zeros((), dtype=torch.int64), persistent=False)

    def set_counter(self, seed: int, first: int) -> None:
        """Say where the next batch belongs.

        Args:
            seed: seed of the step.
            first: number of the batch's first sample in the whole batch.
        """
        self.seed.fill_(derive_seed(seed, "dropout", self.layer))
        self.first.fill_(first)

    def forward(self, activations: Tensor) -> Tensor:
        """Mask activations (batch, ...) in training mode; return them as they are in evaluation mode."""
        if not self.training or self.probability == 0:
            return activations
        if self.probability == 1:
            return activations * 0
        samples = torch.arange(len(activations), device=activations.device) + self.first
        numbers = uniform_numbers(self.seed, samples, activations[0].numel())
        kept = (numbers >= self.probability).view(activations.shape)
        return activations * kept / (1 - self.probability)


def replace_dropout(module: nn.Module) -> list[CounterBasedDropout]:
    """Replace every `torch.nn.Dropout` inside a module, in place.

    Returns:
        All counter-based dropout layers of the module, in the order of definition.

    Raises:
        InputError: a layer that draws from PyTorch's generator and cannot be replaced.

    Example:
        >>> network = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        >>> [layer.__class__.__name__ for layer in replace_dropout(network)]
        ['CounterBasedDropout']
    """
    device = next((parameter.device for parameter in module.parameters()), None)
    for parent in list(module.modules()):
        # A layer that is there twice is replaced twice.
        below = list(parent.named_modules(remove_duplicate=False))
        for name, child in ((name, child) for name, child in below if name and "." not in name):
            if isinstance(child, DEPENDING_ON_ORDER):
                raise InputError(
                    f"{type(child).__name__} draws numbers that depend on what was drawn before: use Dropout instead"
                )
            if isinstance(child, nn.Dropout):
                replacement = CounterBasedDropout(child.p, layer=0).train(child.training)
                setattr(parent, name, replacement.to(device))
    layers = [layer for layer in module.modules() if isinstance(layer, CounterBasedDropout)]
    for number, layer in enumerate(layers):
        layer.layer = number
    return layers

"""Dropout whose masks can be drawn again: by address instead of by a generator's state."""

import torch
from torch import Tensor, nn

from deephash_pipeline.counter_random import uniform_numbers
from deephash_pipeline.seeds import derive_seed


class AddressedDropout(nn.Module):
    """Dropout (inverted, like `torch.nn.Dropout`) that masks a sample by the seed and the sample's number.

    Args:
        probability: of a unit to be dropped.
        layer: number of the layer, so that two layers drop different units.
    """

    def __init__(self, probability: float, layer: int) -> None:
        super().__init__()
        self.probability = probability
        self.layer = layer
        self.seed = 0
        self.first = 0

    def forward(self, activations: Tensor) -> Tensor:
        """Mask activations (batch, ...) in training mode; return them as they are in evaluation mode."""
        if not self.training or self.probability == 0:
            return activations
        samples = torch.arange(self.first, self.first + len(activations), device=activations.device)
        units = activations[0].numel()
        numbers = uniform_numbers(derive_seed(self.seed, "dropout", self.layer), samples, units)
        kept = (numbers >= self.probability).view(activations.shape)
        return activations * kept / (1 - self.probability) if self.probability < 1 else activations * 0


def address_dropout(module: nn.Module) -> list[AddressedDropout]:
    """Replace every `torch.nn.Dropout` inside a module, in place.

    Returns:
        All addressed dropout layers of the module, in the order of definition.
    """
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Dropout):
                setattr(parent, name, AddressedDropout(child.p, layer=0))
    layers = [layer for layer in module.modules() if isinstance(layer, AddressedDropout)]
    for number, layer in enumerate(layers):
        layer.layer = number
    return layers

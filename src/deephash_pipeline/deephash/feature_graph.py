"""From pixels to features as one graph that ONNX Runtime computes."""

import copy
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import torch
from torch import Tensor, nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashers.onnx_hasher import IMAGES
from deephash_pipeline.images.augmentation import centre_crop
from deephash_pipeline.networks import Trunk

OPSET = 18
EXAMPLES = 2


class FeatureGraph(nn.Module):
    """From uint8 images of shape (n, channels, height, width) to z: crop, normalisation and trunk.

    Args:
        trunk: trunk whose layers it copies.
        statistics: ``mean`` and ``standard_deviation`` of each channel, in units of [0, 1].

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> hasher = ImageHasher.pretrained("digits-48")
        >>> graph = FeatureGraph(hasher.trunk, hasher.description.statistics)
        >>> graph(torch.zeros(2, 1, 28, 28, dtype=torch.uint8)).shape
        torch.Size([2, 500])
    """

    def __init__(self, trunk: Trunk, statistics: Mapping[str, list[float]]) -> None:
        super().__init__()
        self.trunk: Trunk = copy.deepcopy(trunk).cpu().eval()
        self.mean = torch.tensor(statistics["mean"], dtype=torch.float32)[:, None, None]
        self.deviation = torch.tensor(statistics["standard_deviation"], dtype=torch.float32)[:, None, None]

    def forward(self, images: Tensor) -> Tensor:
        """Compute z, float32 of shape (n, z_dimension)."""
        pixels = centre_crop(images, self.trunk.image_size).float()
        z: Tensor = self.trunk((pixels / 255 - self.mean) / self.deviation)
        return z


def trace(graph: nn.Module, image_shape: tuple[int, ...], file: Path | IO[bytes], output: str) -> None:
    """Write a graph of uint8 images of a shape (channels, height, width), for any number of them, as ONNX.

    Raises:
        InputError: a layer has no form there.
    """
    examples = torch.zeros((EXAMPLES, *image_shape), dtype=torch.uint8)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # That shapes are constants is meant; and PyTorch's other exporter takes ten to fifty times as long.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                graph,
                (examples,),
                str(file) if isinstance(file, Path) else file,  # type: ignore[arg-type]
                dynamo=False,
                opset_version=OPSET,
                input_names=[IMAGES],
                output_names=[output],
                dynamic_axes={IMAGES: {0: "n"}, output: {0: "n"}},
            )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"this network has no form in ONNX ({reason[:200]}): choose another `network`") from error

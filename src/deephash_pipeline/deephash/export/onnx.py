"""A hasher as one ONNX file: uint8 images in, packed codes out, for any number of images."""

import copy
import json
import tempfile
import warnings
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.deephash.export.encoders import outputs
from deephash_pipeline.hashers.onnx_hasher import CODES, FORMAT, IMAGES, METADATA, NO_DIGEST, digest_of_model
from deephash_pipeline.images.crops import centre_crop
from deephash_pipeline.networks import LocalResponseNormalisation, Trunk
from deephash_pipeline.networks.normalisation import BETA
from deephash_pipeline.provenance import content_digest

Module = TypeVar("Module", bound=nn.Module)

OPSET = 18
EXAMPLES = 2
BITS_PER_BYTE = 8


def export_onnx(hasher: ImageHasher, path: str | Path) -> None:
    """Write a hasher as an ONNX model, whole or not at all.

    The graph has what lies between pixels and code: the crop to the network's size, normalisation, grey repeated where
    the network takes colour, trunk, encoder, packing. Decoding files, turning them grey and resizing them stay outside:
    Pillow's filters, and with them the codes that a run has stored, cannot be had from ONNX's operators bit for bit.

    Args:
        hasher: a fitted one.
        path: of the file.

    Raises:
        InputError: the package onnx is not installed, the hasher has a part without a form in ONNX, or the file cannot
            be written.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(ImageHasher.pretrained("digits-48"), f"{folder}/digits.onnx")
        ...     [path.name for path in Path(folder).iterdir()]
        ['digits.onnx']
    """
    onnx = required("onnx", "onnx")
    path = Path(path)
    content = {
        "format": FORMAT,
        "description": hasher.description.model_dump(mode="json"),
        "made_from": _digest(hasher),
        "digest": NO_DIGEST,
    }
    try:
        with replacing(path) as beside:
            _trace(HasherGraph(hasher), hasher.description.image_shape, beside)
            model = onnx.load(beside)
            onnx.helper.set_model_props(model, {METADATA: json.dumps(content, sort_keys=True)})
            onnx.checker.check_model(model)
            model_bytes = model.SerializeToString()
            beside.write_bytes(model_bytes.replace(NO_DIGEST.encode(), digest_of_model(model_bytes).encode()))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


class HasherGraph(nn.Module):
    """From uint8 images of shape (n, *image_shape) to packed codes, as one module.

    Args:
        hasher: whose parts it copies.

    Example:
        >>> graph = HasherGraph(ImageHasher.pretrained("digits-48"))
        >>> graph(torch.zeros(2, 1, 28, 28, dtype=torch.uint8)).shape
        torch.Size([2, 6])
    """

    def __init__(self, hasher: ImageHasher) -> None:
        super().__init__()
        self.trunk: Trunk = _with_plain_normalisation(copy.deepcopy(hasher.trunk).cpu().eval())
        self.encoder = hasher.encoder
        statistics = hasher.description.statistics
        self.mean, self.deviation = (
            torch.tensor(statistics[name], dtype=torch.float32)[:, None, None]
            for name in ("mean", "standard_deviation")
        )

    def outputs(self, images: Tensor) -> Tensor:
        """What the codes are the signs of, float64 of shape (n, code_length)."""
        pixels = centre_crop(images, self.trunk.image_size).float()
        z: Tensor = self.trunk((pixels / 255 - self.mean) / self.deviation)
        return outputs(self.encoder, z.double())

    def forward(self, images: Tensor) -> Tensor:
        """Packed codes, uint8 of shape (n, ceil(code_length / 8))."""
        bits = (self.outputs(images) >= 0).float()
        bits = functional.pad(bits, (0, -self.encoder.code_length % BITS_PER_BYTE))
        places = torch.tensor([float(1 << place) for place in reversed(range(BITS_PER_BYTE))])
        # A product of matrices would refuse no image at all in ONNX Runtime.
        return (bits.reshape(-1, bits.shape[1] // BITS_PER_BYTE, BITS_PER_BYTE) * places).sum(2).to(torch.uint8)


class PlainNormalisation(nn.Module):
    """`LocalResponseNormalisation` of PyTorch's pooling, which has a form in ONNX.

    Args:
        layer: whose window and weight it takes.

    Example:
        >>> layer = LocalResponseNormalisation(size=3, alpha=5e-5, within_channel=True)
        >>> responses = torch.randn(2, 8, 6, 6)
        >>> torch.allclose(PlainNormalisation(layer)(responses), layer(responses))
        True
    """

    def __init__(self, layer: LocalResponseNormalisation) -> None:
        super().__init__()
        self.size, self.alpha = layer.size, layer.alpha
        self.within_channel = len(layer.dimensions) > 1

    def forward(self, responses: Tensor) -> Tensor:
        """Normalise responses of shape (batch, channels, height, width)."""
        if not self.within_channel:
            return functional.local_response_norm(responses, self.size, self.alpha, BETA)
        mean = functional.avg_pool2d(responses * responses, self.size, stride=1, padding=self.size // 2)
        return responses / (1 + self.alpha * mean) ** BETA


def _with_plain_normalisation(module: Module) -> Module:
    for name, child in module.named_children():
        if isinstance(child, LocalResponseNormalisation):
            setattr(module, name, PlainNormalisation(child))
        else:
            _with_plain_normalisation(child)
    return module


def _trace(graph: HasherGraph, image_shape: tuple[int, ...], path: Path) -> None:
    examples = torch.zeros((EXAMPLES, *image_shape), dtype=torch.uint8)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # That shapes are constants is meant; and PyTorch's other exporter takes ten to fifty times as long.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                graph,
                (examples,),
                str(path),
                dynamo=False,
                opset_version=OPSET,
                input_names=[IMAGES],
                output_names=[CODES],
                dynamic_axes={IMAGES: {0: "n"}, CODES: {0: "n"}},
            )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"this network has no form in ONNX ({reason[:200]}): choose another `network`") from error


def _digest(hasher: ImageHasher) -> str:
    with tempfile.TemporaryDirectory() as folder:
        hasher.save(Path(folder) / "hasher.safetensors")
        return content_digest(Path(folder) / "hasher.safetensors")

"""A hasher as one ONNX file: uint8 images in, packed codes and features out, for any number of images."""

import json
from functools import singledispatch
from pathlib import Path
from typing import Any

import torch
import xxhash
from torch import Tensor, nn
from torch.nn import functional

from deephash_pipeline.common.extras import required
from deephash_pipeline.common.outputs import require_replaceable
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.deephash.features import FeatureGraph, trace
from deephash_pipeline.hashers.files import HASHER_KEY, is_onnx_hasher
from deephash_pipeline.hashers.onnx_hasher import CODES, FEATURES, NO_DIGEST, ONNX_FORMAT, digest_of_model
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.hashing.agh import AGH
from deephash_pipeline.hashing.anchors import distances_to_anchors
from deephash_pipeline.hashing.encoder import doubles
from deephash_pipeline.hashing.fast_hash.fast_hash import FastHash
from deephash_pipeline.retrieval.codes import BITS_PER_BYTE


@singledispatch
def outputs(encoder: Encoder, z: Tensor) -> Any:
    """What a code is the signs of: bit k of a row is 1 if and only if output k is at least 0.

    Args:
        encoder: fitted encoder with its arrays.
        z: features, float64 of shape (n, D).

    Returns:
        float64 of shape (n, code_length).

    Example:
        >>> from deephash_pipeline.hashing import LinearEncoder
        >>> encoder = LinearEncoder.from_arrays(1, {"projection": [[1.0], [1.0]], "threshold": [0.5]})
        >>> outputs(encoder, torch.tensor([[1.0, 0.0]], dtype=torch.float64)).tolist()
        [[0.5]]
    """
    return encoder._outputs(z, torch)


@outputs.register
def _(encoder: AGH, z: Tensor) -> Any:
    distances = distances_to_anchors(z, encoder.anchors_, torch)
    near, chosen = distances.topk(len(encoder.bandwidth_), largest=False)
    kernels = torch.exp(-(near - near[:, :1]) / float(encoder.bandwidth_[-1] ** 2 or 1.0))
    places = (chosen[:, :, None] == torch.arange(len(encoder.anchors_))).double()
    weights = (kernels[:, :, None] * places).sum(1) / kernels.sum(1, keepdim=True)
    projection, positive, negative = doubles(torch, encoder.projection_, encoder.positive_, encoder.negative_)
    functions = weights @ projection
    seconds = functions[:, : len(positive)]
    split = torch.where(seconds >= 0, seconds - positive, negative - seconds)
    return torch.cat([functions, split], dim=1)[:, : encoder.code_length]


@outputs.register
def _(encoder: FastHash, z: Tensor) -> Any:
    bits, trees, nodes = encoder.feature_.shape
    feature, (value,) = torch.from_numpy(encoder.feature_).long().flatten(), doubles(torch, encoder.value_.ravel())
    # Of every row at once, one level of all trees after the other.
    root = nodes * torch.arange(bits * trees)
    node = torch.zeros_like(z[:, :1], dtype=torch.long) * root
    for _ in range((nodes + 1).bit_length() - 2):
        looked_at = z.float().double().gather(1, feature[root + node])
        node = 2 * node + 1 + (looked_at > value[root + node])
    return value[root + node].reshape(-1, bits, trees).sum(2)


def export_onnx(hasher: ImageHasher, path: str | Path) -> None:
    """Write a hasher as an ONNX model, whole or not at all.

    The graph has what lies between pixels and code: the crop to the network's size, normalisation, grey repeated where
    the network takes colour, trunk, encoder, packing. Decoding files, turning them grey and resizing them stay outside:
    Pillow's filters, and with them the codes that a run has stored, cannot be had from ONNX's operators bit for bit.

    Args:
        hasher: a fitted one.
        path: the file.

    Raises:
        InputError: the package onnx is not installed, the hasher has a part without a form in ONNX, or the file cannot
            be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(ImageHasher.pretrained("digits-48"), f"{folder}/digits.onnx")
        ...     [path.name for path in Path(folder).iterdir()]
        ['digits.onnx']
    """
    onnx = required("onnx", "onnx")
    path = Path(path)
    require_replaceable(path, is_onnx_hasher)
    content = {
        "format": ONNX_FORMAT,
        "description": hasher.description.model_dump(mode="json"),
        "made_from": xxhash.xxh3_128_hexdigest(hasher.content()),
        "digest": NO_DIGEST,
    }
    try:
        with replacing(path) as beside:
            trace(HasherGraph(hasher), hasher.description.image_shape, beside, CODES, FEATURES)
            model = onnx.load(beside)
            onnx.helper.set_model_props(model, {HASHER_KEY: json.dumps(content, sort_keys=True)})
            onnx.checker.check_model(model)
            model_bytes = model.SerializeToString()
            beside.write_bytes(model_bytes.replace(NO_DIGEST.encode(), digest_of_model(model_bytes).encode()))
    except OSError as error:
        raise cannot_write(path, error) from error


class HasherGraph(nn.Module):
    """From uint8 images of shape (n, *image_shape) to packed codes and features, as one module.

    Args:
        hasher: hasher whose parts it copies.

    Example:
        >>> graph = HasherGraph(ImageHasher.pretrained("digits-48"))
        >>> codes, features = graph(torch.zeros(2, 1, 28, 28, dtype=torch.uint8))
        >>> codes.shape, features.shape
        (torch.Size([2, 6]), torch.Size([2, 500]))
    """

    def __init__(self, hasher: ImageHasher) -> None:
        super().__init__()
        self.features = FeatureGraph(hasher.trunk, hasher.description.statistics)
        self.encoder = hasher.encoder

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Packed codes, uint8 of shape (n, ceil(code_length / 8)), and features, float32 of shape (n, z_dimension)."""
        z = self.features(images)
        bits = (outputs(self.encoder, z.double()) >= 0).float()
        bits = functional.pad(bits, (0, -self.encoder.code_length % BITS_PER_BYTE))
        places = torch.tensor([float(1 << place) for place in reversed(range(BITS_PER_BYTE))])
        # A product of matrices would refuse no image at all in ONNX Runtime.
        packed = (bits.reshape(-1, bits.shape[1] // BITS_PER_BYTE, BITS_PER_BYTE) * places).sum(2).to(torch.uint8)
        return packed, z

"""An image hasher that ONNX Runtime computes, in an environment without PyTorch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.hashers.base import BaseHasher, EncodedPixels, HasherDescription
from deephash_pipeline.hashers.files import HASHER_KEY
from deephash_pipeline.provenance import content_digest

ONNX_FORMAT = 1
IMAGES, CODES, FEATURES = "images", "codes", "features"
NUMBERS_AT_A_TIME = 2**20
"""Of pixels: more leave the caches of a processor."""
ERRORS_ONLY = 3
NO_DIGEST = 32 * "-"
"""What stands in a file for its digest while that is computed."""
MAKE_IT = "make it by `deephash-pipeline export-onnx HASHER -o FILE`"


class OnnxHasher(BaseHasher):
    """The file that `deephash_pipeline.deephash.export.export_onnx` writes: a model from pixels to codes and features.

    Its codes are those of the `ImageHasher` that it was made from, except for bits whose output lies within the
    rounding of single precision of 0. Files are decoded, turned grey and resized before the model, by the same code as
    those of an `ImageHasher`.

    Args:
        session: session of ONNX Runtime.
        description: description that is stored in the file.
        made_from: digest of the hasher's safetensors file.

    Attributes:
        file: the safetensors file, once `require_made_from` has compared it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from deephash_pipeline import ImageHasher
        >>> from deephash_pipeline.deephash.export import export_onnx
        >>> with TemporaryDirectory() as folder:
        ...     export_onnx(ImageHasher.pretrained("digits-48"), f"{folder}/digits.onnx")
        ...     hasher = OnnxHasher.load(f"{folder}/digits.onnx")
        >>> hasher.encode(np.zeros((2, 8, 8), dtype=np.uint8)).shape
        (2, 6)
    """

    def __init__(self, session: Any, description: HasherDescription, made_from: str) -> None:
        self._session = session
        self._description = description
        self.made_from = made_from
        self.file: Path | None = None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model.

        Raises:
            InputError: ONNX Runtime is not installed; or the file is not there, is damaged, or is no hasher.
        """
        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path} is not there: {MAKE_IT}")
        required("onnxruntime", "onnx")
        try:
            session = session_of(path)
            metadata: Mapping[str, str] = session.get_modelmeta().custom_metadata_map
        except Exception as error:  # the errors of ONNX Runtime share no class
            raise InputError(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): {MAKE_IT}") from error
        try:
            content = json.loads(metadata[HASHER_KEY])
            if content["format"] != ONNX_FORMAT:
                raise ValueError(f"it is of format {content['format']}, this version reads {ONNX_FORMAT}")
            named = ([node.name for node in nodes] for nodes in (session.get_inputs(), session.get_outputs()))
            if list(named) != [[IMAGES], [CODES, FEATURES]]:
                raise ValueError(f"it does not make `{CODES}` and `{FEATURES}` of `{IMAGES}`")
            digest = content["digest"]
            if digest_of_model(path.read_bytes().replace(digest.encode(), NO_DIGEST.encode())) != digest:
                raise ValueError("its weights are not those that were saved")
            description = HasherDescription.model_validate(content["description"])
            return cls(session, description, content["made_from"])
        except (KeyError, ValueError) as error:
            raise InputError(f"{path} is no hasher of this version ({error!s:.200}): {MAKE_IT}") from error

    def require_made_from(self, hasher: Path) -> None:
        """Raise InputError unless the model was made from this safetensors file.

        Raises:
            InputError: it was made from another one, or the file cannot be read.
        """
        try:
            digest = content_digest(hasher)
        except OSError as error:
            raise InputError(f"hasher {hasher} cannot be read: {error.strerror}") from error
        if digest != self.made_from:
            raise InputError(f"the ONNX model beside {hasher} was made from another hasher: {MAKE_IT}")
        self.file = hasher

    @property
    def description(self) -> HasherDescription:
        """What is stored beside the weights."""
        return self._description

    def encode_pixels(self, pixels: NDArray[np.uint8]) -> EncodedPixels:
        """Codes and features of decoded images, see `BaseHasher`."""
        step = max(1, NUMBERS_AT_A_TIME // int(np.prod(self.description.image_shape)))
        # Of no image at all, the shapes.
        starts = range(0, len(pixels) or 1, step)
        blocks = [np.ascontiguousarray(pixels[start : start + step]) for start in starts]
        made = zip(*(self._session.run([CODES, FEATURES], {IMAGES: block}) for block in blocks), strict=True)
        return EncodedPixels(*map(np.concatenate, made))


def session_of(model: Path | bytes, threads: int = 0) -> Any:
    """Make ONNX Runtime compute a model, or the content of its file, on the CPU.

    Args:
        model: the file.
        threads: number of threads that compute; 0 for one a core.

    Raises:
        InputError: ONNX Runtime is not installed.
    """
    onnxruntime = required("onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def digest_of_model(content: bytes) -> str:
    """Digest a file of a model in which `NO_DIGEST` stands for its digest.

    Example:
        >>> len(digest_of_model(b"model")) == len(NO_DIGEST)
        True
    """
    return xxhash.xxh3_128_hexdigest(content)

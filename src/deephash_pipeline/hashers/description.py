"""What is stored beside the weights of an image hasher."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from deephash_pipeline.images.decoding.image_files import Channels

Runtime = Literal["torch", "onnx"]
"""What computes codes: PyTorch or ONNX Runtime."""


class HasherDescription(BaseModel):
    """What a user must know about a hasher, stored with it.

    Attributes:
        network: as in `deephash_pipeline.networks.build_trunk`.
        trunk: fields of `deephash_pipeline.networks.TrunkParameters`, for a network of torchvision or timm.
        image_shape: of the images it was trained on: channels, height, width.
        code_length: bits.
        method: key of the method that made it, such as ``deephash``.
        encoder: key of `deephash_pipeline.hashing.ENCODERS`.
        class_names: of the training images.
        statistics: ``mean`` and ``standard_deviation`` of each channel of the training images, in units of [0, 1].
        benchmark: name of the data.
        seed: of the experiment.
        training_images: how many there were; None where a file of an earlier version does not say.
        notice: whose pictures and weights it was made from, and their licences.
        runtime: what computes its features; codes of the other may differ in a bit of a thousand codes.
        code_version: ``version`` of the package and, where known, ``git_commit`` and ``git_dirty``.

    Example:
        >>> from deephash_pipeline import ImageHasher
        >>> description = ImageHasher.pretrained("digits-48").description
        >>> description.network, description.image_shape
        ('lenet', (1, 28, 28))
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    network: str
    trunk: Mapping[str, bool | int | str | None] = {}
    image_shape: tuple[Channels, int, int]
    code_length: int
    method: str
    encoder: str
    class_names: tuple[str, ...]
    statistics: dict[str, list[float]]
    benchmark: str
    seed: int
    training_images: int | None = None
    notice: str = ""
    runtime: Runtime = "torch"
    code_version: dict[str, str]

    @property
    def trained_on(self) -> str:
        """Say which images it knows, for it tells others apart badly."""
        channels, height, width = self.image_shape
        count = "images" if self.training_images is None else f"{self.training_images:,} images"
        classes = f" in {len(self.class_names)} classes" if self.class_names else ""
        pixels = f"{width} x {height} pixels in {'grey' if channels == 1 else 'colour'}"
        return f"{count} of {self.benchmark}{classes}, {pixels}, seed {self.seed}"

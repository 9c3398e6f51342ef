"""From raw files to the inputs of a network: sources, decoding, splits, pixel statistics and augmentation.

`sources` lists or reads the images of a benchmark, `decoding` turns files into arrays. For images at hand, without a
benchmark, there is `image_batches`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deephash_pipeline.images.augmentation import AugmentationParameters, augment
    from deephash_pipeline.images.batches import ImageBatch, Images, SkippedImage, image_batches
    from deephash_pipeline.images.crops import centre_crop, random_crop
    from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
    from deephash_pipeline.images.decoding.image_files import Channels, ImageFiles
    from deephash_pipeline.images.decoding.ingestion import BrokenImage, decode_splits
    from deephash_pipeline.images.inputs import ImageInputs
    from deephash_pipeline.images.protocol_splits import split_by_protocol
    from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
    from deephash_pipeline.images.sources.registry import parse_source, read_source
    from deephash_pipeline.images.sources.source import ImageSource
    from deephash_pipeline.images.splits import SplitParameters, split_class_names, split_collection, stratified_draw
    from deephash_pipeline.images.statistics import pixel_statistics

__all__ = [
    "AugmentationParameters",
    "BrokenImage",
    "BrokenImageError",
    "Channels",
    "ImageBatch",
    "ImageCollection",
    "ImageFiles",
    "ImageInputs",
    "ImageSet",
    "ImageSource",
    "Images",
    "SkippedImage",
    "SplitParameters",
    "augment",
    "centre_crop",
    "decode_image",
    "decode_splits",
    "image_batches",
    "parse_source",
    "pixel_statistics",
    "random_crop",
    "read_source",
    "split_by_protocol",
    "split_class_names",
    "split_collection",
    "stratified_draw",
]

_MODULES = {
    "augmentation": ("AugmentationParameters", "augment"),
    "batches": ("ImageBatch", "Images", "SkippedImage", "image_batches"),
    "crops": ("centre_crop", "random_crop"),
    "decoding.decode": ("BrokenImageError", "decode_image"),
    "decoding.image_files": ("Channels", "ImageFiles"),
    "decoding.ingestion": ("BrokenImage", "decode_splits"),
    "inputs": ("ImageInputs",),
    "protocol_splits": ("split_by_protocol",),
    "sources.collection": ("ImageCollection", "ImageSet"),
    "sources.registry": ("parse_source", "read_source"),
    "sources.source": ("ImageSource",),
    "splits": ("SplitParameters", "split_class_names", "split_collection", "stratified_draw"),
    "statistics": ("pixel_statistics",),
}


def __getattr__(name: str) -> Any:
    # Late, because some take PyTorch, pandas or scikit-learn, which `images.batches` and the search service do without.
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Kedro dataset classes. A file appears under its final name whole or not at all, and nothing is ever pickled.

What ``kedro_datasets`` has a class for is an `AtomicDataset` around it; the others are for what it lacks.
"""

from deephash_pipeline.project.datasets.any_class import AtomicDataset
from deephash_pipeline.project.datasets.arrays import (
    CodesDataset,
    EncoderDataset,
    HasherDataset,
    NumpyDataset,
    TensorsDataset,
)
from deephash_pipeline.project.datasets.indexes import IndexDataset
from deephash_pipeline.project.datasets.read_only import (
    CheckpointsDataset,
    FilesDataset,
    ImageSourceDataset,
    OriginDataset,
    PlaceDataset,
)

__all__ = [
    "AtomicDataset",
    "CheckpointsDataset",
    "CodesDataset",
    "EncoderDataset",
    "FilesDataset",
    "HasherDataset",
    "ImageSourceDataset",
    "IndexDataset",
    "NumpyDataset",
    "OriginDataset",
    "PlaceDataset",
    "TensorsDataset",
]

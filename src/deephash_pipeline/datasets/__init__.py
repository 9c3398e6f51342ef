"""Kedro dataset classes. A file appears under its final name whole or not at all, and nothing is ever pickled."""

from deephash_pipeline.datasets.arrays import CodesDataset, HistogramsDataset, NumpyDataset
from deephash_pipeline.datasets.checkpoints import CheckpointsDataset
from deephash_pipeline.datasets.documents import (
    CSVDataset,
    HTMLDataset,
    JSONDataset,
    MarkdownDataset,
    PlotlyDataset,
    PNGDataset,
)
from deephash_pipeline.datasets.files import FilesDataset
from deephash_pipeline.datasets.image_source import ImageSourceDataset
from deephash_pipeline.datasets.models import EncoderDataset, HasherDataset, TensorsDataset

__all__ = [
    "CSVDataset",
    "CheckpointsDataset",
    "CodesDataset",
    "EncoderDataset",
    "FilesDataset",
    "HTMLDataset",
    "HasherDataset",
    "HistogramsDataset",
    "ImageSourceDataset",
    "JSONDataset",
    "MarkdownDataset",
    "NumpyDataset",
    "PNGDataset",
    "PlotlyDataset",
    "TensorsDataset",
]

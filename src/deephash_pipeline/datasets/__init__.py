"""Kedro dataset classes. A file appears under its final name whole or not at all, and nothing is ever pickled."""

from .arrays import CodesDataset, HistogramsDataset, NumpyDataset
from .checkpoints import CheckpointsDataset
from .documents import CSVDataset, HTMLDataset, JSONDataset, MarkdownDataset, PlotlyDataset, PNGDataset
from .files import FilesDataset
from .image_source import ImageSourceDataset
from .models import EncoderDataset, TensorsDataset

__all__ = [
    "CSVDataset",
    "CheckpointsDataset",
    "CodesDataset",
    "EncoderDataset",
    "FilesDataset",
    "HTMLDataset",
    "HistogramsDataset",
    "ImageSourceDataset",
    "JSONDataset",
    "MarkdownDataset",
    "NumpyDataset",
    "PNGDataset",
    "PlotlyDataset",
    "TensorsDataset",
]

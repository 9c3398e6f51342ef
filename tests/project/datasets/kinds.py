"""What the catalog writes with, by the keys of conf/base/catalog.yml."""

from pathlib import Path

import yaml

from deephash_pipeline.project.datasets import AtomicDataset

ROOT = Path(__file__).resolve().parents[3]
KINDS = yaml.safe_load((ROOT / "conf/base/catalog.yml").read_text(encoding="utf-8"))


def json_dataset(path):
    return AtomicDataset(path, KINDS["_json"])


def csv_dataset(path):
    return AtomicDataset(path, KINDS["_csv"])


def plotly_dataset(path):
    return AtomicDataset(path, KINDS["_plotly"])


def text_dataset(path):
    return AtomicDataset(path, KINDS["_text"])

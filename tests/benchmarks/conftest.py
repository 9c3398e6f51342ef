"""Benchmarks are not part of the installed package; this makes them importable from the project's folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

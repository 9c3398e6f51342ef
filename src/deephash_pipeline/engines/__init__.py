"""Codes in other engines: exported to PostgreSQL or Milvus, and asked alike.

It knows `hamming`, and nothing of images. Clients of the engines are imported when one is opened.
"""

from deephash_pipeline.engines.addresses import default_name, open_engine, open_export
from deephash_pipeline.engines.exported import EngineError
from deephash_pipeline.engines.exporting import Exported, export_index

__all__ = ["EngineError", "Exported", "default_name", "export_index", "open_engine", "open_export"]

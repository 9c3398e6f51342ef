"""Codes of any number of images, on the cores of one machine or on a Ray cluster, each image encoded exactly once.

It knows `deephash`, and neither Kedro nor a command line. Nothing of Ray is imported before it is asked for.
"""

from deephash_pipeline.common.extras import missing

try:
    from deephash_pipeline.encoding.code_folder import CodeBlock, CodeFolder, Encoding
    from deephash_pipeline.encoding.encode import EncodingWorkers, encode_source
    from deephash_pipeline.encoding.indexing import add_encoded
    from deephash_pipeline.encoding.listing import Source
except ModuleNotFoundError as error:
    raise missing(error, "pipeline") from error

__all__ = ["CodeBlock", "CodeFolder", "Encoding", "EncodingWorkers", "Source", "add_encoded", "encode_source"]

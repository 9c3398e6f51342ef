"""Images that are found by their codes: a hasher and an index of codes in one folder.

It knows `deephash` and `search`, and neither Kedro nor a command line nor HTTP.
"""

from deephash_pipeline.image_index.encoded import EncodedDatabase, write_index
from deephash_pipeline.image_index.index import AddedImages, ImageIndex
from deephash_pipeline.image_index.listing import ListedImage, list_images

__all__ = ["AddedImages", "EncodedDatabase", "ImageIndex", "ListedImage", "list_images", "write_index"]

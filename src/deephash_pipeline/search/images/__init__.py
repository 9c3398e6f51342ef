"""Images that are found by their codes: a hasher and an index of codes in one folder.

It knows `deephash` and `search`, and neither Kedro nor a command line nor HTTP.
"""

from deephash_pipeline.search.images.index import ImageIndex
from deephash_pipeline.search.images.listing import ListedImage, list_images, searched_folders
from deephash_pipeline.search.images.rebuilding import EncodedDatabase, has_other_hasher, rebuilt, write_index
from deephash_pipeline.search.images.updating import AddedImages, bring_up_to_date
from deephash_pipeline.search.images.watching import Watch

__all__ = [
    "AddedImages",
    "EncodedDatabase",
    "ImageIndex",
    "ListedImage",
    "Watch",
    "bring_up_to_date",
    "has_other_hasher",
    "list_images",
    "rebuilt",
    "searched_folders",
    "write_index",
]

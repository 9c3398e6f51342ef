"""Images that are found by their codes: a hasher and an index of codes in one folder.

It knows `deephash` and `hamming`, and neither Kedro nor a command line nor HTTP.
"""

from pathlib import Path

from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.photographs.listing import ListedImage, list_images, searched_folders
from deephash_pipeline.photographs.rebuilding import EncodedDatabase, has_other_hasher, rebuilt, write_index
from deephash_pipeline.photographs.updating import AddedImages, add_files, bring_up_to_date
from deephash_pipeline.photographs.watching import Watch

LOOK = Path(__file__).with_name("look.css")
"""Colours and controls that all pages of photographs share."""

__all__ = [
    "LOOK",
    "AddedImages",
    "EncodedDatabase",
    "ImageIndex",
    "ListedImage",
    "Watch",
    "add_files",
    "bring_up_to_date",
    "has_other_hasher",
    "list_images",
    "rebuilt",
    "searched_folders",
    "write_index",
]

"""Groups of files that show the same picture; which one to keep, and why.

It deletes nothing. It knows neither Kedro nor a command line.
"""

from deephash_pipeline.search.duplicates.finding import AGREEMENT, Duplicates, find_duplicates
from deephash_pipeline.search.duplicates.groups import Group, Member, Photo

__all__ = ["AGREEMENT", "Duplicates", "Group", "Member", "Photo", "find_duplicates"]

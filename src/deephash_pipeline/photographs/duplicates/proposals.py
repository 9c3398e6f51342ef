"""Proposals for the files of a group: keep one, remove what is verified, look at all else."""

from collections.abc import Callable, Mapping, Sequence

from deephash_pipeline.photographs.duplicates.groups import (
    Group,
    Member,
    Photo,
    advantage,
    beside,
    best_first,
    seen,
)
from deephash_pipeline.photographs.duplicates.registration import Registration
from deephash_pipeline.photographs.duplicates.second_look import difference

CONTENDERS = 3
"""Files with as many pixels as the best that may be kept in its place, as an edit is made of its original."""


def proposed(found: Mapping[Photo, int], registered: Callable[[int, int], Registration]) -> Group:
    """Compare files of a group, by their pictures, with the one to keep.

    Of files with equally many pixels the one is kept of which most others are copies: an original, and not what was
    turned or made brighter.

    Args:
        found: files and the numbers of their pictures; those of equal bytes have the same.
        registered: function that lays one picture onto another, both by their numbers.
    """
    pictures = {seen(photo): row for photo, row in found.items()}
    order, reason = best_first(list(pictures))
    groups = []
    for best in _contenders(order):
        why = reason if best is order[0] else "as many pixels, and others are made of it"
        others = [photo for photo in order if photo is not best]
        members = [_member(photo, best, pictures, registered) for photo in others]
        groups.append(Group([Member(best, "keep", 1.0, why), *members]))
        if all(member.action != "look" for member in members):
            break
    return max(groups, key=lambda group: len(group.removable))


def _contenders(order: Sequence[Photo]) -> list[Photo]:
    first = order[0]
    alike = [photo for photo in order if photo.pixels == first.pixels and photo.reference == first.reference]
    return [photo for photo in alike if photo.preferred == first.preferred][:CONTENDERS]


def _member(
    photo: Photo, best: Photo, pictures: Mapping[Photo, int], registered: Callable[[int, int], Registration]
) -> Member:
    """Say what to do with a file that is not the one to keep: when in doubt, to look at it."""
    row, of_best = pictures[photo], pictures[best]
    found = None if row == of_best else registered(row, of_best)
    agrees = 1.0 if found is None else found.agreement
    if photo.reference:
        return Member(photo, "keep", agrees, "in the reference")
    if found is None:
        doubt = beside(photo, best)
        return Member(photo, "look" if doubt else "remove", agrees, doubt or "equal bytes")
    if photo.pages > 1:
        return Member(photo, "look", agrees, "only the first of its pages is compared")
    doubt = advantage(photo, best)
    if doubt is None and (left := difference(best, photo, found.placement)):
        doubt = f"{left}: look at it"
    return Member(photo, "look" if doubt else "remove", agrees, doubt or "same picture")

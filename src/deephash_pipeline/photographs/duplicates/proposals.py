"""Proposals for the files of a group: keep one, remove what is verified, look at all else."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.photographs.duplicates.groups import (
    Group,
    Member,
    Photo,
    advantage,
    beside,
    best_first,
    is_as_it_was,
    seen,
)
from deephash_pipeline.photographs.duplicates.kept import Kept
from deephash_pipeline.photographs.duplicates.registration import Registration
from deephash_pipeline.photographs.duplicates.second_look import NOT_READ_AGAIN, difference

Registered = Callable[[int, int], Registration]

CONTENDERS = 3
"""Files with as many pixels as the best that may be kept in its place, as an edit is made of its original."""


def proposed(found: Mapping[Photo, int], registered: Registered, kept: Kept | None = None) -> Group:
    """Compare files of a group, by their pictures, with the one to keep.

    Of files with equally many pixels the one is kept of which most others are copies: an original, and not what was
    turned or made brighter.

    Args:
        found: files and the numbers of their pictures; those of equal bytes have the same.
        registered: function that lays one picture onto another, both by their numbers.
        kept: what earlier looks have found of the files; what is found is added.
    """
    known = Kept() if kept is None else kept
    pictures = {seen(photo, known.colours): row for photo, row in found.items()}
    order, reason = best_first(list(pictures))
    groups = []
    for best in _contenders(order):
        why = reason if best is order[0] else "as many pixels, and others are made of it"
        others = [photo for photo in order if photo is not best]
        members = [_member((photo, best), pictures, registered, known) for photo in others]
        groups.append(Group([Member(best, "keep", 1.0, why), *members]))
        if all(member.action != "look" for member in members):
            break
    return max(groups, key=lambda group: len(group.removable))


def _contenders(order: Sequence[Photo]) -> list[Photo]:
    first = order[0]
    alike = [photo for photo in order if photo.pixels == first.pixels and photo.reference == first.reference]
    return [photo for photo in alike if photo.preferred == first.preferred][:CONTENDERS]


def _member(pair: tuple[Photo, Photo], pictures: Mapping[Photo, int], registered: Registered, kept: Kept) -> Member:
    """Say what to do with a file that is not the one to keep: when in doubt, to look at it."""
    photo, best = pair
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
    if doubt is None and (left := _difference(best, photo, found.placement, kept)):
        doubt = f"{left}: look at it"
    return Member(photo, "look" if doubt else "remove", agrees, doubt or "same picture")


def _difference(best: Photo, other: Photo, placement: NDArray[np.float64], kept: Kept) -> str | None:
    """What tells a file from the one to keep, as an earlier look has found, or compared now and kept for the next."""
    pair = best.key, other.key
    if pair in kept.verdicts:
        return kept.verdicts[pair]
    left = difference(best, other, placement)
    if left != NOT_READ_AGAIN and is_as_it_was(best) and is_as_it_was(other):
        kept.verdicts[pair] = left
    return left

"""``deephash-pipeline methods``: the table of all methods."""

from typing import NamedTuple

import click

from deephash_pipeline.cli.search import print_columns
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.losses import LOSSES
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, METHODS, PRE_TRAINING

ON_Z, OF_NETWORK, ON_FROZEN_TRUNK = "hash function on z", "loss on all layers", "loss on the hash layer"
LABELS, ONE_LABEL, NOTHING = "labels", "one label an image", "no labels"


class Method(NamedTuple):
    """What there is to know of a method before it is run.

    Attributes:
        key: name in commands, parameters and files.
        name: name in tables and figures.
        kind: kind of method: what is learned, and on what.
        needs: data that it reads beside the images.
        paper: paper that it comes from.

    Example:
        >>> method_of("dpsh").kind, method_of("dpsh").needs
        ('loss on all layers', 'labels')
    """

    key: str
    name: str
    kind: str
    needs: str
    paper: str


def method_of(key: str) -> Method:
    """Describe a method of the grid.

    Example:
        >>> method_of("itq").needs
        'no labels'
    """
    name = METHODS[key]
    if key == CLASSIFIER_BASELINE.method:
        return Method(key, name, "classifier baseline", ONE_LABEL, "none: the predicted class as a code")
    if key in HASH_FUNCTIONS:
        function = HASH_FUNCTIONS[key]
        needs = _needs(function.supervised, function.several_labels)
        return Method(key, name, ON_Z, needs, function.reference)
    loss = LOSSES.get(key, LOSSES["exponentiated"])
    needs = _needs(loss.supervised, loss.several_labels)
    if key == PRE_TRAINING:
        return Method(key, name, "hash layer on z", needs, loss.reference)
    return Method(key, name, ON_FROZEN_TRUNK if loss.reads_features else OF_NETWORK, needs, loss.reference)


def _needs(supervised: bool, several_labels: bool) -> str:
    if not supervised:
        return NOTHING
    return LABELS if several_labels else ONE_LABEL


@click.command()
def methods() -> None:
    """List all methods: key, name, kind, what each needs, paper."""
    print_columns([Method._fields, *map(method_of, METHODS)])

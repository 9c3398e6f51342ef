"""``deephash-pipeline methods``: the table of all methods."""

from typing import NamedTuple

import click

from deephash_pipeline.cli.columns import print_columns
from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, METHODS, PRE_TRAINING
from deephash_pipeline.pipelines.method_facts import HASH_FUNCTION_FACTS, LOSS_FACTS

ONE_LABEL = "one label an image"


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
    if key in HASH_FUNCTION_FACTS:
        found = HASH_FUNCTION_FACTS[key]
        kind = "hash function on z"
    else:
        found = LOSS_FACTS.get(key, LOSS_FACTS["exponentiated"])
        learned = "loss on the hash layer" if found.reads_features else "loss on all layers"
        kind = "hash layer on z" if key == PRE_TRAINING else learned
    with_labels = "labels" if found.several_labels else ONE_LABEL
    return Method(key, name, kind, with_labels if found.supervised else "no labels", found.reference)


@click.command()
def methods() -> None:
    """List all methods: key, name, kind, what each needs, paper."""
    print_columns([Method._fields, *map(method_of, METHODS)])

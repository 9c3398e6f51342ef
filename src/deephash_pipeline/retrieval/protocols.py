"""Evaluation protocols by name: which images are queries, which train, which are searched, and how far.

A benchmark has three sets of images that share none: training, validation and query. A protocol says which of them the
queries search, and whether it fixes the sets itself; a number measured by one stands in no column with another's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deephash_pipeline.common.errors import InputError


@dataclass(frozen=True)
class Protocol:
    """How codes are evaluated.

    Attributes:
        name: name in the configuration, in metrics and reports.
        database: the sets that queries search; ``validation`` are the images that no training has seen.
        described: the database in words.
        sizes: number of images of each set where the protocol fixes them; a benchmark with others is refused.
        pooled: True if its sets are drawn, class by class, from all images of the source put together.
        unseen: True if queries and database are of classes that take no part in training.
        k: the first so many images count; None for the whole database.
        beside: the protocol that the same codes are measured by as well, where there are images to search.
    """

    name: str
    database: tuple[str, ...]
    described: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    pooled: bool = False
    unseen: bool = False
    k: int | None = None
    beside: str | None = None

    @property
    def metric(self) -> str:
        """The metric of its tables: average precision divided by what could be found, min(R, k).

        >>> PROTOCOLS["imagenet100"].metric
        'mean_average_precision_at_1000'
        """
        return "mean_average_precision" if self.k is None else f"mean_average_precision_at_{self.k}"

    @property
    def published_metric(self) -> str:
        """What most published code calls mAP@k, divided by the hits among the first k; the same where k is all.

        >>> PROTOCOLS["imagenet100"].published_metric
        'mean_average_precision_at_1000_by_hits'
        """
        return self.metric if self.k is None else f"{self.metric}_by_hits"


BESIDE_METRICS = (
    "mean_average_precision",
    "mean_average_precision_at_1000",
    "mean_average_precision_at_1000_by_hits",
    "queries_without_relevant_items",
    "database_size",
    "chance_level",
    "ndcg_at_100",
    "acg_at_100",
    "wap_at_100",
)
"""What is measured by the protocol beside; its name stands before: ``held_out_mean_average_precision``."""

PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("paper", ("training",), "the training set", beside="held_out"),
        Protocol("held_out", ("validation",), "images of the same classes that no training has seen", beside="paper"),
        Protocol(
            "cifar10_1",
            ("training", "validation"),
            "all images but the queries, those of the training set among them",
            sizes={"query": 1_000, "training": 5_000, "validation": 54_000},
            pooled=True,
            beside="held_out",
        ),
        Protocol(
            "cifar10_2", ("training",), "the training set", sizes={"query": 10_000, "training": 50_000, "validation": 0}
        ),
        Protocol(
            "imagenet100",
            ("training", "validation"),
            "the published list, which contains the training set",
            sizes={"query": 5_000, "training": 13_000, "validation": 115_503},
            k=1_000,
            beside="held_out",
        ),
        Protocol("unseen", ("validation",), "other images of classes that no training has seen", unseen=True),
    )
}
"""All protocols by name. CIFAR10-1 and CIFAR10-2 are the field's names; the paper's own on CIFAR-10 is ``paper``."""


def require_protocol(name: str) -> Protocol:
    """Return a protocol by its name.

    Raises:
        InputError: there is none of that name.

    Example:
        >>> require_protocol("unseen").database
        ('validation',)
        >>> require_protocol("cifar10")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: protocol is 'cifar10': choose among paper, held_out, cifar10_1, ...
    """
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise InputError(f"protocol is {name!r}: choose among {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]

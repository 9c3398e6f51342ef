"""Which methods are worse than the best, and which are tied with it: a paired bootstrap over queries.

Every method answers the same queries. What is compared is each query's average precision, averaged over a method's
seeds: the test says how far a difference could be an accident of the queries. How far it could be one of the seeds is
what their standard deviation shows, which stands beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from deephash_pipeline.errors import InputError
from deephash_pipeline.parameters import Parameters

VALUES_AT_ONCE = 2**22
"""Resampled values that are in memory at a time, 32 MiB."""


class SignificanceParameters(Parameters):
    """How methods are compared.

    Attributes:
        resamples: of the queries.
        level: probability of calling one of several methods worse that is not; 1 - level is what intervals cover.
    """

    resamples: Annotated[int, Field(ge=100)] = 10_000
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05


@dataclass(frozen=True)
class AgainstBest:
    """A method's mean average precision over its seeds, and how it stands to the best method's.

    Attributes:
        mean: over queries and seeds.
        standard_deviation: of the seeds' mAP, with n - 1; NaN of one seed.
        seeds: how many.
        difference: of the best method's mean to this one's, 0 for the best itself.
        low: lower end of the interval that the difference lies in, by percentiles of the bootstrap.
        high: upper end.
        p_value: two-sided, of no difference; 1 for the best itself.
        adjusted_p_value: the same after Holm's correction over all methods but the best.
        tied: whether it is not worse than the best at the level asked for; true of the best itself.
    """

    mean: float
    standard_deviation: float
    seeds: int
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float
    tied: bool


def compare_with_best(
    average_precisions: Mapping[str, ArrayLike], parameters: SignificanceParameters | None = None, random_state: int = 0
) -> dict[str, AgainstBest]:
    """Compare methods with the one of the highest mean, which the first of several equal ones is.

    The best is chosen by the same queries, so a method tied with it may well be the better one: what is said of the
    others is that they are worse, never that the best is alone.

    Args:
        average_precisions: method to float (queries,) of one seed or (seeds, queries); of the same queries in the same
            order, NaN where a query has no relevant item. `deephash_pipeline.retrieval.average_precision` gives them.
        parameters: resamples and level.
        random_state: of the resamples.

    Returns:
        Method to its standing, in the order given.

    Raises:
        InputError: no method, no query with relevant items, or methods with other queries.

    Example:
        >>> queries = np.linspace(0.2, 0.8, 50)
        >>> standing = compare_with_best({"a": queries, "b": queries - 0.1, "c": queries})
        >>> [(method, round(found.mean, 2), found.tied) for method, found in standing.items()]
        [('a', 0.5, True), ('b', 0.4, False), ('c', 0.5, True)]
    """
    parameters = parameters or SignificanceParameters()
    scores = _checked(average_precisions)
    over_seeds = {method: own.mean(axis=0) for method, own in scores.items()}
    best = max(over_seeds, key=lambda method: over_seeds[method].mean())
    others = [method for method in scores if method != best]
    tested: dict[str, tuple[float, float, float, float]] = {}
    if others:
        differences = np.stack([over_seeds[best] - over_seeds[method] for method in others])
        low, high, p_values = paired_bootstrap(differences, parameters, random_state)
        adjusted = holm(p_values)
        columns = (low.tolist(), high.tolist(), p_values.tolist(), adjusted.tolist())
        tested = dict(zip(others, zip(*columns, strict=True), strict=True))
    top = float(over_seeds[best].mean())
    standing = {}
    for method, own in scores.items():
        of_seeds = own.mean(axis=1)
        lower, upper, p_value, corrected = tested.get(method, (0.0, 0.0, 1.0, 1.0))
        standing[method] = AgainstBest(
            mean=float(over_seeds[method].mean()),
            standard_deviation=float(of_seeds.std(ddof=1)) if len(own) > 1 else float("nan"),
            seeds=len(own),
            difference=top - float(over_seeds[method].mean()),
            low=lower,
            high=upper,
            p_value=p_value,
            adjusted_p_value=corrected,
            tied=corrected >= parameters.level,
        )
    return standing


def paired_bootstrap(
    differences: NDArray[np.float64], parameters: SignificanceParameters, random_state: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Resample queries, the same for every row, and see how far the mean differences move.

    Args:
        differences: float64 (comparisons, queries).
        parameters: resamples and level.
        random_state: of the resamples.

    Returns:
        Lower and upper ends of the percentile intervals of the mean differences, and their two-sided p-values: twice
        the share of resamples on the rarer side of zero, with those at zero and the sample itself on both sides, so
        that none is 0 (Davison and Hinkley 1997, section 4.2). Each float64 (comparisons,).

    Example:
        >>> low, high, p_value = paired_bootstrap(np.array([[0.1, 0.1, 0.2]]), SignificanceParameters(), 0)
        >>> low.round(3).tolist(), high.round(3).tolist(), p_value.round(4).tolist()
        ([0.1], [0.2], [0.0002])
    """
    # A constant row, whose distribution is a point, is what scipy warns of.
    constant = (differences == differences[:, :1]).all(axis=1)
    low = differences[:, 0].copy()
    high, above, below = low.copy(), (low >= 0) * 1.0, (low <= 0) * 1.0
    if not constant.all():
        found = scipy.stats.bootstrap(
            (differences[~constant],),
            np.mean,
            axis=-1,
            n_resamples=parameters.resamples,
            batch=max(1, VALUES_AT_ONCE // differences[~constant].size),
            confidence_level=1 - parameters.level,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(random_state),
        )
        interval, means = found.confidence_interval, found.bootstrap_distribution
        low[~constant], high[~constant] = interval.low, interval.high
        above[~constant], below[~constant] = (means >= 0).mean(axis=-1), (means <= 0).mean(axis=-1)
    rarer = (np.minimum(above, below) * parameters.resamples + 1) / (parameters.resamples + 1)
    return low, high, np.minimum(1.0, 2 * rarer)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values of several tests, so that one false rejection among all is as rare as in a single test.

    The smallest is multiplied by the number of tests, the next by one less, and so on; none falls below one before it,
    none exceeds 1 (Holm 1979). scipy corrects for the false discovery rate only, which is another promise.

    Args:
        p_values: float (tests,).

    Returns:
        float64 (tests,), in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
        [0.03, 0.06, 0.06, 0.02]
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return adjusted


def _checked(average_precisions: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
    """Give the scores of each method as (seeds, queries), without queries that have no relevant item."""
    scores = {method: np.atleast_2d(np.asarray(own, np.float64)) for method, own in average_precisions.items()}
    if not scores:
        raise InputError("there is no method to compare: pass the average precisions of one at least")
    first, reference = next(iter(scores.items()))
    unanswerable = np.isnan(reference).any(axis=0)
    for method, own in scores.items():
        if own.ndim != 2 or own.shape[1] != reference.shape[1]:
            raise InputError(f"{method} has scores of shape {own.shape}, {first} of {reference.shape}: same queries")
        if (np.isnan(own) != unanswerable).any():
            raise InputError(f"{method} and {first} differ in which queries have relevant items: pass the same queries")
    if unanswerable.all():
        raise InputError("no query has a relevant item: there is nothing to compare")
    return {method: own[:, ~unanswerable] for method, own in scores.items()}

"""Which methods are worse than the best, and which are tied with it: Tukey's studentised range, stepping down.

What varies is what a seed draws: weights, order, augmentation, centres, random directions. The queries are the same for
all, so nothing is said of other queries. The best is chosen by the same means; that some method is worse than it then
means that the range of the means is large, which is what Tukey's test bounds. Every pair has the variances of its own
two methods (Games and Howell 1976): with one pooled over all methods, as different ones as those of
docs/results/fair-comparison have, of equal methods one is called worse in up to a third of the cases instead of 5 %
(docs/evaluation.md). Seeds of methods that share a trunk rise and fall together; the difference of two means is then
less uncertain than the test takes it for, which makes it conservative.

A method that is shown to be worse leaves, and the range is then of those that remain: that they are equal is all that
is left to be tested (Marcus, Peritz and Gabriel 1976, doi:10.1093/biomet/63.3.655).
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import Parameters

FloatArray = NDArray[np.float64]
Verdict = Literal["best", "tied", "worse"]


class SignificanceParameters(Parameters):
    """How methods are compared.

    Attributes:
        level: probability that of equal methods any is called worse than the one of the highest mean, approximately:
            with three seeds .05 becomes up to .09 for 31 methods that deviate alike, and less if they share a trunk.
    """

    level: Annotated[float, Field(gt=0, lt=1)] = 0.05


@dataclass(frozen=True)
class AgainstBest:
    """How a method stands to the one of the highest mean among those of several seeds.

    Attributes:
        difference: difference of the best method's mean to this one's, 0 for the best itself, negative if one seed had
            more; NaN where there is no best.
        p_value: p-value of no difference, adjusted for the number of methods that are not shown to be worse before; 1
            for the best, NaN without a verdict.
        verdict: ``best``, ``tied`` or ``worse``; None of one seed, and where no two methods have several.
    """

    difference: float
    p_value: float
    verdict: Verdict | None


def compare_with_best(
    means: ArrayLike, standard_deviations: ArrayLike, seeds: ArrayLike, parameters: SignificanceParameters | None = None
) -> list[AgainstBest]:
    """Compare methods with the one of the highest mean, which the first of several equal ones is.

    A method tied with the best may well be the better one: what is said of the others is that they are worse, never
    that the best is alone.

    Args:
        means: float (methods,), each of its seeds.
        standard_deviations: float (methods,), of the seeds with n - 1; whatever it is of one seed is not read.
        seeds: int (methods,), how many.
        parameters: level.

    Returns:
        The standing of each method, in the order given.

    Raises:
        InputError: there is no method.

    Example:
        >>> found = compare_with_best([0.9, 0.8, 0.89, 0.95], [0.01, 0.01, 0.01, np.nan], [3, 3, 3, 1])
        >>> [(round(method.difference, 2), method.verdict) for method in found]
        [(0.0, 'best'), (0.1, 'worse'), (0.01, 'tied'), (-0.05, None)]
    """
    level = (parameters or SignificanceParameters()).level
    mean, deviation, count = (np.asarray(given, np.float64) for given in (means, standard_deviations, seeds))
    if not mean.size:
        raise InputError("there is no method to compare: pass the mean of one at least")
    (several,) = np.nonzero(count > 1)
    if len(several) < 2:
        return [AgainstBest(float("nan"), float("nan"), None) for _ in mean]
    best = several[mean[several].argmax()]
    p_value = np.full(len(mean), np.nan)
    studentised, freedom = against_best(mean[several], deviation[several], count[several])
    p_value[several] = stepping_down(studentised, freedom)
    standing = []
    for method, p in enumerate(p_value.tolist()):
        verdict: Verdict | None = "best" if method == best else "worse" if p < level else "tied"
        verdict = None if np.isnan(p) else verdict
        standing.append(AgainstBest(float(mean[best] - mean[method]), p, verdict))
    return standing


def stepping_down(studentised: FloatArray, freedom: FloatArray) -> FloatArray:
    """Give the p-values of studentised differences: the clearest of m methods in a range of m, the next of m - 1.

    Args:
        studentised: float (methods,), of `against_best`.
        freedom: float (methods,), degrees of freedom.

    Returns:
        P-values (methods,), none below that of a clearer difference.

    Example:
        >>> studentised, freedom = np.array([0.0, 9.0, 4.5]), np.array([4.0, 4.0, 4.0])
        >>> stepping_down(studentised, freedom).round(3).tolist()
        [1.0, 0.007, 0.033]
    """
    methods = len(studentised)
    p_value = np.asarray(scipy.stats.studentized_range.sf(studentised, methods, freedom))
    clearest_first = np.argsort(p_value, kind="stable")[:-1]
    for left, method in enumerate(clearest_first):
        own = scipy.stats.studentized_range.sf(studentised[method], methods - left, freedom[method])
        p_value[method] = max(own, p_value[clearest_first[left - 1]] if left else 0.0)
    return p_value


def against_best(means: ArrayLike, standard_deviations: ArrayLike, seeds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Studentise the differences to the highest mean, each by the variances of its two methods.

    Args:
        means: float (..., methods).
        standard_deviations: float (..., methods), of the seeds with n - 1.
        seeds: int (methods,), each 2 at least.

    Returns:
        The studentised differences, and their degrees of freedom by Welch; each float64 (..., methods). Without any
        deviation an equal mean has 0, another infinity.
    """
    mean, count = np.asarray(means, np.float64), np.asarray(seeds, np.float64)
    variance = np.asarray(standard_deviations, np.float64) ** 2 / count
    best = mean.argmax(axis=-1, keepdims=True)
    of_best, degrees = np.take_along_axis(variance, best, -1), count - 1
    difference, together = np.take_along_axis(mean, best, -1) - mean, (variance + of_best) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        studentised = np.where(difference == 0, 0.0, difference / np.sqrt(together))
        freedom = (2 * together) ** 2 / (variance**2 / degrees + of_best**2 / degrees[best])
    return studentised, np.where(together == 0, 1.0, freedom)

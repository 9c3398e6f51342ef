"""How often equal methods are called worse than the best, and unequal ones: `python -m benchmarks.studies.verdicts`.

Seeds' means are drawn from normal distributions whose deviations are those of docs/results/fair-comparison.
"""

import functools
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray

from benchmarks.documents import PROJECT, Benchmark, Results, Settings
from deephash_pipeline.tuning.significance import FloatArray, SignificanceParameters, against_best

LEVEL = SignificanceParameters().level
TABLES = PROJECT / "docs" / "results" / "fair-comparison"
CELLS = {
    "digits": ("seeds.csv", "digits_held_out", 48, 0.0024),
    "MNIST": ("seeds-mnist.csv", "mnist_tuned", 48, 0.00024),
    "CIFAR-10, 12 bits": ("seeds-cifar10.csv", "cifar10_tuned", 12, 0.0012),
    "CIFAR-10, 48 bits": ("seeds-cifar10.csv", "cifar10_tuned", 48, 0.0010),
}
"""Table, environment, bits, and the standard error that queries give a difference of two methods held out: the median
of the intervals of the bootstrap over queries that judged these tables before (commit 85a2f2a), over 3.92."""

FOUND = {
    "digits, held out": ("seeds.csv", "digits_held_out", 48, "held_out"),
    "MNIST, held out": ("seeds-mnist.csv", "mnist_tuned", 48, "held_out"),
    "CIFAR-10, training set": ("seeds-cifar10.csv", "cifar10_tuned", 48, "paper"),
}

ONE_DEVIATES = np.append(np.ones(13), 5.0)
"""Deviations of 14 methods, of which one has five times as much as the others."""
MULTIPLIER = 1.3
"""Times the critical value with which moderated variances err as often as they may with published deviations."""

Calls = Callable[[FloatArray, FloatArray, int], NDArray[np.bool_]]


def published(
    table: str, environment: str, code_length: int, protocol: str = "held_out"
) -> tuple[FloatArray, FloatArray]:
    """Read means and deviations of the methods with several seeds: float64 (methods,) each."""
    rows = pd.read_csv(TABLES / table)
    cell = (rows["environment"] == environment) & (rows["protocol"] == protocol)
    of_seeds = rows[cell & (rows["code_length"] == code_length) & (rows["seeds"] > 1)]
    return of_seeds["mean"].to_numpy(np.float64), of_seeds["standard_deviation"].to_numpy(np.float64)


def published_deviations(table: str, environment: str, code_length: int) -> FloatArray:
    """Read the deviations of the methods with several seeds, held out: float64 (methods,)."""
    return published(table, environment, code_length)[1]


class Noise(NamedTuple):
    """How seeds deviate.

    Attributes:
        shared: part of the variance that all methods have in common with one seed, as by one trunk.
        freedom: of Student's t that a method's own noise has, with the same deviation; a normal one if it is infinite.
        failing: share of seeds that end eight deviations lower.
    """

    shared: float = 0.0
    freedom: float = np.inf
    failing: float = 0.0


NORMAL = Noise()


def drawn(
    deviations: ArrayLike, seeds: int, number: int, noise: Noise = NORMAL, below: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Draw means and deviations over seeds, each float64 (number, methods).

    Args:
        deviations: float (methods,), true ones.
        seeds: of each method.
        number: of experiments.
        noise: of seeds.
        below: how far the first method's true mean lies below that of the others, which are equal.
    """
    generator, scale = np.random.default_rng(0), np.asarray(deviations, np.float64)[:, None]
    shape = (number, len(scale), seeds)
    if np.isinf(noise.freedom):
        own = generator.standard_normal(shape)
    else:
        own = generator.standard_t(noise.freedom, shape) * np.sqrt((noise.freedom - 2) / noise.freedom)
    common = generator.standard_normal((number, 1, seeds))
    values = scale * (np.sqrt(1 - noise.shared) * own + np.sqrt(noise.shared) * common)
    values -= 8 * scale * (generator.random(shape) < noise.failing)
    values[:, 0] -= below
    return values.mean(axis=2), values.std(axis=2, ddof=1)


def by_own_variances(means: FloatArray, deviations: FloatArray, seeds: int) -> NDArray[np.bool_]:
    """Call methods worse by Tukey's test of one step; critical values between a few degrees of freedom interpolated."""
    studentised, freedom = against_best(means, deviations, np.full(means.shape[1], seeds))
    inverse, critical = _critical_values(means.shape[1])
    return studentised > np.interp(1 / freedom, inverse, critical)


def by_stepping_down(means: FloatArray, deviations: FloatArray, seeds: int) -> NDArray[np.bool_]:
    """Call methods worse as `compare_with_best` does: the clearest first, then in the range of those that remain."""
    return _stepping_down(*against_best(means, deviations, np.full(means.shape[1], seeds)))


def by_moderated_variances(means: FloatArray, deviations: FloatArray, seeds: int) -> NDArray[np.bool_]:
    """Call methods worse by variances moderated by a prior of all (Smyth 2004, doi:10.2202/1544-6115.1027)."""
    own = seeds - 1
    prior, typical = _prior_of_variances(deviations, own)
    variance = (prior * typical + own * deviations**2) / (prior + own) / seeds
    best = means.argmax(axis=1, keepdims=True)
    of_best = np.take_along_axis(variance, best, 1)
    freedom = (variance + of_best) ** 2 / (variance**2 + of_best**2) * (prior + own)
    return _stepping_down(_differences(means) / np.sqrt((variance + of_best) / 2) / MULTIPLIER, freedom)


def _prior_of_variances(deviations: FloatArray, freedom: int) -> tuple[FloatArray, FloatArray]:
    """Fit degrees of freedom and the typical variance of each row's methods by the moments of their logarithms."""
    logarithm = np.log(deviations**2) - scipy.special.digamma(freedom / 2) + np.log(freedom / 2)
    spread = logarithm.var(axis=1, ddof=1, keepdims=True) - scipy.special.polygamma(1, freedom / 2)
    halves = np.geomspace(0.05, 5_000, 2_000)
    half = np.interp(-spread, -scipy.special.polygamma(1, halves), halves)
    return 2 * half, np.exp(logarithm.mean(axis=1, keepdims=True) + scipy.special.digamma(half) - np.log(half))


def _stepping_down(studentised: FloatArray, freedom: FloatArray) -> NDArray[np.bool_]:
    methods = studentised.shape[1]
    worse = np.zeros(studentised.shape, bool)
    for left in range(methods, 1, -1):
        inverse, critical = _critical_values(left)
        times = np.where(worse, 0, studentised / np.interp(1 / freedom, inverse, critical))
        clearest = times.argmax(axis=1)
        further = (worse.sum(axis=1) == methods - left) & (times.max(axis=1) > 1)
        worse[further, clearest[further]] = True
    return worse


def by_pooled_variance(means: FloatArray, deviations: FloatArray, seeds: int) -> NDArray[np.bool_]:
    """Call methods worse by Tukey's test with one variance."""
    methods = means.shape[1]
    error = np.sqrt((deviations**2).mean(axis=1, keepdims=True) / seeds)
    return _differences(means) / error > scipy.stats.studentized_range.isf(LEVEL, methods, methods * (seeds - 1))


def by_queries(error: float) -> Calls:
    """Call methods worse by the former test: differences beside the standard error of queries, corrected by Holm.

    That any is worse is that the largest difference passes Bonferroni's bound; the others are called less often by it.
    """

    def calls(means: FloatArray, deviations: FloatArray, seeds: int) -> NDArray[np.bool_]:
        return _differences(means) / error > scipy.stats.norm.isf(LEVEL / 2 / (means.shape[1] - 1))

    return calls


def family_wise_error(calls: Calls, deviations: ArrayLike, seeds: int, number: int, noise: Noise = NORMAL) -> float:
    """Measure how often any of equal methods is called worse."""
    return float(calls(*drawn(deviations, seeds, number, noise), seeds).any(axis=1).mean())


def power(calls: Calls, methods: int, seeds: int, number: int, below: float) -> float:
    """Measure how often a method is called worse that lies so many deviations below the others, which are equal."""
    return float(calls(*drawn(np.ones(methods), seeds, number, below=below), seeds)[:, 0].mean())


def found_worse(calls: Calls, means: FloatArray, deviations: FloatArray, seeds: int, number: int) -> float:
    """Give the mean number of methods that are called worse where published means and deviations are the true ones."""
    noise, spread = drawn(deviations, seeds, number)
    return float(calls(noise + means, spread, seeds).sum(axis=1).mean())


def error_among_unequal(calls: Calls, deviations: FloatArray, seeds: int, number: int) -> float:
    """Measure how often a method of the equal half is called worse, the others far below one after the other."""
    equal = np.arange(len(deviations)) % 2 == 0
    below = np.where(equal, 0, deviations.max() * np.arange(2, len(deviations) + 2))
    noise, spread = drawn(deviations, seeds, number)
    return float(calls(noise - below, spread, seeds)[:, equal].any(axis=1).mean())


def _differences(means: FloatArray) -> FloatArray:
    return means.max(axis=1, keepdims=True) - means


@functools.cache
def _critical_values(methods: int) -> tuple[FloatArray, FloatArray]:
    inverse = 1 / np.array([np.inf, 400, 100, 40, 20, 14, 10, 8, 6.5, 5.3, 4.5, 4, 3.5, 3, 2.6, 2.3, 2])
    return inverse, scipy.stats.studentized_range.isf(LEVEL, methods, 1 / np.maximum(inverse, 1e-5))


def _measure(settings: Settings) -> Results:
    seeds, number = settings["seeds"], settings["draws"]
    errors = []
    of_cell = {name: published_deviations(*cell[:3]) for name, cell in CELLS.items()}
    made = {"one for all": np.ones(14), "one for all ": np.ones(31), "one of five times": ONE_DEVIATES}
    for name, deviations in (of_cell | made).items():
        cells: dict[str, Callable[[], float] | None] = {
            "bootstrap over queries, Holm": None,
            "Tukey, pooled variance": functools.partial(family_wise_error, by_pooled_variance, deviations, seeds),
            "Tukey, own variances": functools.partial(family_wise_error, by_stepping_down, deviations, seeds),
        }
        for heading, noise in {
            "half of the variance shared": Noise(shared=0.5),
            "t of 4": Noise(freedom=4),
            "2 % of seeds fail": Noise(failing=0.02),
        }.items():
            cells[heading] = functools.partial(family_wise_error, by_stepping_down, deviations, seeds, noise=noise)
        cells |= {
            "half of the methods worse": functools.partial(error_among_unequal, by_stepping_down, deviations, seeds),
            "moderated variances": functools.partial(family_wise_error, by_moderated_variances, deviations, seeds),
        }
        if name in CELLS:
            former = by_queries(CELLS[name][3])
            cells["bootstrap over queries, Holm"] = functools.partial(family_wise_error, former, deviations, seeds)
        shown = {
            heading: f"{measure(number=number):.3f}" if measure else "\N{EN DASH}" for heading, measure in cells.items()
        }
        errors.append({"variances": name.strip(), "methods": len(deviations)} | shown)
    former = by_queries(CELLS["CIFAR-10, 48 bits"][3] / np.sqrt((of_cell["CIFAR-10, 48 bits"] ** 2).mean()))
    tests = {
        "bootstrap over queries": (former, seeds),
        "Tukey, pooled variance": (by_pooled_variance, seeds),
        "Tukey, own variances": (by_stepping_down, seeds),
        f"the same, {seeds + 2} seeds": (by_stepping_down, seeds + 2),
    }
    powers = [
        {"deviations below": below}
        | {name: f"{power(calls, 14, of_each, number, below):.3f}" for name, (calls, of_each) in tests.items()}
        for below in (2, 4, 6)
    ]
    worse = []
    for name, cell in FOUND.items():
        means, deviations = published(*cell)
        steps = {
            "one step": by_own_variances,
            "stepping down": by_stepping_down,
            "moderated variances": by_moderated_variances,
        }
        counts = {step: f"{found_worse(calls, means, deviations, seeds, number):.1f}" for step, calls in steps.items()}
        worse.append({"means and deviations": name, "methods": len(means)} | counts)
    return {"tables": {"errors": errors, "power": powers, "found": worse}}


VERDICTS = Benchmark(
    "verdicts",
    _measure,
    settings={"draws": 20_000, "seeds": 3},
    quick={"draws": 1_000},
    distributions=("numpy", "scipy"),
    document=PROJECT / "docs" / "evaluation.md",
)

if __name__ == "__main__":
    sys.exit(VERDICTS.main(__doc__))

"""Search space: the same ranges of rate and decay for every method, and its own weights around the authors'."""

import math
from collections.abc import Mapping
from typing import Any, Self

from optuna.distributions import FloatDistribution
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.losses import LOSS_PARAMETERS

TRIAL_SCORE = "trial_mean_average_precision"
"""What trials are judged by: tie-aware mAP of one half of the validation images against the other half."""

SIGNIFICANT_DIGITS = 3
"""Of a winner's parameters."""


class Bounds(Parameters):
    """Between which a number is drawn, uniformly in its logarithm."""

    low: PositiveFloat
    high: PositiveFloat

    @model_validator(mode="after")
    def _low_is_below_high(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"`low` is {self.low} and `high` {self.high}: low must be below high")
        return self


class TuningParameters(Parameters):
    """A search, the same for every method.

    Attributes:
        trials: number of trials of each method.
        epoch_share: share of the epochs that a method's training has, in every trial.
        learning_rate: learning rate of the trunk.
        head_rate_factor: learning rate of what lies above the trunk, as a multiple of `learning_rate`.
        weight_decay: weight decay of all weights.
        scale: scale of u, for methods whose hash layer sets one.
        decades: powers of ten by which a weight of the method's own loss may lie from the authors'.
        random_trials: number of trials drawn at random before the tree-structured Parzen estimator (Bergstra et al.
            2011), which draws the others, begins to learn.
        trials_before_pruning: number of trials whose medians the first trial that may be stopped is compared with.
        epochs_before_pruning: share of its epochs that every trial makes.

    Example:
        >>> TuningParameters(trials=4).epoch_share
        0.5
    """

    trials: PositiveInt = 20
    epoch_share: float = Field(default=0.5, gt=0, le=1)
    learning_rate: Bounds = Bounds(low=1e-3, high=1.0)
    head_rate_factor: Bounds = Bounds(low=0.1, high=10.0)
    weight_decay: Bounds = Bounds(low=1e-6, high=1e-2)
    scale: Bounds = Bounds(low=0.3, high=5.0)
    decades: float = Field(default=1.5, ge=0.01, le=30)
    random_trials: PositiveInt = 8
    trials_before_pruning: PositiveInt = 5
    epochs_before_pruning: float = Field(default=0.5, ge=0, le=1)


def search_space(method: FineTuningParameters, tuning: TuningParameters) -> dict[str, FloatDistribution]:
    """Give the ranges of a method's parameters, by dotted name.

    The loss's own numbers are those keywords of its constructor that are fractions, positive by default: the authors'
    values, which the range is centred on in its logarithm, as far as the keyword's bounds reach.

    Example:
        >>> from deephash_pipeline.losses import LOSS_PARAMETERS
        >>> training, hash_layer = {"epochs": 10, "batch_size": 64, "learning_rate": 0.05}, {"scale": 1.0}
        >>> dpsh = FineTuningParameters(loss=LOSS_PARAMETERS["dpsh"](), training=training, hash_layer=hash_layer)
        >>> for name, bounds in search_space(dpsh, TuningParameters()).items():
        ...     print(f"{name}: {bounds.low:.2g} to {bounds.high:.2g}")
        training.learning_rate: 0.001 to 1
        training.head_rate_factor: 0.1 to 10
        training.weight_decay: 1e-06 to 0.01
        hash_layer.scale: 0.3 to 5
        loss.quantisation_weight: 0.0032 to 3.2
    """
    rates = ("learning_rate", "head_rate_factor", "weight_decay")
    space: dict[str, Bounds] = {f"training.{name}": getattr(tuning, name) for name in rates}
    if method.hash_layer.scale is not None:
        space["hash_layer.scale"] = tuning.scale
    for name, field in LOSS_PARAMETERS[method.loss.name].model_fields.items():
        default = field.default
        if not isinstance(default, float) or default <= 0:
            continue
        lowest = [_bound(rule, "ge", "gt", math.inf) or 0.0 for rule in field.metadata]
        highest = [_bound(rule, "le", "lt", 0.0) or math.inf for rule in field.metadata]
        space[f"loss.{name}"] = Bounds(
            low=max([default / 10**tuning.decades, *lowest]), high=min([default * 10**tuning.decades, *highest])
        )
    return {name: FloatDistribution(bounds.low, bounds.high, log=True) for name, bounds in space.items()}


def with_values(method: FineTuningParameters, values: Mapping[str, float]) -> FineTuningParameters:
    """Give a method's parameters with some of them replaced, by dotted name.

    Raises:
        pydantic.ValidationError: a value, or a name, that the method does not take.

    Example:
        >>> method = FineTuningParameters(training={"epochs": 10, "batch_size": 64, "learning_rate": 0.05})
        >>> with_values(method, {"training.learning_rate": 0.02}).training.learning_rate
        0.02
    """
    described = method.model_dump(serialize_as_any=True)
    for name, value in nested(values).items():
        described[name] = {**described[name], **value}
    return FineTuningParameters.model_validate(described)


def nested(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Turn dotted names of two parts into a dictionary of dictionaries.

    Example:
        >>> nested({"training.learning_rate": 0.1, "loss.temperature": 2.0})
        {'training': {'learning_rate': 0.1}, 'loss': {'temperature': 2.0}}
    """
    blocks: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        block, _, key = name.partition(".")
        blocks.setdefault(block, {})[key] = value
    return blocks


def _bound(rule: Any, inclusive: str, exclusive: str, inwards: float) -> float | None:
    """Give the bound that a rule of annotated-types sets, if it does.

    For an exclusive one, the nearest number within that has so few digits as a winner: rounding does not leave it.
    """
    bound: float | None = getattr(rule, inclusive, None)
    outside: float | None = getattr(rule, exclusive, None)
    if not outside:
        return bound if outside is None else math.nextafter(outside, inwards)
    step = 10.0 ** (math.floor(math.log10(abs(outside))) - SIGNIFICANT_DIGITS + 1)
    return rounded(outside + math.copysign(step, inwards - outside))


def rounded(value: float) -> float:
    """Round to as many digits as a winner has.

    Example:
        >>> rounded(0.012345)
        0.0123
    """
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")

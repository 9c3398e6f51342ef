"""A hash function's own parameters, read off its constructor: each is written once, with its range."""

from functools import cache

import numpy as np
from pydantic import BaseModel
from sklearn.base import BaseEstimator

from deephash_pipeline.common import parameters

GIVEN_TO_ALL = ("code_length", "random_state")
"""Parameters that every hash function has; in a pipeline the cell and the experiment's seed give them."""


@cache
def hash_function_model(method: type[BaseEstimator]) -> type[BaseModel]:
    """Make the model that checks a block of YAML: the constructor's parameters but `GIVEN_TO_ALL`, and no others.

    Args:
        method: a class whose constructor annotates each parameter with its type and, by `Annotated`, its range.

    Example:
        >>> from deephash_pipeline.hashing import KSH, hash_function_model
        >>> hash_function_model(KSH).model_validate({"anchors": 30}).model_dump()
        {'anchors': 30, 'labelled_samples': 2000, 'iterations': 500}
    """
    return parameters.parameters_model(method, skip=GIVEN_TO_ALL)


def check_hash_function(estimator: BaseEstimator) -> None:
    """Refuse a hash function whose own parameters are of a wrong type or out of range.

    Raises:
        InputError: names each parameter, its value and what is allowed.
    """
    values = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params().items()
        if name not in GIVEN_TO_ALL
    }
    method = estimator.__class__
    # Strict: the method works with the value as it was given, not with what pydantic would make of it.
    parameters.check_parameters(hash_function_model(method), values, method.__name__, strict=True)

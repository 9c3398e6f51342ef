"""``deephash-pipeline parameters``: what is in force, and which file says it."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click
from kedro.framework.project import settings
from pydantic import BaseModel, ValidationError

from deephash_pipeline.cli.columns import print_columns
from deephash_pipeline.cli.project_faults import enter_project
from deephash_pipeline.cli.provenance import ENV_HELP, split_params
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import faults_in_one_line, flatten
from deephash_pipeline.project.environments import LayeredConfigLoader
from deephash_pipeline.project.origins import origins

SHARED = ("experiment", "protocol")
"""Groups that concern every method."""
UNSTATED = "default of the code"


@click.command()
@click.argument("method", required=False)
@click.option("--env", "-e", help=ENV_HELP)
@click.option("--params", type=click.UNPROCESSED, default="", help="As those of the run.", callback=split_params)
def parameters(method: str | None, env: str | None, params: dict[str, Any]) -> None:
    """Print the parameters in force, of all or of a METHOD, and the file that each comes from."""
    enter_project()
    loader = LayeredConfigLoader("conf", env, params, **settings.CONFIG_LOADER_ARGS)
    stated = origins(loader)
    if method is not None:
        stated = of_method(method, loader["parameters"], stated)
    print_columns([(name, file, json.dumps(value, ensure_ascii=False)) for name, (value, file) in stated.items()])


def of_method(
    method: str, configured: Mapping[str, Any], stated: Mapping[str, tuple[Any, str]]
) -> dict[str, tuple[Any, str]]:
    """Give the parameters of a method, with those that no file states.

    Raises:
        InputError: there is no such method, or its parameters cannot be used.
    """
    name, model = block_of(method)
    group, _, block = name.partition(".")
    given = configured.get(group, {})
    try:
        filled = model.model_validate((given.get(block) if block else given) or {})
    except ValidationError as error:
        raise InputError(f"`{name}`: {faults_in_one_line(error)}") from error
    shared = {key: value for key, value in stated.items() if key.partition(".")[0] in SHARED}
    return shared | {key: stated.get(key, (value, UNSTATED)) for key, value in flatten(name, filled).items()}


def block_of(method: str) -> tuple[str, type[BaseModel]]:
    """Name the block of a method, and what it is validated by.

    Raises:
        InputError: there is no such method.
    """
    # ruff: noqa: PLC0415 - seconds, where all parameters are asked for
    from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
    from deephash_pipeline.deephash.initialise import HashLayerInitParameters
    from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
    from deephash_pipeline.hashing import HASH_FUNCTIONS, hash_function_model
    from deephash_pipeline.pipelines.grid import METHODS, OWN_TRUNK, PRE_TRAINING

    if method in HASH_FUNCTIONS:
        return f"baseline_hashing.{method}", hash_function_model(HASH_FUNCTIONS[method])
    if method in OWN_TRUNK:
        return f"fine_tuning.{method}", FineTuningParameters
    if method not in METHODS:
        nearest = get_close_matches(method, METHODS, n=1, cutoff=0)[0]
        raise InputError(f"unknown method `{method}`: do you mean `{nearest}`? `deephash-pipeline methods` lists all")
    if method == PRE_TRAINING:
        return "hash_layer_init", HashLayerInitParameters
    return "cnn_pretraining", PreTrainingParameters

"""Description of a run in MLflow: its tags and the parameters that it reads."""

import math
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

from kedro.io import CatalogProtocol, DataCatalog
from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import seed_of_replicate
from deephash_pipeline.common.parameters import flatten
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.hook import RAW_IMAGES, command
from deephash_pipeline.project.parameters import is_parameter
from deephash_pipeline.project.tracking.store import Metric
from deephash_pipeline.provenance import code_version
from deephash_pipeline.provenance.manifest import DamagedError, read_manifest

TAGGED_PACKAGES = ("deephash-pipeline", "kedro", "mlflow", "numpy", "torch")

CODE_TAGS = {"git_commit": "mlflow.source.git.commit", "git_dirty": "git_dirty"}

LONGEST_PARAMETER = 500
SEED = "experiment.seed"
LONGEST_TAG = 5000
DEFAULT_ENVIRONMENT = "digits"
SELECTIONS = ("node_names", "tags", "from_nodes", "to_nodes", "from_inputs", "to_outputs")
"""Parameters of Kedro's session that select nodes, beside namespaces."""
MOST_PARTS_NAMED = 3
"""Selected parts that the name of a run says."""


def benchmark_of(catalog: DataCatalog) -> str:
    """Name of the benchmark, which is the experiment's."""
    parameters = as_texts("", catalog.load("parameters")) if catalog.exists("parameters") else {}
    return parameters.get("experiment.benchmark", "unnamed")


def run_name(run_params: Mapping[str, Any]) -> str:
    """Name a run by what was selected: the pipelines, and the cells or nodes, or if it is all of them the environment.

    Args:
        run_params: parameters of Kedro's session.

    Example:
        >>> run_name({"pipeline_names": ["full"], "env": None})
        'full digits'
        >>> run_name({"pipeline_names": ["evaluation"], "namespaces": ["evaluation.itq.b12"]})
        'evaluation itq.b12'
    """
    pipelines = ["full" if name == "__default__" else name for name in run_params.get("pipeline_names") or ["full"]]
    # `itq` is a namespace of several stages.
    spaces = dict.fromkeys(name.partition(".")[2] or name for name in run_params.get("namespaces") or ())
    selected = [*spaces, *(f"{key}={value}" for key in SELECTIONS for value in run_params.get(key) or ())]
    shown = selected[:MOST_PARTS_NAMED]
    if more := len(selected) - len(shown):
        shown.append(f"and {more} more")
    return f"{','.join(pipelines)} {', '.join(shown) or run_params.get('env') or DEFAULT_ENVIRONMENT}"


def run_tags(run_params: Mapping[str, Any], project: Path) -> dict[str, str]:
    """Say where, how and from what code a run is made.

    Args:
        run_params: parameters of Kedro's session.
        project: folder of the project, inside a repository if there is one.
    """
    import torch  # noqa: PLC0415 - as late as MLflow

    return {
        "mlflow.source.name": command()[:LONGEST_TAG],
        "mlflow.source.type": "LOCAL",
        "pipeline": ",".join(run_params.get("pipeline_names") or ["__default__"]),
        "environment": run_params.get("env") or DEFAULT_ENVIRONMENT,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "version.python": platform.python_version(),
        **{f"version.{package}": version(package) for package in TAGGED_PACKAGES},
        **{CODE_TAGS[key]: value for key, value in code_version(project).items() if key in CODE_TAGS},
    }


def consumed_parameters(pipeline: Pipeline, catalog: DataCatalog) -> dict[str, str]:
    """Parameters that a pipeline reads, as dotted names and short texts."""
    flat: dict[str, str] = {}
    for name in sorted(pipeline.inputs()):
        if is_parameter(name):
            flat |= as_texts(name.removeprefix("params:").removeprefix("parameters"), catalog.load(name))
    return flat


def epoch_metrics(history: Any) -> Iterator[Metric]:
    """Yield the numbers of a training history, a frame with a row per epoch, as ("<stage>/<column>", value, epoch).

    Example:
        >>> import pandas as pd
        >>> list(epoch_metrics(pd.DataFrame({"stage": ["fine_tuning"], "epoch": [3], "loss": [0.5]})))
        [('fine_tuning/loss', 0.5, 3)]
    """
    for number, row in enumerate(history.to_dict("records")):
        stage, step = row.get("stage", "training"), int(row.get("epoch", number))
        for column, value in row.items():
            if column not in ("epoch", "code_length") and is_number(value):
                yield f"{stage}/{column}", value, step


def is_number(value: Any) -> bool:
    """Whether MLflow can draw a value: neither text nor NaN nor whether something is so."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def manifest_facts(catalog: CatalogProtocol[Any, Any], name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Give the digests of a dataset, of what it was made from, and of the raw images, and all parameters behind it.

    Returns:
        Tags ``digest.<dataset>`` -> digest; parameters by dotted names; nothing without a manifest.
    """
    dataset, manifest = catalog.get(name) if name in catalog else None, None
    if isinstance(dataset, AtomicFileDataset):
        with suppress(DamagedError):
            manifest = read_manifest(dataset.filepath)
    if manifest is None:
        return {}, {}
    origin = manifest.origin
    # Which cell it is, the run says itself.
    known = {key: value for key, value in origin.parameters.items() if not key.startswith("cells.")}
    if SEED in known:
        # All cells behind a cell are of its replicate.
        of_cells = origin.parameters.keys() - known.keys()
        replicate = next((origin.parameters[key] for key in of_cells if key.endswith(".replicate")), 1)
        known["seed"] = seed_of_replicate(known[SEED], replicate)
    digests = {**origin.inputs, name: manifest.digest}
    if RAW_IMAGES in known:
        digests[RAW_IMAGES] = known.pop(RAW_IMAGES)
    return {f"digest.{key}": digest for key, digest in digests.items()}, as_texts("", known)


def stored_file(catalog: CatalogProtocol[Any, Any], name: str) -> Path | None:
    """Give the file of a dataset; None without one, or if it is not on a disk."""
    dataset = catalog.get(name) if name in catalog else None
    if not isinstance(dataset, AtomicFileDataset) or dataset.remote:
        return None
    return file if (file := Path(dataset.filepath)).is_file() else None


def as_texts(name: str, value: Any) -> dict[str, str]:
    """Turn nested parameters, pydantic models included, into dotted names and short texts."""
    return {key: str(part)[:LONGEST_PARAMETER] for key, part in flatten(name, value).items()}

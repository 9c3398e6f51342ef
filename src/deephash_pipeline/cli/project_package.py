"""Hashers of runs for other programs: ``deephash-pipeline export-huggingface`` and ``log-model``."""

from pathlib import Path

import click

from deephash_pipeline.cli.package import output_option
from deephash_pipeline.cli.project import hasher_of_run, run_catalog
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.provenance.manifest import read_manifest


@click.command("export-huggingface")
@click.argument("benchmark")
@click.argument("cell")
@output_option
def export_huggingface(benchmark: str, cell: str, output: Path) -> None:
    """Write the hasher of a CELL of a finished run of BENCHMARK as a folder to be pushed to the Hugging Face Hub."""
    from deephash_pipeline.deephash.export import export_huggingface as export  # noqa: PLC0415 - other commands need no exporter

    made = hasher_of_run(benchmark, cell)
    catalog = run_catalog(benchmark)
    metrics = catalog.load(f"{cell}.metrics") if catalog.exists(f"{cell}.metrics") else None
    stored = next(name for name in ("hasher", "encoder") if catalog.exists(f"{cell}.{name}"))
    manifest = read_manifest(project_root() / catalog.get(f"{cell}.{stored}").filepath)
    export(made, output, metrics, manifest.origin if manifest else None)
    click.echo(f"{output}: {made!r}, model.safetensors, config.json and README.md")


@click.command("log-model")
@click.argument("benchmark")
@click.argument("cell")
def log_model(benchmark: str, cell: str) -> None:
    """Log the hasher of a CELL such as itq.b48 of a finished run of BENCHMARK as a model of MLflow, and register it."""
    from deephash_pipeline.project.tracking.models import log_model as log  # noqa: PLC0415 - MLflow takes seconds
    from deephash_pipeline.project.tracking.store import MlflowStore  # noqa: PLC0415

    made = hasher_of_run(benchmark, cell)
    name = f"{benchmark}-{cell.replace('.', '-')}"
    address, folder = log(MlflowStore(project_root(), made.description.benchmark), made, name)
    click.echo(f"{address}, in {folder}")

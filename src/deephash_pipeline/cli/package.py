"""Hashers for other programs: ``deephash-pipeline export-onnx``, ``export-huggingface`` and ``log-model``."""

from pathlib import Path

import click

from deephash_pipeline.cli.hashers import named_hasher
from deephash_pipeline.cli.project import hasher_of_run, run_catalog
from deephash_pipeline.common.outputs import check_outputs
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.hamming.replacing import ONNX_HASHER
from deephash_pipeline.hashers.files import is_onnx_hasher
from deephash_pipeline.provenance.manifest import read_manifest

output_option = click.option("-o", "--output", required=True, type=click.Path(path_type=Path))


@click.command("export-onnx")
@click.argument("hasher")
@output_option
def export_onnx(hasher: str, output: Path) -> None:
    """Write HASHER as one ONNX file: uint8 images in, packed codes out.

    HASHER is a .safetensors file, pretrained:NAME, or a cell as mnist/deephash.b48. Beside the hasher of an index, as
    INDEX/hasher.onnx, it is what `serve --runtime onnx` computes with.
    """
    from deephash_pipeline.deephash.export import export_onnx as export  # noqa: PLC0415 - other commands need no exporter

    check_outputs([output], [hasher], [is_onnx_hasher], of_index=ONNX_HASHER)
    made = named_hasher(hasher, device="cpu")
    export(made, output)
    click.echo(f"{output}: {made!r}, {output.stat().st_size / 1e6:.1f} MB")


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

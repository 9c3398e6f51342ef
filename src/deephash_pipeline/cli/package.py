"""``deephash-pipeline export-onnx``: a hasher for other programs."""

from pathlib import Path

import click

from deephash_pipeline.cli.hashers import named_hasher
from deephash_pipeline.common.outputs import check_outputs
from deephash_pipeline.hamming.index_folder import ONNX_HASHER
from deephash_pipeline.hashers.files import is_onnx_hasher

output_option = click.option("-o", "--output", required=True, type=click.Path(path_type=Path))


@click.command("export-onnx")
@click.argument("hasher")
@output_option
def export_onnx(hasher: str, output: Path) -> None:
    """Write HASHER as one ONNX file: uint8 images in, packed codes out.

    HASHER is a .safetensors file, pretrained:NAME, or a cell as mnist/deephash.b48. Beside the hasher of an index, as
    INDEX/hasher.onnx, it is what `serve --runtime onnx` computes with.
    """
    check_outputs([output], [hasher], [is_onnx_hasher], of_index=ONNX_HASHER)
    made = named_hasher(hasher, device="cpu")
    from deephash_pipeline.deephash.export import export_onnx as export  # noqa: PLC0415 - other commands need no exporter

    export(made, output)
    click.echo(f"{output}: {made!r}, {output.stat().st_size / 1e6:.1f} MB")

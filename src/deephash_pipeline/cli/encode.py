"""``deephash-pipeline encode``: codes of any number of images, exactly once each."""

import click

from deephash_pipeline.cli.columns import print_left_out
from deephash_pipeline.cli.hashers import named_hasher
from deephash_pipeline.cli.options import device_option
from deephash_pipeline.common.errors import InputError


@click.command()
@click.argument("hasher")
@click.argument("source")
@click.option("-o", "--output", required=True, help="Folder of the codes, on a disk or s3://bucket/folder.")
@click.option("--workers", type=click.IntRange(1), help="Processes of one thread.  [default: one a core]")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--address", help="Of the Ray cluster, such as auto.  [default: one on this machine]")
@click.option("--images-per-block", type=click.IntRange(1), help="Images that one file has.  [default: 1024]")
@click.option("--image-column", default="image", show_default=True, help="Of Parquet files.")
@device_option
def encode(
    hasher: str,
    source: str,
    output: str,
    workers: int | None,
    engine: str,
    address: str | None,
    images_per_block: int | None,
    image_column: str,
    device: str,
) -> None:
    """Encode the images of SOURCE with HASHER into files of codes, exactly once each.

    HASHER is a .safetensors file, pretrained:NAME or a cell as mnist/deephash.b48. SOURCE is an image, or a folder of
    images, of tar shards in WebDataset's layout or of Parquet files, a glob of these, or a list: .txt, or .csv with a
    column path. All may be in an object store. The same command goes on where a killed one was.
    """
    loaded = named_hasher(hasher, "cpu")
    from deephash_pipeline.encoding import CodeFolder, EncodingWorkers, Source, encode_source  # noqa: PLC0415 - with PyTorch

    report = encode_source(
        loaded,
        Source(source, image_column),
        output,
        EncodingWorkers(workers, "ray" if engine == "ray" else "local", address, device),
        images_per_block,
    )
    there = f", {report.there} there already" if report.there else ""
    click.echo(f"{output}: {report.images} images encoded, files of codes: {report.blocks}{there}")
    print_left_out(report.broken)
    if not (report.images or any(block.names for block in CodeFolder(output))):
        raise InputError(f"no image of {source} was encoded: mend what is left out, or name other images")

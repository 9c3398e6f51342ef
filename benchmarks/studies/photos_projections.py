"""The hashers for photographs that the package ships: `python -m benchmarks.studies.photos_projections FOLDER`.

FOLDER has the photographs of Caltech-101. Their features are computed once; ITQ is fitted on them without labels, and
its numbers are stored in half precision. The network's weights stay in their own package.
"""

from pathlib import Path

import click

from deephash_pipeline import ImageHasher
from deephash_pipeline.deephash import FeatureExtractor, hasher
from deephash_pipeline.deephash.feature_hash import learned_hash
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.photographs import list_images

CODE_LENGTHS = (64, 128, 256)
NOTICE = (
    "photographs of Caltech 101 (Li, Andreeto, Ranzato and Perona, CaltechDATA 2022, CC BY 4.0), no labels; network: "
    "EfficientNet-Lite0 trained on ImageNet (Apache-2.0)"
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
def main(folder: Path) -> None:
    """Fit and write them."""
    files, _ = list_images([folder])
    extractor = FeatureExtractor.pretrained(unit_length=True, device="cpu")
    features = extractor.features([image.path for image in files])
    for code_length in CODE_LENGTHS:
        encoder, about = learned_hash(ITQ(code_length), extractor, features)
        about = about.model_copy(update={"benchmark": "photographs", "notice": NOTICE, "runtime": "torch"})
        path = Path(hasher.__file__).parent / "pretrained" / f"photos-{code_length}.safetensors"
        ImageHasher(extractor.trunk, encoder, about, "cpu").save(path, trunk=False)
        click.echo(f"{path.name}: {path.stat().st_size:,} bytes, {len(features):,} photographs")


if __name__ == "__main__":
    main()

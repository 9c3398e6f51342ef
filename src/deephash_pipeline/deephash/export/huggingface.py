"""A hasher as a folder in the layout of the Hugging Face Hub: weights, configuration, model card."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.templates import render
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.deephash.hasher import IN_FOLDER
from deephash_pipeline.hashers import HasherDescription
from deephash_pipeline.provenance import Origin

WEIGHTS, CONFIGURATION, CARD = IN_FOLDER, "config.json", "README.md"
SHOWN_METRIC = "mean_average_precision"
SHOWN_PARAMETERS = ("experiment", "cnn_pretraining", "hash_layer_init", "baseline_hashing", "fine_tuning")


def export_huggingface(
    hasher: ImageHasher, folder: str | Path, metrics: Mapping[str, Any] | None = None, origin: Origin | None = None
) -> None:
    """Write ``model.safetensors``, ``config.json`` and a model card, ``README.md``, into a new folder.

    `ImageHasher.load` reads the folder.

    Args:
        hasher: a fitted one.
        folder: new folder, or an empty one.
        metrics: metrics of the cell, as evaluation gives them; None for none.
        origin: entry of the hasher's manifest, what it was made from; None if that is not known.

    Raises:
        InputError: there is something in the folder, or it cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     export_huggingface(ImageHasher.pretrained("digits-48"), folder)
        ...     ImageHasher.load(folder).code_length, sorted(path.name for path in Path(folder).iterdir())
        (48, ['README.md', 'config.json', 'model.safetensors'])
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there and is not empty: name another folder")
    about = hasher.description
    # Written last, so that a folder with a card is whole.
    texts = {
        CONFIGURATION: json.dumps({"library_name": "deephash_pipeline", **about.model_dump(mode="json")}, indent=2)
        + "\n",
        CARD: model_card(about, metrics, origin),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        hasher.save(folder / WEIGHTS)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(folder, error) from error


def model_card(about: HasherDescription, metrics: Mapping[str, Any] | None, origin: Origin | None) -> str:
    """Write the model card: YAML that the Hub reads, then what a reader wants to know.

    Args:
        about: the hasher.
        metrics: metrics of its cell, if they were measured.
        origin: entry of its manifest, if there is one.

    Example:
        >>> card = model_card(ImageHasher.pretrained("digits-48").description, None, None)
        >>> card.startswith("---") and "were not measured" in card
        True
    """
    measured = {name: value for name, value in (metrics or {}).items() if isinstance(value, int | float)}
    parameters = origin.parameters if origin else {}
    return render(
        Path(__file__).with_name("templates") / "model_card.md.j2",
        name=f"{about.benchmark}-{about.method}-{about.code_length}",
        score=measured.get(SHOWN_METRIC),
        about=about,
        metrics=measured,
        parameters={
            name: parameters[name] for name in sorted(parameters) if name.partition(".")[0] in SHOWN_PARAMETERS
        },
        command=origin.command if origin else "",
    )

"""Hashers as models of MLflow: a folder of code, weights, signature and example that `mlflow models serve` takes."""

import io
import tempfile
from importlib.metadata import requires, version
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement
from PIL import Image

from deephash_pipeline.common.project_folder import PACKAGE
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.project.tracking.store import MlflowStore

MODEL_CODE = Path(__file__).with_name("model_code.py")


def save_model(hasher: ImageHasher, folder: Path) -> None:
    """Write a hasher as a pyfunc model: images in a column ``image`` of bytes in, packed codes out. Nothing is pickled.

    Args:
        hasher: a fitted one.
        folder: must not exist, or be empty.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_model(ImageHasher.pretrained("digits-48"), Path(folder) / "model")
        ...     sorted(path.name for path in (Path(folder) / "model").iterdir())[:4]
        ['MLmodel', 'artifacts', 'code', 'conda.yaml']
    """
    import mlflow  # noqa: PLC0415 - takes seconds
    import pandas as pd  # noqa: PLC0415
    from mlflow.models import ModelSignature  # noqa: PLC0415
    from mlflow.types import ColSpec, DataType, Schema, TensorSpec  # noqa: PLC0415

    width = -(-hasher.code_length // 8)
    signature = ModelSignature(
        inputs=Schema([ColSpec(DataType.binary, "image")]),
        outputs=Schema([TensorSpec(np.dtype(np.uint8), (-1, width))]),
    )
    about = hasher.description
    with tempfile.TemporaryDirectory() as temporary:
        stored = Path(temporary) / "hasher.safetensors"
        hasher.save(stored)
        mlflow.pyfunc.save_model(
            folder,
            python_model=str(MODEL_CODE),
            artifacts={"hasher": str(stored)},
            code_paths=[str(PACKAGE)],
            signature=signature,
            input_example=pd.DataFrame({"image": [_example(about.image_shape)]}),
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in requirements()],
            metadata=about.model_dump(mode="json"),
        )


def requirements() -> list[str]:
    """Name what the library requires, whose code is copied into the model, and MLflow."""
    found = map(Requirement, requires("deephash-pipeline") or ())
    return ["mlflow", *(requirement.name for requirement in found if requirement.marker is None)]


def log_model(store: MlflowStore, hasher: ImageHasher, name: str) -> tuple[str, Path]:
    """Save a hasher in a run of its own, and register it.

    Args:
        store: store of the experiment.
        hasher: a fitted one.
        name: name of the registered model; it gets its next version.

    Returns:
        Address of the version, such as ``models:/digits-deephash-b48/1``, and the folder of the model.
    """
    about = hasher.description
    facts = {"method": about.method, "code_length": str(about.code_length), "network": about.network}
    run, status = store.open(f"log {name}", facts), "FAILED"
    folder = store.folder(run) / "model"
    try:
        save_model(hasher, folder)
        address, status = store.register(name, run, folder.name), "FINISHED"
    finally:
        store.close(run, status)
    return address, folder


def _example(image_shape: tuple[int, int, int]) -> bytes:
    channels, height, width = image_shape
    buffer = io.BytesIO()
    Image.new("L" if channels == 1 else "RGB", (width, height), "gray").save(buffer, "PNG")
    return buffer.getvalue()

"""The code of a logged model, which MLflow runs where the model is loaded; the weights are in a safetensors file."""

from collections.abc import Mapping
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from mlflow.pyfunc.model import PythonModel, PythonModelContext
from numpy.typing import NDArray

from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.images.decoding.decode import BrokenImageError
from deephash_pipeline.images.decoding.limited import decode_limited


class HasherModel(PythonModel):
    """Contents of image files in, packed codes out."""

    def load_context(self, context: PythonModelContext) -> None:
        """Read the hasher."""
        self.hasher = ImageHasher.load(context.artifacts["hasher"])

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: Mapping[str, Any] | None = None
    ) -> NDArray[np.uint8]:
        """Hash images.

        Args:
            context: context of MLflow.
            model_input: a column ``image``, the bytes of PNG, JPEG, WebP or BMP files.
            params: none are known.

        Returns:
            uint8 of shape (n, ceil(code_length / 8)).

        Raises:
            MlflowException: an image cannot be read; its row is named.
        """
        channels, height, width = self.hasher.description.image_shape
        pixels = np.empty((len(model_input), channels, height, width), dtype=np.uint8)
        for row, content in enumerate(model_input["image"]):
            try:
                pixels[row] = decode_limited(content, (height, width), channels)
            except BrokenImageError as error:
                raise MlflowException(f"image {row}: {error}", INVALID_PARAMETER_VALUE) from error
        return self.hasher.encode(pixels)


mlflow.models.set_model(HasherModel())

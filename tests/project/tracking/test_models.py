"""A hasher as a model of MLflow: without pickle, with all that loading takes, registered, and served."""

import base64
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.models import Model

from deephash_pipeline import ImageHasher
from deephash_pipeline.project.tracking.models import log_model
from deephash_pipeline.project.tracking.store import MlflowStore
from tests.service.pictures import picture

LOAD = """
import base64, json, sys
import mlflow
import pandas as pd
model = mlflow.pyfunc.load_model(sys.argv[1])
contents = [base64.b64decode(text) for text in json.load(sys.stdin)]
codes = model.predict(pd.DataFrame({"image": contents}))
import deephash_pipeline
try:
    refusal = str(model.predict(pd.DataFrame({"image": [b"no image"]})))
except mlflow.exceptions.MlflowException as error:
    refusal = str(error)
print(json.dumps({"codes": codes.tolist(), "package": deephash_pipeline.__file__, "refusal": refusal}))
"""


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A project's folder, the address of a logged model and its folder."""
    project = tmp_path_factory.mktemp("project")
    hasher = ImageHasher.pretrained("digits-48", device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_REGISTRY_URI", f"sqlite:///{project}/other.db")
        return project, *log_model(MlflowStore(project, "digits"), hasher, "digits-deephash-b48")


def test_it_is_registered_and_lies_where_the_server_of_artifacts_looks(logged):
    project, address, folder = logged
    assert address == "models:/digits-deephash-b48/1"
    client = MlflowClient(f"sqlite:///{project}/mlflow.db")
    version = client.get_model_version("digits-deephash-b48", "1")
    run = client.get_run(version.run_id)
    assert {"method": "deephash", "code_length": "48", "network": "lenet"}.items() <= run.data.tags.items()
    assert (run.info.status, version.source) == ("FINISHED", f"{run.info.artifact_uri}/model")
    assert folder == project / "mlartifacts" / version.source.removeprefix("mlflow-artifacts:/")


def test_it_is_text_and_safetensors_with_a_signature_an_example_and_its_requirements(logged):
    _, _, folder = logged
    kinds = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert not kinds & {".pkl", ".pickle", ".pt", ".pth", ".bin"}
    assert [path.name for path in (folder / "artifacts").iterdir()] == ["hasher.safetensors"]
    model = Model.load(folder)
    assert [column.to_dict() for column in model.signature.inputs] == [
        {"type": "binary", "name": "image", "required": True}
    ]
    assert model.signature.outputs.inputs[0].shape == (-1, 6)
    assert model.metadata["class_names"] == list("0123456789")
    assert (folder / "serving_input_example.json").is_file()
    requirements = (folder / "requirements.txt").read_text().splitlines()
    assert all("==" in line and "+" not in line for line in requirements)


def test_it_loads_by_itself_where_pickles_are_refused_and_gives_the_codes_of_the_hasher(logged):
    _, _, folder = logged
    images = [picture(row) for row in range(3)]
    environment = {**os.environ, "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false"}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(folder)],
        input=json.dumps([base64.b64encode(image).decode() for image in images]),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    for number, image in enumerate(images):
        (folder.parent / f"{number}.png").write_bytes(image)
    expected = ImageHasher.pretrained("digits-48").encode([folder.parent / f"{number}.png" for number in range(3)])
    np.testing.assert_array_equal(answer["codes"], expected)
    assert answer["package"] == str(folder / "code" / "deephash_pipeline" / "__init__.py")
    assert answer["refusal"].startswith("image 0: ")

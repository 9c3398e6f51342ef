"""What `DeepHash` trains by is what environments train by."""

import pytest

from deephash_pipeline.deephash.recipes import recipe_for
from deephash_pipeline.project.environments import LayeredConfigLoader
from tests.conftest import ROOT


@pytest.mark.parametrize(("environment", "classes"), [("photographs", 11), ("cifar10_1_lite0", 10)])
def test_hash_layers_on_features_are_trained_in_python_as_by_the_environments(environment, classes):
    loader = LayeredConfigLoader(str(ROOT / "conf"), env=environment, base_env="base", default_run_env="digits")
    parameters, recipe = loader["parameters"], recipe_for("timm/tf_efficientnet_lite0", 5_000, classes, frozen=True)
    for stage, of_python in (
        (parameters["hash_layer_init"], recipe.hash_layer_init.model_dump()),
        (parameters["fine_tuning"]["deephash"], recipe.fine_tuning.model_dump()),
    ):
        for group in set(stage) & {"training", "hash_layer"}:
            configured = {name: value for name, value in stage[group].items() if name in of_python[group]}
            assert configured.items() <= of_python[group].items()
            assert configured
    configured = parameters["fine_tuning"]["deephash"]["loss"]
    assert configured.items() <= recipe.fine_tuning.loss.model_dump().items()

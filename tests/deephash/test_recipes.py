"""What `DeepHash` trains by is what environments train by."""

from deephash_pipeline.deephash.recipes import ON_FEATURES
from deephash_pipeline.project.environments import LayeredConfigLoader
from tests.conftest import ROOT


def test_hash_layers_on_features_are_trained_in_python_as_by_the_environment_of_photographs():
    loader = LayeredConfigLoader(str(ROOT / "conf"), env="photographs", base_env="base", default_run_env="digits")
    parameters = loader["parameters"]
    for stage, recipe in (
        (parameters["hash_layer_init"], ON_FEATURES.hash_layer_init),
        (parameters["fine_tuning"]["deephash"], ON_FEATURES.fine_tuning),
    ):
        of_python = recipe.model_dump()
        for group in set(stage) & {"training", "hash_layer"}:
            configured = {name: value for name, value in stage[group].items() if name in of_python[group]}
            assert configured.items() <= of_python[group].items()
            assert configured
    configured = parameters["fine_tuning"]["deephash"]["loss"]
    assert configured.items() <= ON_FEATURES.fine_tuning.loss.model_dump().items()

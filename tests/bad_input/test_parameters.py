"""Parameters that cannot be are named before the first node, each by the model of the node that reads it."""

from collections.abc import Mapping

import pytest
from kedro.framework.project import pipelines
from kedro.framework.startup import bootstrap_project
from kedro.pipeline import Pipeline
from kedro.validation.type_extractor import TypeExtractor
from omegaconf import OmegaConf

from deephash_pipeline.cli.provenance import open_catalog
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.checks import check_numbers

HUGE = "9999999999999999999999"

WRONG = [
    ("experiment.device", ["3"]),
    ("experiment.seed", ["abc", "-1", "1.5", "9223372036854775808", HUGE, "null", "[]"]),
    ("experiment.effort", ["0", "2", "abc", "-1", ".nan", ".inf"]),
    ("experiment.network", ["../lenet", "LeNet", "3", "null"]),
    ("experiment.trunk.pretrained", ["true", "perhaps"]),
    ("experiment.benchmark", ["../../../evil", ".hidden", "''", "a/b", "'a b'", "'a?b'", "null", "3"]),
    ("experiment", ["3", "null", "[]"]),
    ("data_ingestion.query_count", ["-1", "0", "many", HUGE, "1.5", ".inf"]),
    ("data_ingestion.training_count", ["0", "-3", HUGE]),
    ("data_ingestion.validation_share", ["-0.1", "1", "half", ".nan"]),
    ("data_ingestion.broken_share_limit", ["-1", "1.1", ".nan"]),
    ("cnn_pretraining", ["3", "[]"]),
    ("cnn_pretraining.training.epochs", ["-1", "1.5", "many", HUGE, ".inf", "null"]),
    ("cnn_pretraining.training.batch_size", ["0", "1", HUGE, "0.5"]),
    ("cnn_pretraining.training.chunk_size", ["0", HUGE]),
    ("cnn_pretraining.training.learning_rate", ["0", ".nan", ".inf", "-.inf", "fast"]),
    ("cnn_pretraining.training.momentum", ["1", "-1", ".nan"]),
    ("cnn_pretraining.training.weight_decay", ["-1", ".inf", ".nan"]),
    ("cnn_pretraining.training.precision", ["float16", "16"]),
    ("cnn_pretraining.training.warm_up_share", ["0", "1", ".nan"]),
    ("cnn_pretraining.training.compile", ["perhaps"]),
    ("cnn_pretraining.augmentation.shift_pixels", ["-1", "1e11", "100000000000", ".inf", HUGE]),
    ("cnn_pretraining.augmentation.rotation_degrees", ["181", "left", ".nan"]),
    ("cnn_pretraining.augmentation.scale_range", ["1", "-0.1"]),
    ("hash_layer_init.training.plateau_patience", ["0", HUGE]),
    ("hash_layer_init.training.plateau_factor", ["0", "1"]),
    ("fine_tuning.deephash", ["3"]),
    ("fine_tuning.deephash.training.batch_size", ["0.5", HUGE]),
    ("fine_tuning.deephash.hash_layer.scale", [".inf", ".nan", "-1"]),
    ("fine_tuning.dnnh.hash_layer.features_per_bit", ["-1", "many"]),
    ("fine_tuning.deephash.loss", ["3"]),
    ("baseline_hashing", ["itq"]),
    ("baseline_hashing.itq", ["3"]),
    ("baseline_hashing.itq.iterations", [HUGE, "0.5"]),
    ("baseline_hashing.ksh.iterations", ["many", HUGE, "-1"]),
    ("reporting.notes", ["3"]),
    ("hand_crafted.descriptor", ["hog"]),
]


@pytest.fixture(scope="module")
def configured(empty_project):
    """All parameters of the digits, as they are configured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(empty_project)
        bootstrap_project(empty_project)
        parameters = open_catalog(None).load("parameters")
    return parameters


@pytest.fixture(scope="module")
def models(configured):
    """Name of a group of parameters -> the models that nodes expect of it."""
    assert configured
    found = {}
    for node in {node.name: node for pipeline in pipelines.values() for node in pipeline.nodes}.values():
        for name, model in TypeExtractor({"": Pipeline([node])}).extract_types_from_pipelines().items():
            if model not in found.setdefault(name, []):
                found[name].append(model)
    return found


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG for value in values])
def test_a_wrong_parameter_is_refused_by_the_model_of_its_group_or_as_a_number(configured, models, name, value):
    changed = OmegaConf.merge(OmegaConf.create({}), OmegaConf.from_dotlist([f"{name}={value}"]))
    given = merged(configured, OmegaConf.to_container(changed))
    readers = [group for group in models if f"{name}.".startswith(f"{group}.") or f"{group}.".startswith(f"{name}.")]
    assert readers
    last, whole = name.rpartition(".")[2], name in models
    with pytest.raises(ValueError) as caught:
        for group in readers:
            for model in models[group]:
                model.model_validate(part(given, group))
        check_numbers(given)
    assert isinstance(caught.value, InputError) or last in str(caught.value) or whole


def merged(tree, other):
    if not isinstance(tree, Mapping) or not isinstance(other, Mapping):
        return other
    return {**tree, **{key: merged(tree.get(key), value) for key, value in other.items()}}


def part(tree, name):
    for key in name.split("."):
        tree = tree[key] if isinstance(tree, Mapping) else tree
    return tree

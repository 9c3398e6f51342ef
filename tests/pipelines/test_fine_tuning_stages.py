"""The stages that train a hash layer: its initialisation, and fine-tuning with every loss."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import (
    FineTuningParameters,
    HashLayerInitParameters,
    LabelledFeatures,
    PreTrainedWeights,
    TrainingSet,
)
from deephash_pipeline.deephash.fine_tune import compared_features, fine_tune
from deephash_pipeline.deephash.initialise import initialise_hash_layer
from deephash_pipeline.losses import LOSS_PARAMETERS, LOSSES, SimilarityParameters
from deephash_pipeline.pipelines.fine_tuning.nodes import (
    OtherSets,
    PreTrainedStart,
    encode_images,
    fine_tune_and_encode,
)
from deephash_pipeline.pipelines.hash_layer_init.nodes import initialise_and_encode
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from tests.pipelines.squares import (
    CLASSES,
    EXPERIMENT,
    IMAGES,
    LABELS,
    NO_IMAGES,
    QUERY_IMAGES,
    STATISTICS,
    TRAINING,
    TRAINING_SET,
    run_of,
)

RUN = run_of("deephash")


def fine_tuning_parameters(**training):
    return FineTuningParameters.model_validate({"training": {**TRAINING, **training}})


# The hash layer.


@pytest.fixture(scope="module")
def initialised(z):
    parameters = HashLayerInitParameters.model_validate({"training": TRAINING})
    return initialise_hash_layer(LabelledFeatures(z, LABELS, CLASSES), parameters, run_of("deephash_pretrained"))


def test_the_initial_code_is_the_sign_of_the_initial_hash_layer(initialised, z):
    layer, encoder, history = initialised
    u = z.astype(np.float64) @ layer["weight"].numpy().astype(np.float64).T
    np.testing.assert_array_equal(encoder.transform(z), u >= 0)
    assert history[["method", "code_length", "stage"]].drop_duplicates().values.tolist() == [
        ["deephash_pretrained", 12, "hash_layer_initialisation"]
    ]


def test_the_scale_of_the_hash_layer_does_not_hang_on_the_class_that_a_folder_lists_first():
    generator = np.random.default_rng(0)
    z = generator.normal(size=(1000, 16)).astype(np.float32)
    z[:500] = 1 + 1e-4 * z[:500]
    still = {"epochs": 1, "batch_size": 100, "learning_rate": 1e-30}
    stored, _, _ = initialise_hash_layer(
        LabelledFeatures(z, np.repeat([0, 1], 500), ["blank", "full"]),
        HashLayerInitParameters.model_validate({"training": still}),
        run_of("deephash_pretrained"),
    )
    assert 0.5 < (z @ stored["weight"].numpy().T).std(0).mean() < 2


def test_fine_tuning_starts_from_both_pre_training_stages(initialised, trunk_weights, z, query_z):
    """With steps too small to turn a sign, the code is that of pre-training."""
    layer, encoder, _ = initialised
    parameters = fine_tuning_parameters(learning_rate=1e-12)
    hasher, _ = fine_tune(TRAINING_SET, parameters, RUN, PreTrainedWeights(trunk_weights, layer))
    tuned = encode_images(hasher, EXPERIMENT, Sets(QUERY_IMAGES, IMAGES, NO_IMAGES))
    before = encode_z(encoder, Sets(query_z, z, z[:0]))
    np.testing.assert_array_equal(tuned.database, before.database)
    np.testing.assert_array_equal(tuned.query, before.query)


def test_what_a_cell_learns_does_not_depend_on_the_queries(initialised, trunk_weights, z, query_z):
    features = LabelledFeatures(z, LABELS, CLASSES)
    layers, networks = [], []
    for query, images in ((query_z, QUERY_IMAGES), (0 * query_z, QUERY_IMAGES[:2])):
        sets = Sets(query, z, z[:0])
        parameters = HashLayerInitParameters.model_validate({"training": TRAINING})
        layers.append(initialise_and_encode(features, parameters, run_of("deephash_pretrained"), sets))
        start = PreTrainedStart(PreTrainedWeights(trunk_weights, initialised[0]), sets)
        others = OtherSets(images, NO_IMAGES)
        networks.append(fine_tune_and_encode(TRAINING_SET, fine_tuning_parameters(), RUN, others, start))
    assert torch.equal(*(weights["weight"] for weights, *_ in layers))
    first, second = (hasher.trunk.state_dict() for hasher, _, _ in networks)
    assert not [name for name, tensor in first.items() if not torch.equal(tensor, second[name])]
    assert [len(codes.query) for _, _, codes in networks] == [len(QUERY_IMAGES), 2]
    np.testing.assert_array_equal(*(codes.database for _, _, codes in networks))


def test_fine_tuning_takes_over_the_augmentation_and_the_rate_that_trials_of_pre_training_chose(
    initialised, trunk_weights, z, query_z
):
    drawn = {"horizontal_flip": True, "quarter_turns": True}
    chosen = {**drawn, "rate_factor": 0.5}
    weights, sets = PreTrainedWeights(trunk_weights, initialised[0]), Sets(query_z, z, z[:0])
    others = OtherSets(QUERY_IMAGES, NO_IMAGES)
    usual = fine_tuning_parameters()
    training = usual.training.model_copy(update={"learning_rate": usual.training.learning_rate / 2})
    augmentation = usual.augmentation.model_copy(update=drawn)
    stated = usual.model_copy(update={"augmentation": augmentation, "training": training})
    following, told, neither = (
        fine_tune_and_encode(TRAINING_SET, parameters, RUN, others, PreTrainedStart(weights, sets, choice))
        for parameters, choice in ((usual, chosen), (stated, {}), (usual, {}))
    )
    states = [hasher.trunk.state_dict() for hasher, _, _ in (following, told, neither)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    assert not all(torch.equal(tensor, states[2][name]) for name, tensor in states[0].items())


# Those whose network or batches are like no other's; of the others one.
SCALED = {"centring": True, "scale": 2.0}
RIVALS = {
    "exponentiated": {},
    "cnnh": {},
    "cnnh_plus": {"initial_hash_layer": "random"},
    "dnnh": {"hash_layer": {"features_per_bit": 4, "bias": True}, "initial_hash_layer": "random"},
    "dpsh": {"hash_layer": SCALED},
    "greedy_hash": {"hash_layer": SCALED, "initial_hash_layer": "random"},
    "dsdh": {"hash_layer": SCALED},
    "cibhash": {"hash_layer": SCALED, "augmentation": {"shift_pixels": 1}},
}


@pytest.mark.parametrize("method", RIVALS)
def test_the_loss_of_a_rival_is_taken_by_name_and_trains_all_layers(initialised, trunk_weights, method):
    parameters = FineTuningParameters.model_validate({"training": TRAINING, "loss": {"name": method}, **RIVALS[method]})
    hasher, history = fine_tune(
        TRAINING_SET, parameters, run_of(method), PreTrainedWeights(trunk_weights, initialised[0])
    )
    codes = encode_images(hasher, EXPERIMENT, Sets(QUERY_IMAGES, IMAGES, NO_IMAGES))
    trunk = hasher.trunk.state_dict()
    assert codes.database.shape == (36, 2)
    assert set(trunk) == set(trunk_weights)
    frozen = LOSSES[method].reads_features
    assert all(torch.equal(trunk[name], tensor) == frozen for name, tensor in trunk_weights.items())
    assert history[["method", "stage"]].drop_duplicates().values.tolist() == [[method, "fine_tuning"]]
    assert np.isfinite(history[["loss", "u_standard_deviation"]].to_numpy()).all()


def test_a_loss_without_a_name_is_the_papers():
    parameters = FineTuningParameters.model_validate({"training": TRAINING, "loss": {"temperature": 2.0}})
    assert parameters.loss == LOSS_PARAMETERS["exponentiated"](temperature=2.0)
    assert fine_tuning_parameters().loss == LOSS_PARAMETERS["exponentiated"]()


def test_views_of_an_image_are_not_alike():
    block = {"training": TRAINING, "loss": {"name": "cibhash"}}
    with pytest.raises(ValidationError, match="cibhash compares views of an image, which are alike without augment"):
        FineTuningParameters.model_validate(block)
    FineTuningParameters.model_validate({**block, "augmentation": {"horizontal_flip": True}})


def test_a_divided_hash_layer_is_not_one_of_stage_two():
    with pytest.raises(ValidationError, match="needs `initial_hash_layer: random`"):
        FineTuningParameters.model_validate({"training": TRAINING, "hash_layer": {"features_per_bit": 50}})


def test_a_random_hash_layer_forgets_that_of_stage_two(initialised, trunk_weights):
    def projection(start, layer):
        parameters = fine_tuning_parameters(learning_rate=1e-12).model_copy(update={"initial_hash_layer": start})
        hasher, _ = fine_tune(TRAINING_SET, parameters, RUN, PreTrainedWeights(trunk_weights, layer))
        return hasher.encoder.arrays()["projection"]

    layer = initialised[0]
    other = {"weight": -layer["weight"]}
    np.testing.assert_array_equal(projection("random", layer), projection("random", other))
    np.testing.assert_allclose(projection("pre_trained", layer), -projection("pre_trained", other), rtol=1e-4)


@pytest.mark.parametrize("of", ["z", "logits"])
def test_a_share_of_the_bits_keeps_what_pre_training_found_similar(initialised, trunk_weights, softmax_weights, of):
    start = PreTrainedWeights(trunk_weights, initialised[0], softmax_weights)
    parameters = FineTuningParameters.model_validate(
        {
            "training": {**TRAINING, "epochs": 8, "learning_rate": 0.05},
            "hash_layer": {"centring": True, "scale": 3.0},
            "loss": {"loss_scale": "unit"},
            "similarity": {"share": 0.5, "of": of, "weight": 10},
        }
    )
    _, history = fine_tune(TRAINING_SET, parameters, RUN, start)
    assert history["similarity_error"].iloc[-1] < 0.9 * history["similarity_error"].iloc[0]


def test_logits_are_compared_for_the_classes_that_were_trained(trunk_weights, softmax_weights):
    two = TrainingSet(IMAGES[LABELS != 1], LABELS[LABELS != 1], STATISTICS, CLASSES)
    start = PreTrainedWeights(trunk_weights, {}, softmax_weights)
    features = [compared_features(two, SimilarityParameters(share=0.5, of=of), RUN, start) for of in ("z", "logits")]
    weight, bias = (softmax_weights[name].numpy() for name in ("weight", "bias"))
    np.testing.assert_allclose(features[1], (features[0] @ weight.T + bias)[:, [0, 2]], rtol=1e-4, atol=1e-4)


def test_without_pre_training_there_is_no_similarity_to_keep(trunk_weights):
    parameters = fine_tuning_parameters().model_copy(update={"similarity": SimilarityParameters(share=0.5)})
    with pytest.raises(InputError, match="by pre-training, and there is none: set `share` to 0"):
        fine_tune(TRAINING_SET, parameters, run_of("deephash_random_start"))


def test_logits_are_not_compared_without_the_layer_that_gives_them(initialised, trunk_weights):
    similarity = SimilarityParameters(share=0.5, of="logits")
    parameters = fine_tuning_parameters().model_copy(update={"similarity": similarity})
    with pytest.raises(InputError, match="by the softmax layer of pre-training"):
        fine_tune(TRAINING_SET, parameters, RUN, PreTrainedWeights(trunk_weights, initialised[0]))


@pytest.mark.parametrize("name", ["greedy_hash", "bihalf", "adsh"])
def test_a_loss_of_more_than_u_has_all_bits(name):
    with pytest.raises(ValidationError, match=f"`{name}` is no loss of u alone"):
        FineTuningParameters.model_validate(
            {"training": TRAINING, "loss": {"name": name}, "similarity": {"share": 0.5}}
        )


def test_training_that_diverges_is_reported_in_one_line_with_its_cell_and_the_remedy(initialised, trunk_weights):
    parameters = fine_tuning_parameters(learning_rate=1e30)
    with pytest.raises(InputError) as caught:
        fine_tune(TRAINING_SET, parameters, RUN, PreTrainedWeights(trunk_weights, initialised[0]))
    message = str(caught.value)
    assert "deephash.b12" in message
    assert "learning_rate" in message
    assert "\n" not in message

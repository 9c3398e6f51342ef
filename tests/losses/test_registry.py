"""What holds for every loss that fine-tuning takes by name."""

import inspect
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import LOSS_PARAMETERS, LOSSES, HashingLoss, build_loss
from deephash_pipeline.networks import (
    ClassificationHead,
    HashLayerParameters,
    HashNetwork,
    build_hash_layer,
    initialise,
)
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits
from deephash_pipeline.training import ArrayInputs, LabelledInputs, TrainingParameters, TrainingRun, train
from deephash_pipeline.training.gradients import LearnsCodes

CPU = torch.device("cpu")
IDENTIFIER = r"(doi:10\.\d{4,}/\S+|arXiv:\d{4}\.\d{4,5})"
WITHOUT_IDENTIFIER = {
    "greedy_hash": "NeurIPS gives no DOI, and there is no preprint",
    "greedy_hash_unsupervised": "NeurIPS gives no DOI, and there is no preprint",
    "psldh": "its DOI could not be checked: the address of the authors' code",
    "dshsd": "its DOI could not be checked: the address at the publisher",
}
CLASSES = 4
LABELS = np.arange(120) % CLASSES
CHANGED = {"exponentiated": {"loss_scale": "unit", "balance_pairs": True}}
each_loss = pytest.mark.parametrize(
    "parameters", [model(**CHANGED.get(name, {})) for name, model in LOSS_PARAMETERS.items()], ids=LOSSES
)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_loss_says_its_name_its_paper_and_what_its_constructor_needs_of_a_training_set(loss):
    keywords = inspect.signature(loss).parameters
    assert loss.display_name
    assert re.search(rf"^[A-Z].+, .+, [A-Z]\w+ 20\d\d(, ({IDENTIFIER}|https?://\S+))?$", loss.reference)
    assert list(keywords)[: len(loss.needs)] == list(loss.needs)
    assert all(keyword.default is not keyword.empty for keyword in list(keywords.values())[len(loss.needs) :])


def test_every_paper_of_a_loss_has_a_doi_or_a_number_of_arxiv():
    assert {name for name, loss in LOSSES.items() if not re.search(IDENTIFIER, loss.reference)} == set(
        WITHOUT_IDENTIFIER
    )


def test_where_a_loss_speaks_of_the_authors_code_it_says_where_that_is():
    # No repository of MDSH's authors could be checked.
    silent = {name for name, loss in LOSSES.items() if "authors' code" in loss.__doc__ and "<https" not in loss.__doc__}
    assert silent <= {"mdsh"}


@pytest.mark.parametrize("name", LOSSES)
def test_the_model_of_a_block_has_the_keywords_of_the_constructor_and_their_defaults(name):
    keywords = inspect.signature(LOSSES[name]).parameters
    expected = {key: keywords[key].default for key in keywords if key not in LOSSES[name].needs}
    assert LOSS_PARAMETERS[name]().model_dump() == {"name": name, **expected}


def outputs_for(loss, u):
    """What the network would give to the loss: with some logits or features where it wants any."""
    return (u, u.detach()[:, :CLASSES].clamp(-1, 1)) if reads_more(loss) else u


def reads_more(loss):
    return loss.classification_head is not None or loss.reads_features


def gradient(parameters, u, labels, indices=None):
    """Value, gradient for u and metrics, of a batch that is at some indices of the training set.

    Half precision is computed under `torch.autocast`, which no backward pass is to run under.
    """
    half = u.dtype in (torch.float16, torch.bfloat16)
    u = u.clone().requires_grad_()
    loss = build_loss(parameters, u.shape[1], LABELS, random_state=1)
    if isinstance(loss, LearnsCodes):
        loss.start_epoch(torch.randn(len(LABELS), u.shape[1], generator=torch.Generator().manual_seed(9)))
        loss.set_batch(torch.arange(len(u)) if indices is None else indices)
    outputs = outputs_for(loss, u)
    with torch.autocast("cpu", dtype=u.dtype if half else torch.bfloat16, enabled=half):
        value = loss(outputs, labels)
    value.backward()
    return value, u.grad, loss.metrics


@each_loss
def test_loss_and_gradient_are_finite_whatever_the_batch(parameters):
    for labels, scale in product(([2], [1, 1, 1, 1], [0, 1, 2, 3], [0, 1, 1, 3]), (0.0, 1e-20, 1e3)):
        u = torch.randn(len(labels), 8, generator=torch.Generator().manual_seed(0)) * scale
        value, found, metrics = gradient(parameters, u, torch.tensor(labels))
        assert value.ndim == 0
        assert torch.isfinite(value), (labels, scale)
        assert torch.isfinite(found).all(), (labels, scale)
        assert all(torch.isfinite(metric) for metric in metrics.values())


@each_loss
@pytest.mark.parametrize("count", [CLASSES, 12])
def test_labels_of_any_type_of_integers_are_class_numbers(parameters, count):
    u = torch.randn(count, 8, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(count) % 2
    value, slope, _ = gradient(parameters, u, labels)
    for kind in (torch.uint8, torch.int8, torch.int32):
        found = gradient(parameters, u, labels.to(kind))
        assert torch.equal(found[0], value)
        assert torch.equal(found[1], slope)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if "labels" in loss.needs])
def test_a_loss_is_made_of_labels_of_any_kind(name):
    def made(labels):
        needed = {"code_length": 8, "classes": CLASSES, "labels": labels}
        return LOSSES[name](*(needed[need] for need in LOSSES[name].needs if need in needed))

    expected = made(LABELS)
    for labels in (LABELS.astype(np.uint8), LABELS.tolist(), torch.from_numpy(LABELS)):
        assert all(torch.equal(*pair) for pair in zip(made(labels).buffers(), expected.buffers(), strict=True))


@each_loss
@pytest.mark.parametrize(("kind", "scale"), [(torch.float16, 1e3), (torch.bfloat16, 1.0), (torch.bfloat16, 1e-4)])
def test_a_loss_of_half_precision_is_that_of_the_same_numbers_in_float32(parameters, kind, scale):
    u = (torch.randn(12, 8, generator=torch.Generator().manual_seed(2)) * scale).to(kind)
    labels = torch.arange(12) % CLASSES
    value, found, metrics = gradient(parameters, u, labels)
    expected, slope, _ = gradient(parameters, u.float(), labels)
    assert torch.equal(value, expected)
    assert all(torch.isfinite(metric) for metric in metrics.values())
    assert torch.isfinite(found).all()
    assert torch.equal(found, slope.to(kind))


@each_loss
def test_the_order_of_a_batch_does_not_matter(parameters):
    if not LOSSES[parameters.name].supervised:
        pytest.skip("pairs the first half of a batch with the second")
    generator = torch.Generator().manual_seed(3)
    u, labels = torch.randn(9, 8, generator=generator, dtype=torch.float64), torch.arange(9) % CLASSES
    order = torch.randperm(9, generator=generator)
    value, found, _ = gradient(parameters, u, labels)
    other_value, other_found, _ = gradient(parameters, u[order], labels[order], order)
    torch.testing.assert_close(other_value, value)
    torch.testing.assert_close(other_found, found[order])


@each_loss
def test_metrics_are_detached_scalars_and_the_deviation_of_u_is_one_of_them(parameters):
    u = torch.randn(12, 8, generator=torch.Generator().manual_seed(5))
    _, _, metrics = gradient(parameters, u, torch.arange(12) % CLASSES)
    assert metrics["u_standard_deviation"].item() == pytest.approx(u.std().item())
    assert all(metric.ndim == 0 and not metric.requires_grad for metric in metrics.values())


@each_loss
def test_the_random_state_alone_decides_what_a_loss_draws(parameters):
    one, again = (build_loss(parameters, 12, LABELS, seed).state_dict() for seed in (7, 7))
    assert all(torch.equal(one[name], again[name]) for name in one)


NO_BATCHES = [
    (torch.ones(3), torch.zeros(3).long(), r"^u must be floating, \(batch, code_length >= 1\), got .* \(3,\)$"),
    (torch.ones(3, 8).long(), torch.zeros(3).long(), "^u must be floating.*int64"),
    ([[1.0]], torch.zeros(1).long(), "^u must be floating.*got a list"),
    (torch.ones(3, 8), torch.zeros(4).long(), r"^labels must be \(3,\) for u of 3 samples, got shape \(4,\)$"),
    (torch.ones(3, 8), torch.zeros(3, 4).long(), r"got shape \(3, 4\); several labels a sample are uint8 or bool"),
    (torch.ones(3, 8), torch.zeros(3), "^labels must be whole numbers, got torch.float32"),
    (torch.ones(3, 8), torch.zeros(3).bool(), "^labels must be whole numbers, got torch.bool"),
]


@each_loss
def test_what_is_no_batch_is_refused_in_one_line(parameters):
    loss = build_loss(parameters, 8, LABELS, 0)
    for u, labels, message in NO_BATCHES:
        with pytest.raises(InputError, match=message):
            loss((u, torch.zeros(len(labels), CLASSES)) if reads_more(loss) else u, labels)
    # What trainers of pytorch-metric-learning pass.
    u, mined = torch.ones(4, 8), tuple(torch.arange(4) for _ in range(3))
    with pytest.raises(InputError, match="takes all pairs of a batch: leave out the miner"):
        loss(outputs_for(loss, u), torch.arange(4) % CLASSES, mined)


OF_PAIRS = {"dpsh", "hashnet", "dsh", "dhn", "dch", "idhn", "dsdh", "lcdsh", "dbdh", "dshsd", "dfh"}


def weighted(name, u, labels, weights):
    torch.manual_seed(0)
    loss = build_loss(LOSS_PARAMETERS[name](), u.shape[1], LABELS, random_state=1)
    if isinstance(loss, LearnsCodes):
        loss.start_epoch(torch.randn(len(LABELS), u.shape[1], generator=torch.Generator().manual_seed(9)))
        loss.set_batch(torch.arange(len(u)))
    return loss(outputs_for(loss, u), labels, pair_weights=weights)


@pytest.mark.parametrize("name", LOSSES)
def test_pairs_of_equal_weight_cost_what_they_cost_without_and_other_losses_refuse(name):
    u = torch.randn(12, 8, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    labels = torch.arange(12) % CLASSES
    try:
        of_equal = weighted(name, u, labels, torch.full((12, 12), 0.01))
    except InputError as refusal:
        # One that is added may be of pairs or not.
        assert name not in OF_PAIRS and str(refusal).endswith("is no loss of pairs: leave out pair_weights")
    else:
        torch.testing.assert_close(of_equal, weighted(name, u, labels, None))


@pytest.mark.parametrize("name", sorted(OF_PAIRS))
def test_a_pair_of_weight_2_counts_twice_and_one_of_weight_0_is_not_there(name):
    u = torch.randn(12, 8, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    labels = torch.arange(12) % CLASSES
    weights = torch.zeros(12, 12)
    kept = torch.arange(8)
    weights[:8, :8] = 1.0
    moved = u.clone()
    moved[0] += 1
    # What a loss adds for samples is the same with and without weights, so it is taken away.
    samples = weighted(name, u, labels, torch.zeros(12, 12))
    of_kept = weighted(name, u, labels, weights) - samples
    alone = weighted(name, u[kept], labels[kept], None) - weighted(name, u[kept], labels[kept], torch.zeros(8, 8))
    torch.testing.assert_close(of_kept, alone)
    others = u.clone()
    others[8:] *= -3
    torch.testing.assert_close(
        weighted(name, others, labels, weights) - weighted(name, others, labels, torch.zeros(12, 12)), alone
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.ones(3, 4), r"^pair_weights must be floating, \(4, 4\) for 4 labels, got torch.float32 \(3, 4\)$"),
        (torch.ones(4, 4).long(), "got torch.int64"),
        ([[1.0]], "got a list"),
        (-torch.ones(4, 4), "must not be negative or NaN"),
    ],
)
def test_what_is_no_weight_of_each_pair_is_refused(weights, message):
    with pytest.raises(InputError, match=message):
        weighted("dpsh", torch.ones(4, 8), torch.arange(4) % 2, weights)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.classification_head])
def test_a_loss_that_classifies_asks_for_logits(name):
    loss = build_loss(LOSS_PARAMETERS[name](), 8, LABELS, 0)
    with pytest.raises(InputError, match=r"is called with \(\(u, logits\), labels\)"):
        loss(torch.ones(2, 8), torch.tensor([0, 1]))
    with pytest.raises(InputError, match=r"^logits must be \(batch, classes\) for 2 labels, got shape \(3, 4\)"):
        loss((torch.ones(2, 8), torch.zeros(3, 4)), torch.tensor([0, 1]))


@pytest.mark.parametrize("name", ["cnnh", "csq", "greedy_hash", "dshsd"])
@pytest.mark.parametrize("label", [-1, CLASSES])
def test_labels_of_classes_that_a_loss_was_not_made_for_are_refused(name, label):
    loss = build_loss(LOSS_PARAMETERS[name](), 8, LABELS, 0)
    with pytest.raises(InputError, match=r"^labels lie in .*, but the loss was made for the classes 0\.\.3$"):
        loss(outputs_for(loss, torch.ones(2, 8)), torch.tensor([0, label]))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cnnh", {"random_state": -1}),
        ("cnnh_plus", {"label_weight": -1}),
        ("dnnh", {"epsilon": 0.6}),
        ("dpsh", {"quantisation_weight": -0.1}),
        ("hashnet", {"likelihood_slope": 0}),
        ("greedy_hash", {"quantisation_weight": "much"}),
        ("exponentiated", {"temperature": 0}),
        ("exponentiated", {"loss_scale": "log"}),
        ("exponentiated", {"balance_pairs": "perhaps"}),
    ],
)
def test_a_wrong_keyword_is_refused_in_one_line_that_names_it(name, wrong):
    needed = {"code_length": 8, "classes": CLASSES, "labels": LABELS}
    loss = LOSSES[name]
    with pytest.raises(InputError, match=f"^{loss.__name__}: {next(iter(wrong))}: .*$") as caught:
        loss(**{need: value for need, value in needed.items() if need in loss.needs}, **wrong)
    assert "\n" not in str(caught.value)


# Training.


def clusters():
    """Points around one centre for each class, in ten dimensions."""
    generator = np.random.default_rng(4)
    centres = generator.normal(size=(CLASSES, 10))
    return (centres[LABELS] + generator.normal(scale=0.7, size=(120, 10))).astype(np.float32)


def network_for(parameters, bits):
    trunk = nn.Sequential(nn.Linear(10, 20), nn.ReLU())
    initialise(trunk, 1)
    divided = 3 if parameters.name == "dnnh" else None
    layer = build_hash_layer(20, bits, HashLayerParameters(bias=True, features_per_bit=divided), 2)
    layer.fit_scale(trunk(torch.from_numpy(clusters())).detach())
    reads = LOSSES[parameters.name].classification_head
    if reads is None:
        reads = LOSSES[parameters.name].reads_features
        return HashNetwork(trunk, layer, frozen_trunk=reads, gives_z=reads)
    classifier = ClassificationHead(reads, 20 if reads == "z" else bits, CLASSES)
    initialise(classifier, 3)
    return HashNetwork(trunk, layer, classifier)


@torch.no_grad()
def mean_average_precision_of(network):
    code = network.hash_layer.linear_code()
    bits = network.trunk(torch.from_numpy(clusters())) @ code.projection >= code.threshold
    codes = pack_bits(bits.numpy())
    return mean_average_precision(count_distances(codes, LABELS, codes, LABELS, bits.shape[1]))


@each_loss
def test_a_few_epochs_on_any_loss_make_better_codes(parameters):
    if not LOSSES[parameters.name].supervised:
        pytest.skip("keeps the similarities of its features, here those of random weights")
    network = network_for(parameters, bits=8)
    before = mean_average_precision_of(network)
    settings = TrainingParameters(epochs=15, batch_size=40, learning_rate=0.05, schedule="one_cycle")
    loss = build_loss(parameters, 8, LABELS, random_state=1)
    history = train(
        network, loss, LabelledInputs(ArrayInputs(clusters(), CPU), LABELS), settings, TrainingRun(parameters.name)
    )
    after = mean_average_precision_of(network)
    assert after > before + 0.1
    assert after > 0.85
    assert len(history) == 15


class Returning(HashingLoss):
    """Returns what it is told, made of u."""

    needs = ("returned",)
    returned: Any

    def loss_and_metrics(self, u, labels):
        return self.returned(u)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda u: (u.mean(1), {}), "a floating scalar"),
        (lambda u: u.mean(), "a floating scalar"),
        (lambda u: (1.0, {}), "a floating scalar"),
        (lambda u: (u.mean().long(), {}), "a floating scalar"),
        (lambda u: (u.mean(), {"part": 0.5}), "a dictionary of others"),
        (lambda u: (u.mean(), {"part": u.mean(0)}), "a dictionary of others"),
        (lambda u: (u.detach().mean(), {}), "without gradient: compute it from u"),
        (lambda u: (u.mean(), {"epoch": u.mean()}), "watches `epoch`"),
    ],
)
def test_what_a_loss_of_ones_own_must_not_return_is_named(returned, message):
    with pytest.raises(InputError, match=rf"^Returning.*{message}"):
        Returning(returned)(torch.ones(2, 3, requires_grad=True), torch.tensor([0, 1]))

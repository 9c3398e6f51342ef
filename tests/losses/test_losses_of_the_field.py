"""Losses of the field against their formulas, written out sample by sample, pair by pair and bit by bit."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses import LOSS_PARAMETERS, LOSSES, build_loss
from deephash_pipeline.losses.bihalf import half_and_half
from deephash_pipeline.losses.class_centres import gilbert_varshamov_distance, separated_centres, smallest_distance

CLASSES = 4


def sign(value):
    return 1.0 if value >= 0 else -1.0


def softplus(value):
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


def sigma(value):
    return 1 / (1 + math.exp(-value))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def pairs_of(u, labels):
    """(u_i, u_j, similar) of all ordered pairs; labels are sets."""
    for (u_i, l_i), (u_j, l_j) in itertools.permutations(zip(u, labels, strict=True), 2):
        yield u_i, u_j, bool(l_i & l_j)


def two_means(costs):
    """Mean over similar pairs plus mean over others, of (cost, similar)."""
    costs = list(costs)
    return mean(cost for cost, similar in costs if similar) + mean(cost for cost, similar in costs if not similar)


def lacking(u):
    """Mean square of u - sign(u) over samples and bits."""
    return mean((value - sign(value)) ** 2 for row in u for value in row)


def squared_distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def contrast(codes, labels, margin):
    distances = [(squared_distance(a, b), similar) for a, b, similar in pairs_of(codes, labels)]
    return mean(d / 2 if similar else max(margin - d, 0) / 2 for d, similar in distances)


def orthohash(u, labels, loss):
    scale = math.sqrt(len(u[0]))
    costs = []
    for u_i, own in zip(u, labels, strict=True):
        logits = [
            scale * (cosine(u_i, centre) - 0.2 * (k in own)) for k, centre in enumerate(loss.centres.double().tolist())
        ]
        normaliser = math.log(sum(map(math.exp, logits)))
        costs.append(sum((normaliser - logits[k]) / len(own) for k in own))
    return mean(costs)


def dtsh(u, labels, loss):
    costs = []
    for q, p, n in itertools.permutations(range(len(u)), 3):
        if labels[q] & labels[p] and not labels[q] & labels[n]:
            costs.append(softplus(-(dot(u[q], u[p]) / 2 - dot(u[q], u[n]) / 2 - len(u[0]) / 2)))
    return mean(costs) + 0.2 * lacking(u)


def dch(u, labels, loss):
    code_length = len(u[0])
    gamma = code_length / 3

    def cost(a, b, similar):
        d = max(code_length / 2 * (1 - cosine(a, b)), 1e-3)
        return math.log(1 + gamma / d) + (math.log(d / gamma) if similar else 0)

    ones = [1.0] * code_length
    to_codes = mean(
        math.log(1 + code_length / 2 * (1 - cosine([abs(value) for value in row], ones)) / gamma) for row in u
    )
    return two_means((cost(a, b, similar), similar) for a, b, similar in pairs_of(u, labels)) + 0.1 * to_codes


def dpn(u, labels, loss):
    centres = loss.centres.tolist()
    costs = [
        sum(max(0, 1 - value * centres[k][bit]) for k in own)
        for row, own in zip(u, labels, strict=True)
        for bit, value in enumerate(row)
    ]
    return mean(costs)


def dsh(u, labels, loss):
    pull = mean(sum(abs(abs(value) - 1) for value in row) for row in u)
    return contrast(u, labels, 2 * len(u[0])) + 0.01 * pull


def dhn(u, labels, loss):
    costs = ((softplus(dot(a, b) / 2) - similar * dot(a, b) / 2, similar) for a, b, similar in pairs_of(u, labels))
    return two_means(costs) + 0.1 * mean(math.log(math.cosh(abs(value) - 1)) for row in u for value in row)


def idhn(u, labels, loss):
    code_length = len(u[0])
    h = [[value / (1 + abs(value)) for value in row] for row in u]
    costs = []
    for (h_i, l_i), (h_j, l_j) in itertools.permutations(zip(h, labels, strict=True), 2):
        w = len(l_i & l_j) / math.sqrt(len(l_i) * len(l_j))
        t = 5 * dot(h_i, h_j) / code_length
        soft = 0.1 * code_length * ((dot(h_i, h_j) + code_length) / (2 * code_length) - w) ** 2
        costs.append(softplus(t) - w * t if w < 0.01 or w > 0.99 else soft)
    return mean(costs) + 0.1 * mean(abs(abs(value) - 1) for row in h for value in row)


def mihash(u, labels, loss):
    code_length, bins = len(u[0]), 16
    phi = [[math.tanh(value) for value in row] for row in u]

    def histogram(distances):
        width = code_length / bins
        return [mean(max(0, 1 - abs(d - at * width) / width) for d in distances) for at in range(bins + 1)]

    def entropy(histogram):
        return -sum(p * math.log(p) for p in histogram if p > 0)

    informations = []
    for i in range(len(u)):
        distances = [((code_length - dot(phi[i], phi[j])) / 2, j) for j in range(len(u)) if j != i]
        near = [d for d, j in distances if labels[i] & labels[j]]
        far = [d for d, j in distances if not labels[i] & labels[j]]
        p = len(near) / max(len(distances), 1)
        both = entropy(histogram([d for d, _ in distances]))
        informations.append(both - p * entropy(histogram(near)) - (1 - p) * entropy(histogram(far)))
    return -mean(informations)


def hashnet(u, labels, loss):
    h = [[math.tanh(loss.beta * value) for value in row] for row in u]
    products = ((10 / len(u[0]) * dot(a, b), similar) for a, b, similar in pairs_of(h, labels))
    return two_means((softplus(product) - similar * product, similar) for product, similar in products)


def lcdsh(u, labels, loss):
    costs = []
    for a, b, similar in pairs_of(u, labels):
        theta, of_codes = dot(a, b) / 2, dot(list(map(sign, a)), list(map(sign, b))) / 2
        costs.append(softplus(-theta if similar else theta) + 3 * (sigma(theta) - sigma(of_codes)) ** 2)
    return mean(costs)


def dbdh(u, labels, loss):
    h = [[min(max(value, -1), 1) for value in row] for row in u]
    likelihood = mean(softplus(-dot(a, b) / 2 if similar else dot(a, b) / 2) for a, b, similar in pairs_of(h, labels))
    return likelihood + 0.1 * mean(mean(row) ** 2 for row in h)


def psldh(u, labels, loss):
    h = [[math.tanh(value) for value in row] for row in u]
    costs = []
    for row, own in zip(h, labels, strict=True):
        logits = [
            0.2 * (dot(row, centre) - 0.2 * len(row) * (k in own)) for k, centre in enumerate(loss.centres.tolist())
        ]
        entropy = math.log(sum(map(math.exp, logits))) - logits[next(iter(own))]
        costs.append(entropy + 0.01 * sum((value - sign(value)) ** 2 for value in row))
    return mean(costs)


def mdsh(u, labels, loss):
    costs = []
    for row, own in zip(u, labels, strict=True):
        logits = [math.sqrt(len(row)) * cosine(row, centre) for centre in loss.centres.double().tolist()]
        total = sum(map(math.exp, logits))
        costs += [
            -math.log(math.exp(logit) / total) if k in own else -math.log(1 - math.exp(logit) / total)
            for k, logit in enumerate(logits)
        ]
    return 10 * mean(costs)


def dpsh(u, labels, loss):
    likelihood = mean(softplus(dot(a, b) / 2) - similar * dot(a, b) / 2 for a, b, similar in pairs_of(u, labels))
    return likelihood + 0.7 * lacking(u)


def csq(u, labels, loss):
    """Cross-entropy of (tanh u + 1) / 2, as the authors have it, and the distance of |tanh u| from 1."""
    costs = []
    for row, own in zip(u, labels, strict=True):
        for value, bit in zip(row, loss.centres[next(iter(own))].tolist(), strict=True):
            h = math.tanh(value)
            costs.append(-math.log((1 + h * bit) / 2) + 0.3 * (abs(h) - 1) ** 2)
    return mean(costs)


SLOW = (orthohash, dtsh, dch, dpn, dsh, dhn, idhn, mihash, hashnet, lcdsh, dbdh, psldh, mdsh, dpsh, csq)
OF_U = {slow.__name__: slow for slow in SLOW}
ONE_LABEL = ("psldh", "mdsh", "csq")
CHANGED = {
    **{"dpsh": {"quantisation_weight": 0.7}, "csq": {"quantisation_weight": 0.3}},
    **{"dnnh": {"epsilon": 0.5}, "cnnh_plus": {"label_weight": 0.7}},
}
# Those that read more than u, or have codes of their own, are below.
MORE = [name for name, loss in LOSSES.items() if loss.classification_head or loss.reads_features]
SEVERAL = [name for name, loss in LOSSES.items() if loss.several_labels and name not in (*MORE, "dsdh", "adsh", "dfh")]


def drawn(seed, batch, several):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(batch, 6, generator=generator, dtype=torch.float64)
    classes = torch.randint(CLASSES, (batch,), generator=generator)
    if not several:
        return u, classes, [{int(label)} for label in classes]
    labels = torch.rand(batch, CLASSES, generator=generator) < 0.3
    labels[torch.arange(batch), classes] = True
    return u, labels, [set(row.nonzero().flatten().tolist()) for row in labels]


def built(name, seed=0):
    return build_loss(LOSS_PARAMETERS[name](**CHANGED.get(name, {})), 6, np.arange(CLASSES), seed)


@pytest.mark.parametrize("name", OF_U)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000), batch=st.integers(1, 7), several=st.booleans())
def test_value_equals_the_formula_written_out(name, seed, batch, several):
    u, labels, sets = drawn(seed, batch, several and name not in ONE_LABEL)
    loss = built(name, seed)
    if name == "hashnet":
        loss.set_progress(seed / 10_000)
    assert loss(u, labels).item() == pytest.approx(OF_U[name](u.tolist(), sets, loss), abs=1e-9)


@pytest.mark.parametrize("name", [*OF_U, "dnnh"])
def test_the_gradient_is_that_of_finite_differences(name):
    u, labels, _ = drawn(1, 5, several=name not in ONE_LABEL)
    loss = built(name)
    # The signs that some of them compare u with are constants: near them nothing is differentiable.
    assert torch.autograd.gradcheck(lambda u: loss(u, labels), (0.6 + u.abs()).mul(u.sign()).requires_grad_())


def test_codes_are_watched_by_their_distance_from_u():
    loss = built("dpsh")
    loss(torch.tensor([[0.5, -2.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    assert loss.metrics["quantisation_error"].item() == pytest.approx((0.25 + 1 + 0 + 1) / 4)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_class_as_a_row_of_zeros_and_a_one_gives_the_same_loss(name):
    u, labels, _ = drawn(2, 9, several=False)
    one_hot = torch.nn.functional.one_hot(labels, CLASSES).to(torch.uint8)
    assert built(name)(u, one_hot).item() == pytest.approx(built(name)(u, labels).item(), rel=1e-12)


@pytest.fixture(scope="module")
def training_set():
    """Of 15 images u, class numbers and the batch that a step takes of them."""
    u, labels, sets = drawn(8, 15, several=False)
    return u, labels, sets, torch.tensor([3, 0, 14, 7, 2])


def flipped_in_turn(codes, costs_of):
    """Codes after each bit in turn has been chosen by its costs as -1 and as 1, sample by sample."""
    for k, i in itertools.product(range(codes.shape[1]), range(len(codes))):
        costs = {}
        for bit in (-1.0, 1.0):
            codes[i, k] = bit
            costs[bit] = costs_of(i, codes[i])
        codes[i, k] = min(costs, key=costs.get)
    return codes


def test_dsdh_solves_for_codes_from_which_labels_follow_and_pulls_u_to_them(training_set):
    u, labels, sets, batch = training_set
    loss = LOSSES["dsdh"](6, labels.numpy(), label_weight=2.0, ridge=3.0, quantisation_weight=0.5)
    loss.start_epoch(u)
    start = np.where(u.numpy() >= 0, 1.0, -1.0)
    y = np.eye(CLASSES)[labels]
    w = np.linalg.solve(start.T @ start + 3 / 2 * np.eye(6), start.T @ y)

    def cost(i, code):
        return 2 * ((y[i] - code @ w) ** 2).sum() + 0.5 * ((code - u[i].numpy()) ** 2).sum()

    np.testing.assert_array_equal(loss.codes, flipped_in_turn(start, cost))
    loss.set_batch(batch)
    rows = u[batch].tolist()
    pairs = pairs_of(rows, [sets[i] for i in batch])
    likelihood = mean(softplus(-dot(a, b) / 2 if similar else dot(a, b) / 2) for a, b, similar in pairs)
    pull = mean(squared_distance(row, loss.codes[i].tolist()) for row, i in zip(rows, batch, strict=True))
    assert loss(u[batch], labels[batch]).item() == pytest.approx(likelihood + 0.5 * pull, abs=1e-12)


def test_adsh_solves_for_codes_of_all_images_and_compares_those_of_a_batch_with_them(training_set):
    u, labels, sets, batch = training_set
    loss = LOSSES["adsh"](6, labels.numpy(), gamma=5.0)
    loss.start_epoch(u)
    h = u.tanh().numpy()
    same = np.array([[bool(a & b) for b in sets] for a in sets])
    similarity = np.where(same, 1.0, -same.sum() / (~same).sum())

    def cost(j, code):
        return ((h @ code - 6 * similarity[:, j]) ** 2).sum() + 5 * ((code - h[j]) ** 2).sum()

    np.testing.assert_array_equal(loss.codes, flipped_in_turn(np.where(h >= 0, 1.0, -1.0), cost))
    loss.set_batch(batch)
    codes = loss.codes.double().numpy()
    costs = ((h[batch] @ codes.T - 6 * similarity[batch]) ** 2).sum() + 5 * ((codes[batch] - h[batch]) ** 2).sum()
    assert loss(u[batch], labels[batch]).item() == pytest.approx(costs / (5 * 15 * 36), rel=1e-6)


def test_dfh_finds_centres_near_to_codes_and_far_from_each_other_and_pulls_u_to_codes_near_them(training_set):
    u, labels, sets, batch = training_set
    weights = {"centre_weight": 0.7, "separation_weight": 0.5, "centre_quantisation_weight": 2.0}
    loss = LOSSES["dfh"](6, labels.numpy(), margin=1.5, quantisation_weight=0.3, **weights)
    loss.start_epoch(u)
    start = torch.where(u >= 0, 1.0, -1.0)
    y = torch.nn.functional.one_hot(labels, CLASSES).double()
    centres = torch.zeros(CLASSES, 6, dtype=torch.float64, requires_grad=True)
    for step in range(200):
        near = (y @ centres - start).square().mean()
        apart = (centres @ centres.T - 6 * (2 * torch.eye(CLASSES) - 1)).square().mean()
        (gradient,) = torch.autograd.grad(near + 0.5 * apart + 2 * (centres - centres.sign()).square().mean(), centres)
        with torch.no_grad():
            centres -= 0.03 * 0.1 ** ((step > 147) + (step > 177)) * gradient
    torch.testing.assert_close(loss.relaxed_centres.double(), centres.detach(), atol=1e-4, rtol=0)
    assert torch.unique(loss.relaxed_centres.sign(), dim=0).shape == (CLASSES, 6)

    codes = [
        [sign(0.7 * sign(c) + v) for c, v in zip(centres[k], row, strict=True)]
        for k, row in zip(labels, u, strict=True)
    ]
    np.testing.assert_array_equal(loss.codes, codes)
    loss.set_batch(batch)
    rows = u[batch].tolist()
    pairs = pairs_of(rows, [sets[i] for i in batch])
    likelihood = mean(softplus(1.5 - dot(a, b) / 2 if similar else 1.5 + dot(a, b) / 2) for a, b, similar in pairs)
    pull = mean(squared_distance(row, codes[i]) / 6 for row, i in zip(rows, batch, strict=True))
    assert loss(u[batch], labels[batch]).item() == pytest.approx(likelihood + 0.3 * pull, abs=1e-12)


@pytest.mark.parametrize(("classes", "code_length"), [(2, 256), (2, 48), (10, 48)])
def test_the_descent_of_dfh_stays_in_the_valley_and_ends_at_different_centres(classes, code_length):
    labels = np.arange(200) % classes
    loss = LOSSES["dfh"](code_length, labels)
    loss.start_epoch(torch.randn(200, code_length, generator=torch.Generator().manual_seed(0)))
    assert 0.5 < loss.relaxed_centres.abs().mean() < 2
    assert len(torch.unique(loss.relaxed_centres.sign(), dim=0)) == classes


@pytest.mark.parametrize("name", ["dsdh", "adsh", "dfh"])
def test_codes_of_images_that_a_loss_has_not_been_given_are_asked_for(name, training_set):
    u, labels, _, _ = training_set
    loss = build_loss(LOSS_PARAMETERS[name](), 6, labels.numpy(), 0)
    with pytest.raises(InputError, match=f"^{name.upper()} has a code for every image: call `start_epoch`"):
        loss(u, labels)
    with pytest.raises(InputError, match=rf"^u must be \(15, 6\), .* {name.upper()} was made for, got .* \(4, 6\)"):
        loss.start_epoch(u[:4])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7))
def test_losses_that_classify_add_the_cross_entropy_to_their_own_cost(seed, batch):
    u, labels, sets = drawn(seed, batch, several=False)
    logits = torch.randn(batch, CLASSES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    entropy = mean(
        math.log(sum(map(math.exp, row))) - row[label] for row, label in zip(logits.tolist(), labels, strict=True)
    )
    h, wanted = u.tanh().tolist(), built("cnnh", seed).class_codes[labels].tolist()
    regression = mean((a - b) ** 2 for row, code in zip(h, wanted, strict=True) for a, b in zip(row, code, strict=True))
    pull = mean(abs(abs(value) - 1) ** 3 for row in u.tolist() for value in row)
    costs = {"dshsd": 0.05 * contrast(h, sets, 12), "greedy_hash": 0.1 * pull, "cnnh_plus": regression - 0.3 * entropy}
    for name, own in costs.items():
        found = built(name, seed)((u, logits), labels).item()
        assert found == pytest.approx(entropy + own, abs=1e-12), name
    assert built("cnnh", seed)(u, labels).item() == pytest.approx(regression, abs=1e-12)


@pytest.mark.parametrize("weight", [0.0, 6.0])
def test_bihalf_pairs_the_halves_of_a_batch_and_halves_each_bit(weight):
    u, _, _ = drawn(4, 8, several=False)
    x = torch.rand(8, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    codes = half_and_half(u)
    assert codes.sum(0).tolist() == [0.0] * 6
    assert all(u[codes[:, k] > 0, k].min() > u[codes[:, k] < 0, k].max() for k in range(6))
    b, features = codes.tolist(), x.tolist()
    distortion = mean((cosine(b[i], b[i + 4]) - cosine(features[i], features[i + 4])) ** 2 for i in range(4))
    loss = LOSSES["bihalf"](gamma=weight)
    expected = distortion + weight / 2 * (u - codes).square().mean().item()
    assert loss((u, x), torch.zeros(8).long()).item() == pytest.approx(expected, abs=1e-12)


def test_the_gradient_of_bihalf_is_that_of_the_codes_and_a_pull_to_them():
    u, labels, _ = drawn(5, 6, several=False)
    x = torch.rand(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    codes = half_and_half(u).requires_grad_()
    cosines = [torch.nn.functional.cosine_similarity(points[:3], points[3:]) for points in (codes, x)]
    (cosines[0] - cosines[1]).square().mean().backward()
    u.requires_grad_()
    LOSSES["bihalf"](gamma=6.0)((u, x), labels).backward()
    torch.testing.assert_close(u.grad, codes.grad + 6 * (u - codes).detach() / u.numel())


def test_greedy_hash_without_labels_is_the_distortion_of_signs_and_the_pull_of_u():
    u, labels, _ = drawn(6, 7, several=False)
    x = torch.rand(7, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    b, features = [list(map(sign, row)) for row in u.tolist()], x.tolist()
    distortion = mean((cosine(b[i], b[i + 3]) - cosine(features[i], features[i + 3])) ** 2 for i in range(3))
    pull = mean(abs(abs(value) - 1) ** 3 for row in u.tolist() for value in row)
    found = built("greedy_hash_unsupervised")((u, x), labels).item()
    assert found == pytest.approx(distortion + 0.1 * pull, abs=1e-12)


def test_greedy_hash_without_labels_gives_u_the_gradient_of_its_signs():
    u, labels, _ = drawn(6, 8, several=False)
    x = torch.rand(8, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    codes = torch.where(u >= 0, 1.0, -1.0).to(u.dtype).requires_grad_()
    cosines = [torch.nn.functional.cosine_similarity(points[:4], points[4:]) for points in (codes, x)]
    (cosines[0] - cosines[1]).square().mean().backward()
    u.requires_grad_()
    LOSSES["greedy_hash_unsupervised"](quantisation_weight=0.0)((u, x), labels).backward()
    assert codes.grad.abs().max() > 0
    torch.testing.assert_close(u.grad, codes.grad)


@pytest.mark.parametrize("odd", [0, 1])
def test_cibhash_finds_the_other_view_of_each_image_among_all_and_pulls_their_probabilities_together(odd):
    u, _, _ = drawn(9, 8 + odd, several=False)
    rows = u[:8].tolist()
    b = [list(map(sign, row)) for row in rows]
    costs = []
    for i in range(8):
        logits = {j: cosine(b[i], b[j]) / 0.5 for j in range(8) if j != i}
        costs.append(math.log(sum(map(math.exp, logits.values()))) - logits[(i + 4) % 8])

    def divergence(row, other):
        p, q = list(map(sigma, row)), list(map(sigma, other))
        return sum(x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y)) for x, y in zip(p, q, strict=True))

    both = mean((divergence(rows[i], rows[i + 4]) + divergence(rows[i + 4], rows[i])) / 2 for i in range(4))
    loss = LOSSES["cibhash"](temperature=0.5, divergence_weight=0.2)
    found = loss((u, torch.zeros(8 + odd, 3)), torch.zeros(8 + odd).long()).item()
    assert found == pytest.approx(mean(costs) + 0.2 * both, abs=1e-12)


def test_the_gradient_of_cibhash_is_that_of_the_codes_for_the_probabilities_and_half_that_of_each_divergence():
    u, labels, _ = drawn(10, 6, several=False)
    codes = torch.where(u >= 0, 1.0, -1.0).double().requires_grad_()
    cosines = torch.nn.functional.cosine_similarity(codes[:, None], codes[None], dim=2).fill_diagonal_(-math.inf)
    torch.nn.functional.cross_entropy(cosines / 0.3, torch.tensor([3, 4, 5, 0, 1, 2])).backward()
    p = u.sigmoid()
    # Of KL(sigma(u) || q): the difference of log-odds, by the derivative of p.
    of_divergence = (u - u.roll(3, 0)) * p * (1 - p) / (2 * 3)
    u.requires_grad_()
    LOSSES["cibhash"](divergence_weight=0.2)((u, torch.zeros(6, 3)), labels).backward()
    torch.testing.assert_close(u.grad, codes.grad * p * (1 - p) + 0.2 * of_divergence)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if not loss.supervised])
def test_an_unsupervised_loss_does_not_depend_on_labels(name):
    u, labels, _ = drawn(7, 8, several=False)
    x = torch.rand(8, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert built(name)((u, x), labels).item() == built(name)((u, x), labels.flip(0)).item()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 20), st.integers(6, 48))
@example(seed=515, classes=2, code_length=35)
def test_separated_centres_keep_the_distance_of_the_bound(seed, classes, code_length):
    centres = separated_centres(classes, code_length, seed)
    assert centres.shape == (classes, code_length)
    distance = gilbert_varshamov_distance(classes, code_length)
    assert classes == 1 or smallest_distance(centres) >= distance
    ball = sum(math.comb(code_length, far) for far in range(distance))
    assert classes == 1 or (classes - 1) * ball < 2**code_length

import re

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.decomposition import FastICA

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.hashing import HASH_FUNCTIONS, LinearHashFunction, hash_function_model, load_encoder
from tests.configuration import ENVIRONMENTS, configured

BENCHMARKS = sorted(set(ENVIRONMENTS) - {"digits", "digits_held_out", "digits_unseen"})

IDENTIFIER = r"(doi:10\.\d{4,}/\S+|arXiv:\d{4}\.\d{4,5})"
WITHOUT_IDENTIFIER = {
    "sh": "NIPS gives no DOI",
    "bre": "NIPS gives no DOI",
    "rotation": "NIPS gives no DOI",
    "mlh": "ICML of 2011 gives no DOI",
    "agh": "ICML of 2011 gives no DOI",
    "cosdish": "its DOI could not be checked: the address of the authors' copy",
}


@pytest.mark.parametrize("kind", HASH_FUNCTIONS)
def test_every_hash_function_is_made_and_rebuilt_by_its_name(kind, z, labels, quick):
    fitted = quick(HASH_FUNCTIONS[kind], 12, seed=3).fit(z, labels)
    rebuilt = load_encoder(kind, 12, fitted.arrays())
    assert type(rebuilt) is type(fitted) is HASH_FUNCTIONS[kind]
    codes = fitted.set_params(code_length=13).transform(z)
    assert codes.shape == (300, 12)
    assert codes.dtype == np.bool_
    np.testing.assert_array_equal(rebuilt.transform(z), codes)


@pytest.mark.parametrize("method", HASH_FUNCTIONS.values())
def test_a_block_of_yaml_takes_the_constructors_own_parameters_with_their_defaults(method):
    model, given = hash_function_model(method), method().get_params()
    assert {"code_length": 48, "random_state": 0, **model().model_dump()} == given
    for name in ("code_length", "random_state", "unheard_of"):
        with pytest.raises(ValidationError, match=rf"{name}\n.*Extra inputs are not permitted"):
            model.model_validate({name: 3})


@pytest.mark.parametrize("method", HASH_FUNCTIONS.values())
def test_every_hash_function_names_the_paper_it_comes_from_in_one_line(method):
    assert re.fullmatch(rf"[^\n]+, [^\n]+, [A-Z]+ (19|20)\d\d(, ({IDENTIFIER}|https?://\S+))?", method.reference)


def test_every_paper_of_a_hash_function_has_a_doi_or_a_number_of_arxiv():
    without = {name for name, method in HASH_FUNCTIONS.items() if not re.search(IDENTIFIER, method.reference)}
    assert without == set(WITHOUT_IDENTIFIER)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_benchmark_has_a_block_of_parameters_of_every_method(benchmark):
    blocks = configured(benchmark, "parameters", "baseline_hashing")["baseline_hashing"]
    assert set(blocks) == set(HASH_FUNCTIONS)
    for method, block in blocks.items():
        taken = hash_function_model(HASH_FUNCTIONS[method]).model_validate(block).model_dump()
        assert {name: taken[name] for name in block} == block


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"^encoder 'hamming' is unknown: choose one of lsh, pcah, itq, sh, ldah"):
        load_encoder("hamming", 12, {})


class ByComponents(LinearHashFunction):
    """Signs of independent components, by scikit-learn, whose seed has 32 bits."""

    seed = "short_seed"

    def _learn(self, z, labels):
        ica = FastICA(self.code_length, random_state=getattr(self, self.seed)).fit(z)
        return {"projection": ica.components_.T, "threshold": ica.components_ @ ica.mean_}


def test_a_seed_of_a_pipeline_is_one_of_scikit_learn_or_refused_in_one_line(z):
    seed = derive_seed(42, "by_components")
    assert seed >= 2**32
    codes = ByComponents(4, random_state=seed).fit(z).transform(z)
    np.testing.assert_array_equal(ByComponents(4, random_state=seed).fit(z).transform(z), codes)

    class WithLongSeed(ByComponents):
        seed = "random_state"

    with pytest.raises(
        InputError, match=r"^WithLongSeed: The 'random_state' .*\(a seed for scikit-learn is self\.short_seed\)$"
    ):
        WithLongSeed(4, random_state=seed).fit(z)

import numpy as np
import pytest
from sklearn.decomposition import PCA

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import ITQ, PCAH


def test_bits_are_the_signs_of_scikit_learns_principal_components(z):
    exact = z.astype(np.float64)
    components = PCA(n_components=12).fit(exact)
    hash_function = PCAH(12).fit(exact)
    same_way = np.sign((hash_function.projection_ * components.components_.T).sum(axis=0))
    np.testing.assert_allclose(hash_function.projection_ * same_way, components.components_.T, atol=1e-6)
    projected = components.transform(exact) * same_way
    clear = np.abs(projected) > 1e-5
    np.testing.assert_array_equal(hash_function.transform(exact)[clear], projected[clear] >= 0)
    assert clear.mean() > 0.99


def test_the_largest_component_of_each_direction_is_positive(z):
    projection = PCAH(12).fit(z).projection_
    assert (projection.max(axis=0) == np.abs(projection).max(axis=0)).all()


def test_features_far_from_the_origin_keep_their_codes(z):
    exact = np.round(z.astype(np.float64) * 256) / 256
    near, far = PCAH(12).fit(exact), PCAH(12).fit(exact + 4096.0)
    np.testing.assert_array_equal(near.transform(exact), far.transform(exact + 4096.0))


@pytest.mark.parametrize("method", [PCAH, ITQ])
def test_as_many_bits_as_rows_are_refused(method, z):
    method(11).fit(z[:12])
    with pytest.raises(InputError, match=r"^code_length is 12, but X of shape \(12, 20\) varies along 11 directions"):
        method(12).fit(z[:12])


def test_directions_without_variance_give_no_bits(z):
    copied = np.concatenate([z[:, :8], 3 * z[:, :8], np.ones_like(z[:, :4])], axis=1)
    PCAH(8).fit(copied)
    with pytest.raises(InputError, match=r"^code_length is 9, but X of shape \(300, 20\) varies along 8 directions"):
        PCAH(9).fit(copied)

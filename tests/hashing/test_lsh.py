import numpy as np
import pytest

from deephash_pipeline.hashing import LSH


@pytest.mark.parametrize("degrees", [5, 30, 60, 90, 135, 180])
def test_two_vectors_share_a_bit_with_probability_one_minus_their_angle_over_pi(degrees):
    angle = np.deg2rad(degrees)
    z = np.zeros((2, 10))
    z[0, 2], z[1, 2], z[1, 7] = 1.0, np.cos(angle), np.sin(angle)
    codes = np.concatenate([LSH(256, random_state=seed).fit(z).transform(z) for seed in range(40)], axis=1)
    # 10,240 independent bits: five standard deviations are at most 0.025.
    assert np.mean(codes[0] == codes[1]) == pytest.approx(1 - angle / np.pi, abs=0.025)


def test_uncentred_codes_ignore_the_length_of_a_vector(z):
    hash_function = LSH(48).fit(z)
    np.testing.assert_array_equal(hash_function.transform(z), hash_function.transform(4 * z))


def test_all_bits_of_an_all_zero_row_are_one_without_centring(z):
    assert LSH(48).fit(z).transform(np.zeros((1, 20))).all()


def test_uncentred_hyperplanes_do_not_depend_on_the_data(z):
    np.testing.assert_array_equal(LSH(48).fit(z).projection_, LSH(48).fit(2 * z[:5] + 1).projection_)
    assert not LSH(48).fit(z).threshold_.any()


def test_centring_equals_hashing_the_centred_features(z):
    exact = z.astype(np.float64)
    centred = LSH(48, random_state=3, centre=True).fit(exact)
    plain = LSH(48, random_state=3).fit(exact)
    np.testing.assert_array_equal(centred.transform(exact), plain.transform(exact - exact.mean(axis=0)))


def test_a_short_code_is_the_beginning_of_a_long_one(z):
    short, long = (LSH(code_length, random_state=2).fit(z).transform(z) for code_length in (12, 48))
    np.testing.assert_array_equal(short, long[:, :12])

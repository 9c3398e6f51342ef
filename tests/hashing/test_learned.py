import numpy as np

from deephash_pipeline.hashing import LearnedHashLayer


def test_a_response_of_exactly_zero_is_a_one():
    arrays = {"projection": np.array([[1.0, -1.0], [1.0, 1.0]]), "threshold": np.zeros(2)}
    codes = LearnedHashLayer.from_arrays(2, arrays).transform(np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(codes, [[True, True], [True, True], [True, False]])


def test_a_bit_is_right_where_float32_sums_would_not_tell_the_sides_apart():
    generator = np.random.default_rng(2)
    z = generator.random((1, 4096)).astype(np.float32)
    projection = generator.random((4096, 1)).astype(np.float32)
    threshold = (z.astype(np.float64) @ projection.astype(np.float64))[0] + np.array([-1e-9, 1e-9])
    arrays = {"projection": np.repeat(projection, 2, axis=1), "threshold": threshold}
    np.testing.assert_array_equal(LearnedHashLayer.from_arrays(2, arrays).transform(z), [[True, False]])

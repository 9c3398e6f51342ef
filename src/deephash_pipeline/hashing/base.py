"""What all hash functions share: `z` in, bits out, and named arrays that hold everything learned.

An `Encoder` maps features `z` to bits and consists of a code length and named arrays, so that it is stored without
pickle and served without the code that trained it. A `HashFunction` is an encoder that learns its arrays from `z`. One
convention holds everywhere: a bit is 1 if and only if its projection is >= 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval.codes import check_code_length

# 4 MiB of float64, so that a block and its projections stay near the processor however many rows there are.
VALUES_PER_BLOCK = 2**19


class HashParameters(BaseModel):
    """Base of each method's parameters: unknown names are refused, values cannot change after construction."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class StoredArray:
    """Shape and dtype that an encoder's array must have; axes of the same name have the same size."""

    axes: tuple[str, ...]
    dtype: type[np.number[Any]]


class Encoder(ABC):
    """Maps features `z` of shape (n, D) to bits of shape (n, code_length).

    The attributes named in `stored`, each with a trailing underscore, are all that `encode` needs. They come from
    `from_arrays` or, in a `HashFunction`, from `fit`.

    Args:
        code_length: number of bits per code, K in the paper, 1 to `longest_code`.

    Raises:
        InputError: the code length is outside 1..`longest_code`.
    """

    stored: ClassVar[Mapping[str, StoredArray]]
    longest_code: ClassVar[int] = 256

    def __init__(self, code_length: int) -> None:
        self.code_length = check_code_length(code_length, self.longest_code)
        self._features: int | None = None

    @property
    def features(self) -> int:
        """Number D of features that a row of `z` must have; InputError before there are arrays."""
        if self._features is None:
            raise InputError(f"{type(self).__name__} has learned nothing yet: call fit, or make it by from_arrays")
        return self._features

    def encode(self, z: NDArray[Any]) -> NDArray[np.bool_]:
        """Bits of each row of `z`.

        Sums run in float64, over blocks of rows of bounded size: the code of an image does not depend on the batch it
        arrives in.

        Args:
            z: features, float32 or float64, shape (n, D), finite; may be memory-mapped.

        Returns:
            Bits, bool, shape (n, code_length).

        Raises:
            InputError: the encoder has no arrays yet, or `z` has a wrong shape, a wrong dtype or values that are not
            finite.
        """
        features = self.features
        check_features(z)
        if z.shape[1] != features:
            raise InputError(
                f"z has {z.shape[1]} features per row, but this {type(self).__name__} was made for {features}: "
                "encode features from the same network layer as in fit"
            )
        codes = np.empty((z.shape[0], self.code_length), dtype=np.bool_)
        for rows in row_blocks(z):
            codes[rows] = self._encode_block(z[rows].astype(np.float64, copy=False))
        return codes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything learned, by name without the trailing underscore; InputError before there are arrays."""
        _ = self.features
        return {name: getattr(self, f"{name}_") for name in self.stored}

    @classmethod
    def from_arrays(cls, code_length: int, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild an encoder whose codes equal those of the one that gave the arrays.

        What steered the learning (seed, parameters) is not part of the arrays and takes its default.

        Args:
            code_length: number of bits per code.
            arrays: what `arrays()` returned; names, axes and dtypes as in `stored`.

        Raises:
            InputError: an array is missing, unknown, of a wrong shape or not finite.
        """
        encoder = cls(code_length)
        encoder._set_arrays(arrays)
        return encoder

    def _set_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        owner = type(self).__name__
        if set(arrays) != set(self.stored):
            raise InputError(
                f"{owner} is made of the arrays {', '.join(self.stored)}, not {', '.join(sorted(arrays)) or 'none'}: "
                "pass what arrays() of the same method returned"
            )
        sizes = {"code_length": self.code_length}
        for name, expected in self.stored.items():
            array = np.ascontiguousarray(arrays[name], dtype=expected.dtype)
            if array.ndim != len(expected.axes) or any(
                sizes.setdefault(axis, size) != size for axis, size in zip(expected.axes, array.shape, strict=True)
            ):
                wanted = ", ".join(str(sizes.get(axis, axis)) for axis in expected.axes)
                raise InputError(
                    f"array {name} of {owner} has shape {array.shape}, not ({wanted}): fit the encoder again"
                )
            if not np.isfinite(array).all():
                raise InputError(f"array {name} of {owner} holds NaN or infinity: fit the encoder again")
            setattr(self, f"{name}_", array)
        self._features = sizes["features"]

    @abstractmethod
    def _encode_block(self, z: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Bits of one block of checked rows, shape (rows, code_length)."""


class HashFunction(Encoder):
    """An encoder that learns from the training set's features.

    A method has a `display_name`, for tables and figures, and a model of its parameters.

    Args:
        code_length: number of bits per code, 1 to 256.
        seed: source of every random draw in `fit`, at least 0.
        parameters: the method's own parameters, an instance of `parameters_model`; None for its defaults.

    Raises:
        InputError: the code length, the seed or the type of the parameters is wrong.
    """

    display_name: ClassVar[str]
    parameters_model: ClassVar[type[HashParameters]]
    parameters: HashParameters

    def __init__(self, code_length: int, seed: int = 0, parameters: HashParameters | None = None) -> None:
        super().__init__(code_length)
        if seed < 0:
            raise InputError(f"seed is {seed}: choose an integer of at least 0")
        self.seed = seed
        if parameters is None:
            parameters = self.parameters_model()
        elif not isinstance(parameters, self.parameters_model):
            raise InputError(
                f"parameters of {type(self).__name__} are a {type(parameters).__name__}: "
                f"pass a {self.parameters_model.__name__}"
            )
        self.parameters = parameters

    def fit(self, z: NDArray[Any], labels: NDArray[np.int64] | None = None) -> Self:
        """Learn the hash function from the training set.

        Args:
            z: features, float32 or float64, shape (n, D), finite; may be memory-mapped.
            labels: classes, integers, shape (n,); unsupervised methods do without.

        Returns:
            The fitted hash function itself.

        Raises:
            InputError: `z` or `labels` is malformed, or `z` cannot give codes of this length.
        """
        check_features(z)
        if z.shape[0] == 0:
            raise InputError("z has no rows: fit needs the features of at least one training image")
        if labels is not None and (labels.shape != z.shape[:1] or not np.issubdtype(labels.dtype, np.integer)):
            raise InputError(
                f"labels have shape {labels.shape} and dtype {labels.dtype}: "
                f"pass one integer class for each of the {z.shape[0]} rows of z"
            )
        self._set_arrays(self._learn(z, labels))
        return self

    @abstractmethod
    def _learn(self, z: NDArray[Any], labels: NDArray[np.int64] | None) -> dict[str, NDArray[Any]]:
        """The arrays named in `stored`, from checked training features."""


def check_features(z: NDArray[Any]) -> None:
    """Refuse features that no hash function can use.

    Args:
        z: must be a float32 or float64 array of shape (n, D), D at least 1, without NaN or infinity.

    Raises:
        InputError: names what is wrong, and for NaN or infinity the number of rows.
    """
    if not isinstance(z, np.ndarray) or z.dtype not in (np.float32, np.float64):
        found = z.dtype if isinstance(z, np.ndarray) else type(z).__name__
        raise InputError(f"z is {found}: pass a NumPy array of dtype float32 or float64")
    if z.ndim != 2 or z.shape[1] == 0:
        raise InputError(f"z has shape {z.shape}: pass one row of features per image, shape (n, D)")
    broken = sum(int((~np.isfinite(z[rows])).any(axis=1).sum()) for rows in row_blocks(z))
    if broken:
        raise InputError(f"z holds NaN or infinity in {broken} of {z.shape[0]} rows: drop or recompute these rows")


def row_blocks(z: NDArray[Any], at_least: int = 1) -> Iterator[slice]:
    """Consecutive slices over the rows of `z` (n, D): as many as `VALUES_PER_BLOCK` values hold, or `at_least` rows."""
    rows_per_block = max(at_least, VALUES_PER_BLOCK // z.shape[1])
    for start in range(0, z.shape[0], rows_per_block):
        yield slice(start, start + rows_per_block)

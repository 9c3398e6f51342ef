"""Base class of encoders: features `z` in, bits out, and named arrays for everything learned.

An `Encoder` consists of a code length and named arrays, so that it is stored without pickle and served without the code
that trained it. One convention holds everywhere: a bit is 1 if and only if its projection is >= 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, dataclass_transform, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.hashing.rows import (
    LARGEST_NUMBER,
    count_broken,
    peak_of,
    refuse_broken,
    refuse_large,
    row_blocks,
)
from deephash_pipeline.retrieval.codes import check_code_length


class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
    """Codes or arrays were asked of an encoder that has learned nothing yet; scikit-learn's error and ours.

    Example:
        >>> from deephash_pipeline.hashing import PCAH
        >>> PCAH().transform([[1.0, 2.0]])
        Traceback (most recent call last):
        deephash_pipeline.hashing.encoder.NotFitted: PCAH has learned nothing yet: call fit, or make it by from_arrays
    """


@dataclass(frozen=True)
class StoredArray:
    """Shape and dtype that an encoder's array must have; axes of the same name have the same size.

    Example:
        >>> StoredArray(("features", "code_length"), np.float32).axes
        ('features', 'code_length')
    """

    axes: tuple[str, ...]
    dtype: type[np.number[Any]]


def learned(*axes: str, init: Literal[False] = False) -> Any:
    """Declare an array that is learned: a field whose name ends with an underscore, annotated by its dtype.

    As in ``anchors_: NDArray[np.float32] = learned("anchors", "features")``.

    Args:
        axes: names of the axes; those of one name have one size, ``features`` is D and ``code_length`` K.
        init: no array is given to the constructor.
    """
    return field(init=init, metadata={"axes": axes})


def _number_of(annotation: Any) -> Any:
    """float32 of NDArray[float32], which is ndarray[..., dtype[float32]] or, in NumPy 2.5, an alias of one argument."""
    arguments = get_args(annotation)
    return _number_of(arguments[-1]) if arguments else annotation


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field, learned))
class _OfFields:
    """Makes of the annotated attributes of its subclasses the keywords of their constructors, and `stored`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        cls.stored = {  # type: ignore[attr-defined]
            array.name.removesuffix("_"): StoredArray(array.metadata["axes"], _number_of(array.type))
            for array in fields(cls)  # type: ignore[arg-type]
            if array.metadata
        }


class Encoder(_OfFields, BaseEstimator, ABC):  # type: ignore[misc]
    """Maps features of shape (n, D) to bits of shape (n, code_length).

    The fields that are `learned`, whose names end with an underscore, are all that `transform` needs. They come from
    `from_arrays` or, in a `HashFunction`, from `fit`.

    Args:
        code_length: number of bits per code, K in the paper, 1 to 4,096.

    Attributes:
        stored: shape and dtype of what is learned, by name without the underscore.
        n_features_in_: D, the number of features that a row must have.

    Example:
        >>> import numpy as np
        >>> from deephash_pipeline.hashing import LinearEncoder
        >>> encoder = LinearEncoder.from_arrays(1, {"projection": [[1.0], [1.0]], "threshold": [0.5]})
        >>> encoder.transform([[0, 0], [0, 1]]).tolist()
        [[False], [True]]
    """

    stored: ClassVar[Mapping[str, StoredArray]]
    code_length: int = field(kw_only=False)
    n_features_in_: int = field(init=False)

    @own_settings()
    def transform(self, X: Any) -> NDArray[np.bool_]:
        """Bits of each row.

        Sums run in float64, over blocks of rows of bounded size: the code of an image does not depend on the batch it
        arrives in. float32 and float64 arrays in C order are read in place and once, memory-mapped ones too.

        Args:
            X: features, any array-like of finite numbers, shape (n, D).

        Returns:
            Bits, bool, shape (n, code_length).

        Raises:
            InputError: the encoder has no arrays yet, or `X` has a wrong shape, values that are not finite
                or beyond 1e30.
        """
        self._check_fitted()
        z = self._validated(X, reset=False, ensure_min_samples=0)
        codes = np.empty((len(z), self._n_features_out), dtype=np.bool_)
        for rows, outputs in self._outputs_by_block(z):
            codes[rows] = outputs >= 0
        return codes

    @own_settings()
    def outputs(self, X: Any) -> NDArray[np.float64]:
        """The real numbers whose signs are the bits, float64 (n, code_length); see `transform`.

        Example:
            >>> from deephash_pipeline.hashing import LinearEncoder
            >>> LinearEncoder.from_arrays(1, {"projection": [[1.0], [1.0]], "threshold": [0.5]}).outputs([[0, 1]])
            array([[0.5]])
        """
        self._check_fitted()
        z = self._validated(X, reset=False, ensure_min_samples=0)
        outputs = np.empty((len(z), self._n_features_out))
        for rows, of_block in self._outputs_by_block(z):
            outputs[rows] = of_block
        return outputs

    def _outputs_by_block(self, z: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        broken, peak = 0, 0.0
        for rows in row_blocks(z):
            block = z[rows].astype(np.float64, copy=False)
            broken += count_broken(block)
            peak = max(peak, peak_of(block))
            if not broken and peak <= LARGEST_NUMBER:
                yield rows, self._outputs(block)
        refuse_broken(broken, len(z))
        refuse_large(peak)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything learned, by name without the trailing underscore; InputError before there are arrays."""
        self._check_fitted()
        return {name: getattr(self, f"{name}_") for name in self.stored}

    @classmethod
    def from_arrays(cls, code_length: int, arrays: Mapping[str, Any]) -> Self:
        """Rebuild an encoder whose codes equal those of the one that gave the arrays.

        What steered the learning (`random_state`, the method's parameters) is not part of the arrays and takes its
        default.

        Args:
            code_length: number of bits per code.
            arrays: arrays that `arrays()` returned; names, axes and dtypes as in `stored`.

        Raises:
            InputError: the code length is outside 1..4096, or an array is missing, unknown, of a wrong shape
                or not finite.
        """
        encoder = cls(check_code_length(code_length))
        encoder._set_arrays(arrays)
        return encoder

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_n_features_out")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(f"{type(self).__name__} has learned nothing yet: call fit, or make it by from_arrays")

    def _validated(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """`X`, or `X` and `y`, as arrays, by scikit-learn's check, whose errors are put into one line."""
        try:
            # Values that are not finite are counted block by block. In one order, for sums round by the layout.
            kinds = {"dtype": (np.float64, np.float32), "order": "C", "ensure_all_finite": False}
            return validate_data(self, X, y, **kinds, **options)
        except ValueError as error:
            raise InputError(" ".join(str(error).split())) from error
        except TypeError as error:
            # Of other types scikit-learn wants TypeErrors.
            if "NAType" not in str(error):
                raise
            raise InputError("X has missing values (pd.NA): fill them, or leave out their rows") from error

    def _set_arrays(self, arrays: Mapping[str, Any]) -> None:
        owner = type(self).__name__
        if not isinstance(arrays, Mapping):
            raise InputError(f"{owner} is made of a dictionary of arrays, not of a {type(arrays).__name__}")
        if set(arrays) != set(self.stored):
            raise InputError(
                f"{owner} is made of the arrays {', '.join(self.stored)}, not {', '.join(sorted(arrays)) or 'none'}: "
                "pass what arrays() of the same method returned"
            )
        sizes = {"code_length": self.code_length}
        for name, expected in self.stored.items():
            try:
                array = np.ascontiguousarray(arrays[name], dtype=expected.dtype)
            except (TypeError, ValueError, OverflowError) as error:
                kind = np.dtype(expected.dtype).name
                message = f"array {name} of {owner} is no array of {kind} ({error}): fit the encoder again"
                raise InputError(message) from error
            if array.ndim != len(expected.axes) or any(
                sizes.setdefault(axis, size) != size for axis, size in zip(expected.axes, array.shape, strict=True)
            ):
                wanted = ", ".join(str(sizes.get(axis, axis)) for axis in expected.axes)
                raise InputError(
                    f"array {name} of {owner} has shape {array.shape}, not ({wanted}): fit the encoder again"
                )
            if not np.isfinite(array).all():
                raise InputError(f"array {name} of {owner} contains NaN or infinity: fit the encoder again")
            setattr(self, f"{name}_", array)
        self.n_features_in_, self._n_features_out = sizes["features"], self.code_length

    @abstractmethod
    def _outputs(self, z: Any, xp: Any = np) -> Any:
        """Numbers of which a bit is 1 where its number is at least 0, shape (rows, code_length).

        Args:
            z: float64, a block of checked rows.
            xp: module of the functions that compute: NumPy, or PyTorch where an export traces them.
        """


def doubles(xp: Any, *arrays: NDArray[Any]) -> Any:
    """Give stored arrays to a module that computes, in float64."""
    return (xp.asarray(array, dtype=xp.float64) for array in arrays)

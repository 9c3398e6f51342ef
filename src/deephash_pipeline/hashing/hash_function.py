"""Base class of hash functions: encoders that learn their arrays by `fit`, as transformers of scikit-learn."""

from abc import abstractmethod
from dataclasses import field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.hashing.encoder import Encoder
from deephash_pipeline.hashing.parameters import check_hash_function
from deephash_pipeline.hashing.rows import Ints, count_broken, refuse_broken, refuse_extreme, row_blocks
from deephash_pipeline.retrieval.codes import check_code_length


class HashFunction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Encoder):  # type: ignore[misc]
    """An encoder that learns from the training set's features.

    As a transformer of scikit-learn it takes part in pipelines, `clone` copies it unfitted, and the constructor only
    stores its parameters, which `fit` checks. A method's own are fields, given by keyword.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        random_state: seed of every random draw in `fit`, an integer of at least 0; methods that draw nothing ignore it.

    Attributes:
        display_name: name of the method, in tables and figures.
        reference: the paper that the method comes from, in one line.
        supervised: True if `fit` needs classes.
        several_labels: True if a row may have any number of labels; rows that share one are then similar.

    Example:
        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import Normalizer
        >>> from deephash_pipeline.hashing import ITQ
        >>> z = np.random.default_rng(0).normal(size=(500, 32))
        >>> make_pipeline(Normalizer(), ITQ(code_length=12)).fit_transform(z).shape
        (500, 12)
    """

    display_name: ClassVar[str]
    reference: ClassVar[str]
    supervised = False
    several_labels: ClassVar[bool] = False
    code_length: int = field(default=48, kw_only=False)
    random_state: int = 0

    @own_settings()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hash function from the training set.

        Args:
            X: features, any array-like of finite numbers, shape (n, D), n at least 2; float32 and float64 arrays in
                C order are read in place, memory-mapped ones too.
            y: the class of each row, integers or strings, shape (n,); or, for a method with `several_labels`, 0 and 1
                of shape (n, classes), 1 for each label that a row has. Ignored by a method that is not `supervised`.

        Returns:
            The fitted hash function itself.

        Raises:
            InputError: a parameter, `X` or `y` is malformed, or `X` cannot give codes of this length.
        """
        check_code_length(self.code_length)
        if not isinstance(self.random_state, Integral) or self.random_state < 0:
            raise InputError(f"random_state is {self.random_state!r}: choose an integer of at least 0")
        check_hash_function(self)
        z, labels = self._validated_training_set(X, y)
        refuse_broken(sum(count_broken(z[rows]) for rows in row_blocks(z)), len(z))
        refuse_extreme(z)
        self._set_arrays(self._learned(z, labels))
        self._check_outputs(z[:2].astype(np.float64))
        return self

    @property
    def short_seed(self) -> int:
        """`random_state` as estimators of scikit-learn take it, below 2**32; that of a pipeline has 63 bits."""
        return int(self.random_state) % 2**32

    def _learned(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        try:
            return self._learn(z, labels)
        except ValueError as error:
            # Of a private module of scikit-learn.
            if type(error).__name__ != "InvalidParameterError":
                raise
            remedy = " (a seed for scikit-learn is self.short_seed)" if "random_state" in str(error) else ""
            raise InputError(f"{type(self).__name__}: {' '.join(str(error).split())}{remedy}") from error

    def transform(self, X: Any) -> Any:
        """Bits of each row, as every encoder gives them; a frame after `set_output(transform="pandas")`.

        Defined here, as scikit-learn wraps what its mixin's own subclass defines.
        """
        return super().transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.supervised
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_outputs(self, z: NDArray[np.float64]) -> None:
        """Refuse a method that gives no number for each bit, or other ones once its arrays alone are stored."""
        name, wanted = type(self).__name__, (len(z), self.code_length)
        outputs = np.asarray(self._outputs(z))
        if outputs.dtype.kind != "f" or outputs.shape != wanted or np.isnan(outputs).any():
            raise InputError(
                f"{name}: _outputs gave {outputs.dtype} of shape {outputs.shape}: return floating numbers without NaN "
                f"of shape {wanted}"
            )
        try:
            stored = self.from_arrays(self.code_length, self.arrays())
        except TypeError as error:
            raise InputError(f"{name}: {error}: give each parameter a default") from error
        if not np.array_equal(stored._outputs(z), outputs):
            raise InputError(f"{name}: _outputs reads what is not stored: take it from arrays that are `learned`")

    def _validated_training_set(self, X: Any, y: Any) -> tuple[NDArray[Any], Ints]:
        if not self.supervised:
            return self._validated(X, ensure_min_samples=2), np.empty(0, np.int64)
        name = type(self).__name__
        if y is None:
            raise InputError(
                f"{name} requires y to be passed, but the target y is None: give the class of each row of X, "
                "or take a method that does without, such as ITQ or BRE(supervised=False)"
            )
        if (several := _several_labels(y)) is not None:
            return self._validated_several(X, several)
        z, y = self._validated(X, y, ensure_min_samples=2)
        if y.dtype.kind == "f" and (y % 1).any():
            raise InputError(f"{name} learns from classes, but y contains fractions: give one class for each row of X")
        try:
            classes, labels = np.unique(y, return_inverse=True)
        except TypeError as error:
            raise InputError(f"y mixes classes that cannot be compared ({error}): give integers or strings") from error
        if len(classes) == 1:
            raise InputError(f"y names one class only, but {name} learns from differences: give at least two classes")
        return z, labels

    def _validated_several(self, X: Any, y: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
        if not self.several_labels:
            raise InputError(f"{type(self).__name__}: this method needs one label an image; take another, such as KSH")
        z = self._validated(X, ensure_min_samples=2)
        if len(y) != len(z):
            raise InputError(f"y has {len(y)} rows: give 0 and 1 for each of {len(z)} rows of X")
        if not np.isin(y, (0, 1)).all():
            raise InputError(
                f"y of shape {y.shape} has values other than 0 and 1: give 1 for each label that a row has, or one "
                f"class for each row, shape ({len(z)},)"
            )
        if (y == y[0]).all():
            raise InputError(f"{type(self).__name__} learns from differences, but all rows of y are alike")
        return z, y.astype(np.int64)

    @abstractmethod
    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        """The arrays named in `stored`.

        Args:
            z: checked features, float32 or float64, shape (n, D).
            labels: classes as 0..C-1, C at least 2, shape (n,), or multi-hot, shape (n, C); empty if not `supervised`.

        Draws come from ``numpy.random.default_rng(self.random_state)``, or in scikit-learn from `short_seed`.
        """


def _several_labels(y: Any) -> NDArray[Any] | None:
    """`y` as an array (n, classes) if a row may have several labels; None if it names one class a row."""
    if issparse(y):
        raise InputError("y is sparse: give an array, y.toarray()")
    try:
        labels = np.asarray(y)
    except ValueError:  # rows of different lengths, which scikit-learn's check refuses
        return None
    if labels.dtype == object and any(type(label).__name__ == "NAType" for label in labels.flat):
        raise InputError("y has missing values: give the class of every row")
    one_column = labels.ndim == 2 and labels.shape[1] == 1 and labels.dtype not in (np.uint8, np.bool_)
    return labels if labels.ndim == 2 and not one_column else None

"""Parameters written once, as keywords of a constructor: what pydantic needs to know of them is read from there.

A keyword says its type, its bounds and its default where it is declared, ``samples: PositiveInt = 5000``.
`parameters_model` makes the model that a block of YAML is validated by from it; `validated` checks what Python code
passes by the same rules.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from deephash_pipeline.common.errors import InputError

P = ParamSpec("P")


class Parameters(BaseModel):
    """Base of models of parameters: unknown names are refused, values cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def flatten(name: str, value: Any) -> dict[str, Any]:
    """Turn nested mappings and models into dotted names and values.

    Example:
        >>> flatten("clock", {"hands": {"hour": 1, "minute": 2}})
        {'clock.hands.hour': 1, 'clock.hands.minute': 2}
    """
    value = value.model_dump(serialize_as_any=True) if isinstance(value, BaseModel) else value
    if not isinstance(value, Mapping) or (name and not value):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, part in value.items():
        flat |= flatten(f"{name}.{key}" if name else str(key), part)
    return flat


Model = TypeVar("Model", bound=BaseModel)


def parameters_model(
    owner: Callable[..., Any],
    skip: Collection[str] = (),
    base: type[Model] = Parameters,  # type: ignore[assignment]
    **fields: Any,
) -> type[Model]:
    """Make a pydantic model of a constructor's keywords.

    Args:
        owner: a class, or its ``__init__``.
        skip: keywords that are no parameters of the model, such as ``code_length`` and ``random_state``.
        base: class that the model extends; by default unknown names are refused and values cannot be changed.
        fields: further fields, as `pydantic.create_model` takes them.

    Example:
        >>> from typing import Annotated
        >>> from pydantic import Field
        >>> class Clock:
        ...     def __init__(self, owner: str, hands: Annotated[int, Field(ge=1)] = 2) -> None: ...
        >>> model = parameters_model(Clock, skip=["owner"])
        >>> model.__name__, model().model_dump(), model(hands=3).hands
        ('ClockParameters', {'hands': 2}, 3)
    """
    init: Callable[..., Any] = owner.__init__ if isinstance(owner, type) else owner  # type: ignore[misc]
    hints = get_type_hints(init, include_extras=True)
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    keywords = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(init).parameters.items()
        if name != "self" and name not in skip and parameter.kind not in variable
    }
    title = f"{init.__qualname__.removesuffix('.__init__').rpartition('.')[2]}Parameters"
    return create_model(title, __base__=base, **fields, **keywords)  # type: ignore[no-any-return, call-overload]


def check_parameters(
    model: type[BaseModel], values: Mapping[str, Any], owner: str, strict: bool | None = None
) -> dict[str, Any]:
    """Validate values by a model, and return them as the types that it wants.

    Args:
        model: model that `parameters_model` made.
        values: values by name.
        owner: name of the class whose they are, for the message.
        strict: True to refuse values of other types instead of converting them.

    Raises:
        InputError: one line with every value that is wrong.

    Example:
        >>> class Clock:
        ...     def __init__(self, hands: int = 2) -> None: ...
        >>> check_parameters(parameters_model(Clock), {"hands": "3"}, "Clock")
        {'hands': 3}
        >>> check_parameters(parameters_model(Clock), {"hands": "two"}, "Clock")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: Clock: hands: Input should be a valid integer, ... (got 'two')
    """
    try:
        checked = model.model_validate(dict(values), strict=strict)
    except ValidationError as error:
        raise InputError(f"{owner}: {faults_in_one_line(error)}") from error
    taken = {name: getattr(checked, name) for name in values}
    refuse_booleans_for_numbers(values, taken, owner)
    return taken


def refuse_booleans_for_numbers(given: Mapping[str, Any], taken: Any, owner: str) -> None:
    """Refuse a truth value where pydantic has made a number of it.

    Args:
        given: values by name, as they were written.
        taken: a model, or values by name, as they were understood.
        owner: name of the class whose they are, for the message.

    Raises:
        InputError: one is.

    Example:
        >>> refuse_booleans_for_numbers({"hands": True}, {"hands": 1}, "Clock")
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: Clock: hands is true, and a number is wanted
    """
    taken = getattr(taken, "root", taken)
    for name, value in given.items():
        of_name = taken.get(name) if isinstance(taken, Mapping) else getattr(taken, str(name), None)
        if isinstance(value, Mapping):
            refuse_booleans_for_numbers(value, of_name, f"{owner}.{name}")
        elif any(map(_is_number_for_boolean, *_in_rows(value, of_name))):
            raise InputError(f"{owner}: {name} is {str(value).lower()}, and a number is wanted")


def _in_rows(value: Any, taken: Any) -> tuple[list[Any], list[Any]]:
    rows = isinstance(value, list | tuple) and isinstance(taken, list | tuple)
    return (list(value), list(taken)) if rows else ([value], [taken])


def _is_number_for_boolean(value: Any, taken: Any) -> bool:
    return isinstance(value, bool) and isinstance(taken, int | float) and not isinstance(taken, bool)


def faults_in_one_line(error: ValidationError) -> str:
    """Return every wrong parameter with what is wrong about it: ``name: message (got value); other: message``."""
    return "; ".join(map(_fault_in_words, error.errors()))


def _fault_in_words(fault: Mapping[str, Any]) -> str:
    name, message = ".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
    # A whole block of parameters, in which something contradicts something, is not repeated.
    got = "" if isinstance(fault["input"], Mapping) else f" (got {fault['input']!r})"
    return f"{name}: {message}{got}" if name else f"{message}{got}"


def validated(init: Callable[P, None], skip: Collection[str] = ()) -> Callable[P, None]:
    """Let a constructor check its arguments by its own annotations, and convert them, before it runs.

    Args:
        init: ``__init__`` of a class, which then raises `InputError` for values that its annotations refuse.
        skip: parameters that are taken as they are, such as arrays.

    Example:
        >>> from typing import Annotated
        >>> from pydantic import Field
        >>> class Clock:
        ...     @validated
        ...     def __init__(self, hands: Annotated[int, Field(ge=1)] = 2) -> None:
        ...         self.hands = hands
        >>> Clock().hands, Clock(3).hands
        (2, 3)
        >>> Clock(hands=0)
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: Clock: hands: Input should be greater than or equal to 1 (got 0)
    """
    signature = inspect.signature(init)
    model: Callable[[], type[Parameters]] = functools.cache(lambda: parameters_model(init, skip))

    @functools.wraps(init)
    def checking(*args: P.args, **kwargs: P.kwargs) -> None:
        bound = signature.bind(*args, **kwargs)
        given = {name: value for name, value in bound.arguments.items() if name in model().model_fields}
        bound.arguments |= check_parameters(model(), given, type(args[0]).__name__)
        init(*bound.args, **bound.kwargs)

    return checking

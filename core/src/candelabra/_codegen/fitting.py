"""Whether a value is of the kind that a parameter takes, from the schema.

``fits`` decides which overload serves a call. ``check_types`` runs at each call whose plain arguments are not of the
usual types. ``misfit`` runs when a call has failed, and also checks the items of sequences: it describes the argument
that does not fit. The table :data:`KINDS` has what each of them asks of an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._device import Instance, device
from candelabra._overrides import participates
from candelabra._records.schema import (
    BOUND,
    DEVICE,
    DIM,
    DIMS,
    DTYPE,
    INDEX,
    INDICES,
    INT,
    LIST,
    MASK,
    OPERAND,
    OPTIONAL,
    PLAIN,
    SHAPE,
    TENSOR,
    Parameter,
)
from candelabra._tensor import Tensor
from candelabra.dtypes import INTEGER, dtype

INTEGERS: Final = ("DistinctDims", "ExpandedShape", "InferredShape", "UnitDims", "Sizes")
"""Annotations that accept one integer or several."""
COMPUTED: Final = ("Origin", "StorageOffset", "None")
"""Annotations whose values are not the user's, or have an error of their own."""
CHECKED: Final = (PLAIN, TENSOR, OPTIONAL, OPERAND, BOUND)
"""The kinds of parameters whose arguments are checked at each call."""


# -- values -----------------------------------------------------------------------------------------------------------
def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or an array library. Bools and tensors with dims are not."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "_payload")


def is_number(value: Any) -> bool:
    """Return whether a value is a Python number, or a scalar of an array library."""
    return isinstance(value, (bool, int, float, complex)) or (
        getattr(value, "shape", None) == () and hasattr(value, "item") and not hasattr(value, "_payload")
    )


def integral(value: Any) -> bool:
    """As :func:`is_integer`, also for a 0-d tensor of integers."""
    return is_integer(value) or (isinstance(value, Tensor) and not value.ndim and value.dtype.category == INTEGER)


def numeric(value: Any) -> bool:
    """As :func:`is_number`, also for a 0-d tensor."""
    return is_number(value) or (isinstance(value, Tensor) and not value.ndim)


def _tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _integers(value: Any) -> bool:
    return integral(value) or (_sequence(value) and all(integral(v) for v in value))


def _any(value: Any) -> bool:
    return True


def _like(*names: str) -> Callable[[type], bool]:
    return lambda cls: any(hasattr(cls, name) for name in names) and not issubclass(cls, str)


def _named_bool(cls: type) -> bool:
    return issubclass(cls, bool) or cls.__name__ in ("bool_", "bool")  # also an array library's


# -- the kinds of annotations -----------------------------------------------------------------------------------------
class ArgumentKind(NamedTuple):
    """What one word of an annotation, such as ``int`` in ``int | None``, accepts."""

    words: str
    """The word in errors, as in PyTorch."""
    accepts: Callable[[Any], bool]
    """Whether a value is right, with the items of a sequence: after a failure."""
    selects: Callable[[Any], bool] = _any
    """Whether a value selects the overload with this parameter. Items are not checked."""
    of_class: Callable[[type], bool] | None = None
    """Whether instances of a class can be right, or None if that is not checked at each call."""
    plain: tuple[type, ...] = ()
    """The classes whose instances are right without a closer look; empty if the word is not checked at each call."""


_INT: Final = ArgumentKind("int", integral)
_ROWS: Final = ArgumentKind("int or tuple of ints", _integers)
KINDS: Final[dict[str, ArgumentKind]] = {
    "None": ArgumentKind("None", lambda value: value is None, lambda value: False, lambda cls: cls is type(None)),
    "Any": ArgumentKind("Any", _any),
    "Tensor": ArgumentKind("Tensor", _tensor, _tensor, lambda cls: issubclass(cls, Tensor)),
    "Index": ArgumentKind("Tensor", _tensor),
    "Mask": ArgumentKind("Tensor", _tensor),
    "BoolMask": ArgumentKind("Tensor", _tensor),
    "bool": ArgumentKind("bool", lambda value: _named_bool(type(value)), lambda value: isinstance(value, bool),
                         _named_bool, (bool,)),
    "str": ArgumentKind("str", _text, _text, lambda cls: issubclass(cls, str), (str,)),
    "int": ArgumentKind("int", integral, is_integer, lambda cls: hasattr(cls, "__index__") and cls is not bool, (int,)),
    "float": ArgumentKind("float", lambda value: numeric(value) and not isinstance(value, complex), is_number,
                          _like("__float__", "__index__"), (float, int)),
    "Number": ArgumentKind("Number", numeric, is_number, _like("__float__", "__index__", "__complex__"),
                           (float, int, bool, complex)),
    "Sizes": ArgumentKind("int or tuple of ints", _integers, _any,
                          lambda cls: cls is not bool and _like("__index__", "__iter__")(cls), (int, tuple, list)),
    "Sequence[int]": ArgumentKind("tuple of ints", lambda value: _items("Sequence[int]", value), _sequence,
                                  _like("__iter__"), (tuple, list)),
    "Dim": _INT,
    "Integer": _INT,
    "InsertedDim": _INT._replace(selects=is_integer),
    "Correction": ArgumentKind("Number", numeric),
    "DType": ArgumentKind("dtype", lambda value: isinstance(value, dtype) or value in (bool, int, float, complex)),
    "Device": ArgumentKind("device", lambda value: isinstance(value, (str, device, Instance)) or is_integer(value)),
    "BasicIndex": ArgumentKind("tuple", _sequence, _sequence),
    "Ints": ArgumentKind("tuple of ints", lambda value: _sequence(value) and _integers(value), _sequence),
    "Permutation": ArgumentKind("tuple of ints", lambda value: _sequence(value) and _integers(value), _sequence),
    "JoinedTensors": ArgumentKind("tuple of Tensors", lambda value: _items("Sequence[Tensor]", value)),
    **dict.fromkeys(("Dims", "Shape", *(word for word in INTEGERS if word != "Sizes")), _ROWS),
}  # fmt: skip
"""The kind of each word. :func:`kind_of` makes those of sequences, callables and classes, which are not listed."""
_SEQUENCES: Final = {
    "Sequence[Tensor]": "tuple of Tensors", "Sequence[Index | None]": "tuple of Tensors", "Sequence[Any]": "tuple",
    "Sequence[float]": "tuple of floats", "Sequence[Number]": "tuple of Numbers",
}  # fmt: skip
"""The words of errors for sequences, if they are not those before the bracket."""


def kind_of(word: str) -> ArgumentKind:
    """Return the kind of a word of an annotation; one that is not known accepts any value."""
    if word in KINDS:
        return KINDS[word]
    words = _SEQUENCES.get(word, word.partition("[")[0])
    if word.startswith(("Sequence[", "list[", "tuple[")) and word.endswith("]"):
        return ArgumentKind(words, lambda value: _items(word, value), _sequence)
    if word.startswith(("Sequence", "list", "tuple")):
        return ArgumentKind(words, _any, _sequence)
    for beginning, accepts in _BEGINNINGS.items():
        if word.startswith(beginning):
            return ArgumentKind(words, accepts)
    if word.isidentifier() and word != "object":  # the name of a class: Generator, memory_format
        return ArgumentKind(words, lambda value: any(cls.__name__ == word for cls in type(value).__mro__))
    return ArgumentKind(words, _any)


_BEGINNINGS: Final[dict[str, Callable[[Any], bool]]] = {
    "Callable": callable,
    "dict": lambda value: isinstance(value, dict),
    "Iterable": lambda value: isinstance(value, Iterable),
}


def _items(word: str, value: Any) -> bool:
    """Return whether a value is a sequence whose items fit the word in brackets."""
    item = [kind_of(each) for each in alternatives(word[word.index("[") + 1 : -1])]
    return _sequence(value) and all(any(kind.accepts(v) for kind in item) for v in value)


def alternatives(annotation: str) -> list[str]:
    """Return the words of ``"int | Sequence[Index | None]"``, split outside of brackets."""
    words, depth = [""], 0
    for character in annotation:
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            words.append("")
        else:
            words[-1] += character
    return [word.strip() for word in words]


# -- which overload --------------------------------------------------------------------------------------------------
def fits(p: Parameter, value: Any) -> bool:
    """Return whether a value is of the kind that a parameter takes. The items of a sequence are not checked."""
    if value is None:
        return p.default is None or p.kind in (DIMS, DEVICE) or p.optional
    if p.kind in (TENSOR, OPTIONAL, INDEX, MASK):
        return isinstance(value, Tensor)
    if p.kind in (OPERAND, BOUND):
        return isinstance(value, Tensor) or is_number(value)
    if p.kind in (LIST, INDICES):
        return isinstance(value, (tuple, list))
    if p.kind == DTYPE:
        return isinstance(value, (dtype, type))
    if p.kind in (DIM, INT):
        return is_integer(value)
    if p.kind in (DIMS, SHAPE) or p.annotation in INTEGERS or "Sequence[int]" in p.annotation:
        return is_integer(value) or isinstance(value, (tuple, list))
    return any(kind_of(word).selects(value) for word in alternatives(p.annotation))


# -- at each call -----------------------------------------------------------------------------------------------------
def check_types(title: str, parameters: Sequence[Parameter], values: Sequence[Any], first: int = 1) -> None:
    """Raise ``TypeError`` for the first argument whose type alone is wrong. Items and values are not checked.

    ``first`` is the position of the first parameter in a call.
    """
    for position, (p, value) in enumerate(zip(parameters, values, strict=False), first):
        if value is p.default or p.variadic or p.kind not in CHECKED or p.annotation == "None":
            continue
        cls = type(value)
        if not any(_may_be(KINDS.get(word), value) for word in alternatives(p.annotation)):
            if (value is None and p.default is None) or (participates(cls) and not issubclass(cls, Tensor)):
                continue
            raise TypeError(f"{title}(): {place_of(p, position)} must be {expected(p)}, not {cls.__name__}")


def place_of(p: Parameter, position: int) -> str:
    """Return "argument 'dim' (position 2)", without the position if the argument is passed by keyword only."""
    return f"argument '{p.name.rstrip('_')}'" + ("" if p.keyword_only else f" (position {position})")


def _may_be(kind: ArgumentKind | None, value: Any) -> bool:
    """Return whether a value may be of a kind by its class alone.

    A tensor without dims may be a number, and another one may be iterated over.
    """
    if kind is None:
        return True
    if isinstance(value, Tensor):
        return "tuple" in kind.words or kind.accepts(value)
    return kind.of_class is None or kind.of_class(type(value))


# -- after a failure --------------------------------------------------------------------------------------------------
def misfit(parameters: Iterable[Parameter], values: Iterable[Any], first: int = 1) -> str:
    """Return what is wrong with the first argument that its parameter does not take, or "" if all fit."""
    for position, (p, value) in enumerate(zip(parameters, values, strict=False), first):
        if (
            value is p.default
            or p.annotation in COMPUTED
            or any(kind_of(word).accepts(value) for word in words_of(p, value))
        ):
            continue
        found = f"must be {expected(p)}, not {type(value).__name__}"
        if isinstance(value, (tuple, list)) and "tuple" in expected(p):
            found = f"must be {expected(p)}, but element {odd_item(p, value)}"
        return f"{place_of(p, position)} {found}"
    return ""


def words_of(p: Parameter, value: Any) -> list[str]:
    """Return the alternatives of a parameter's annotation, for this value."""
    words = ["Sequence[Any]"] if p.variadic and p.kind not in (SHAPE, DIMS) else alternatives(p.annotation)
    return [*words, "None"] if p.kind in (DIMS, DEVICE) or p.default is None else words


def expected(p: Parameter) -> str:
    """Return the values that a parameter takes, in words."""
    words = [kind_of(word).words for word in alternatives(p.annotation) if word != "None"]
    return " or ".join(dict.fromkeys(words))


def odd_item(p: Parameter, values: Sequence[Any]) -> str:
    """Return the position and type of the first item of a sequence that the parameter does not take."""
    for position, value in enumerate(values):
        if not any(kind_of(word).accepts((value,)) for word in alternatives(p.annotation)):
            return f"{position} is {type(value).__name__}"
    return f"0 is {type(values[0]).__name__}" if values else "0 is missing"

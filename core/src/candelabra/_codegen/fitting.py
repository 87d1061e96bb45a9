"""Whether a value is of the kind that a parameter takes, from the schema.

``fits`` decides which overload serves a call, from the types alone. ``misfit`` runs when a call has failed, and also
checks the items of sequences: it describes the argument that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from candelabra._annotations import Any, Final
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
WORDS: Final = {
    "Dim": "int", "InsertedDim": "int", "Integer": "int", "DType": "dtype", "Device": "device", "Correction": "Number",
    "Index": "Tensor", "Mask": "Tensor", "JoinedTensors": "tuple of Tensors", "Sequence[Tensor]": "tuple of Tensors",
    "Sequence[Index | None]": "tuple of Tensors", "Permutation": "tuple of ints", "Sequence[int]": "tuple of ints",
    "Sequence[float]": "tuple of floats", "Sequence[Any]": "tuple", "Sequence[Number]": "tuple of Numbers",
    **dict.fromkeys(("Dims", "Shape", *INTEGERS), "int or tuple of ints"),
}  # fmt: skip
"""Annotations in the words of errors, as in PyTorch."""


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
    return any(is_of(word, value) for word in p.annotation.split(" | "))


def is_of(word: str, value: Any) -> bool:
    """Return whether a plain value is of the type that a word of an annotation names. Unknown words accept any."""
    if word == "bool":
        return isinstance(value, bool)
    if word in ("int", "InsertedDim"):
        return is_integer(value)
    if word in ("float", "Number"):
        return is_number(value)
    if word == "str":
        return isinstance(value, str)
    if word == "Tensor":
        return isinstance(value, Tensor)
    if word.startswith(("Sequence", "tuple", "list")) or word == "Permutation":
        return isinstance(value, (tuple, list))
    return word != "None"


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or an array library. Bools and tensors with dims are not."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "_payload")


def is_number(value: Any) -> bool:
    """Return whether a value is a Python number, or a scalar of an array library."""
    return isinstance(value, (bool, int, float, complex)) or (
        getattr(value, "shape", None) == () and hasattr(value, "item") and not hasattr(value, "_payload")
    )


# -- types alone ------------------------------------------------------------------------------------------------------
PLAIN_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,), "int": (int,), "float": (float, int), "Number": (float, int, bool, complex), "str": (str,),
    "Sizes": (int, tuple, list), "Sequence[int]": (tuple, list),
}  # fmt: skip
"""Annotations of plain values whose type is checked at each call, with the types that need no closer look."""


def check_types(title: str, parameters: Sequence[Parameter], values: Sequence[Any], first: int = 1) -> None:
    """Raise ``TypeError`` for the first argument whose type alone is wrong. Items and values are not checked.

    ``first`` is the position of the first parameter in a call.
    """
    for position, (p, value) in enumerate(zip(parameters, values, strict=False), first):
        if value is p.default or p.variadic or p.kind not in CHECKED or p.annotation == "None":
            continue
        cls = type(value)
        table: Any = ACCEPTS if issubclass(cls, Tensor) else TYPES
        given = value if issubclass(cls, Tensor) else cls
        if all(word in table and not table[word](given) for word in alternatives(p.annotation)):
            if (value is None and p.default is None) or (participates(cls) and not issubclass(cls, Tensor)):
                continue
            raise TypeError(f"{title}(): {place_of(p, position)} must be {expected(p)}, not {cls.__name__}")


def place_of(p: Parameter, position: int) -> str:
    """Return "argument 'dim' (position 2)", without the position if the argument is passed by keyword only."""
    return f"argument '{p.name.rstrip('_')}'" + ("" if p.keyword_only else f" (position {position})")


def _like(*names: str) -> Callable[[type], bool]:
    return lambda cls: any(hasattr(cls, name) for name in names) and not issubclass(cls, str)


CHECKED: Final = (PLAIN, TENSOR, OPTIONAL, OPERAND, BOUND)
TYPES: Final[dict[str, Callable[[type], bool]]] = {
    "None": lambda cls: cls is type(None),
    "Tensor": lambda cls: issubclass(cls, Tensor),
    "bool": lambda cls: issubclass(cls, bool) or cls.__name__ in ("bool_", "bool"),
    "str": lambda cls: issubclass(cls, str),
    "int": lambda cls: hasattr(cls, "__index__") and cls is not bool,
    "float": _like("__float__", "__index__"),
    "Number": _like("__float__", "__index__", "__complex__"),
    "Sizes": lambda cls: cls is not bool and _like("__index__", "__iter__")(cls),
    "Sequence[int]": _like("__iter__"),
}
"""Whether instances of a class can be of the type that a word of an annotation names."""


# -- after a failure --------------------------------------------------------------------------------------------------
def misfit(parameters: Iterable[Parameter], values: Iterable[Any], first: int = 1) -> str:
    """Return what is wrong with the first argument that its parameter does not take, or "" if all fit."""
    for position, (p, value) in enumerate(zip(parameters, values, strict=False), first):
        if value is p.default or p.annotation in COMPUTED or any(accepts(word, value) for word in words_of(p, value)):
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


def expected(p: Parameter) -> str:
    """Return the values that a parameter takes, in words."""
    words = [WORDS.get(word, word.partition("[")[0]) for word in alternatives(p.annotation) if word != "None"]
    return " or ".join(dict.fromkeys(words))


def odd_item(p: Parameter, values: Sequence[Any]) -> str:
    """Return the position and type of the first item of a sequence that the parameter does not take."""
    for position, value in enumerate(values):
        if not any(accepts(word, (value,)) for word in alternatives(p.annotation)):
            return f"{position} is {type(value).__name__}"
    return f"0 is {type(values[0]).__name__}" if values else "0 is missing"


def accepts(word: str, value: Any) -> bool:
    """Return whether a value is of the type that one word of an annotation names, with the items of sequences."""
    if word in ACCEPTS:
        return ACCEPTS[word](value)
    if word in INTEGERS or word in ("Dims", "Shape"):
        return integral(value) or (isinstance(value, (tuple, list)) and all(integral(v) for v in value))
    if word.startswith(("Sequence[", "list[", "tuple[")) and word.endswith("]"):
        item = alternatives(word[word.index("[") + 1 : -1])
        return isinstance(value, (tuple, list)) and all(any(accepts(w, v) for w in item) for v in value)
    if word.startswith("Callable"):
        return callable(value)
    if word.startswith("dict"):
        return isinstance(value, dict)
    if word.startswith("Iterable"):
        return isinstance(value, Iterable)
    if word.isidentifier() and word not in ("Any", "object"):  # the name of a class: Generator, memory_format
        return any(cls.__name__ == word for cls in type(value).__mro__)
    return True


def integral(value: Any) -> bool:
    """As :func:`is_integer`, also for a 0-d tensor of integers."""
    return is_integer(value) or (isinstance(value, Tensor) and not value.ndim and value.dtype.category == INTEGER)


def numeric(value: Any) -> bool:
    """As :func:`is_number`, also for a 0-d tensor."""
    return is_number(value) or (isinstance(value, Tensor) and not value.ndim)


def _tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


ACCEPTS: Final[dict[str, Callable[[Any], bool]]] = {
    "None": lambda value: value is None,
    "Any": lambda value: True,
    "bool": lambda value: isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"),
    "str": lambda value: isinstance(value, str),
    "Tensor": _tensor,
    "Index": _tensor,
    "Mask": _tensor,
    "int": integral,
    "Dim": integral,
    "Integer": integral,
    "InsertedDim": integral,
    "float": lambda value: numeric(value) and not isinstance(value, complex),
    "Number": numeric,
    "Correction": numeric,
    "DType": lambda value: isinstance(value, dtype) or value in (bool, int, float, complex),
    "Device": lambda value: isinstance(value, (str, device, Instance)) or is_integer(value),
    "Permutation": lambda value: isinstance(value, (tuple, list)) and all(integral(v) for v in value),
    "JoinedTensors": lambda value: accepts("Sequence[Tensor]", value),
}

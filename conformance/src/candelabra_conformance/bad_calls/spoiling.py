"""The values that spoil an argument, each with a one-letter code, chosen by the kind of the parameter.

A code means the same value, or the same change of the original value, for every parameter. So a call is identified by
function, parameter and code, and stays so when samples are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import BY_NAME
from candelabra.library import (
    DEVICE,
    DTYPE,
    INDEX,
    INDICES,
    LIST,
    MASK,
    OPERAND,
    OPTIONAL,
    TENSOR,
    Parameter,
)

Array = np.ndarray[Any, Any]


class Unknown:
    """An object of no type that an argument can have."""

    def __repr__(self) -> str:
        return "<unknown object>"


VALUES: Final[dict[str, Any]] = {
    "n": None, "s": "abc", "o": Unknown(), "d": {}, "e": [], "E": (), "f": "False", "B": True, "r": float("nan"),
    "i": float("inf"), "h": 1.5, "m": -1, "M": -3, "z": 0, "9": 99, "8": -99, "G": 2**40, "H": 2**62, "J": 2**70,
    "c": 1 + 2j, "D": BY_NAME["float32"], "l": [1.5], "p": ["abc"], "q": [None], "N": [-2], "Q": (-2, -3),
    "j": [2**70], "T": [True], "w": [0, 0], "W": [1, 1, 1, 1, 1, 1, 1], "2": 2.0, "S": slice(0, 1), "Y": b"abc",
    "t": np.array(1.5, np.float32), "v": np.array([1.5, 2.5], np.float32), "u": np.array([[1, 2]], np.int64),
}  # fmt: skip
"""Values that replace an argument, whatever it was. An array represents a tensor."""


def _cast(to: Any) -> Callable[[Array], Array]:
    return lambda a: a.astype(to)


def _as_integers(a: Array) -> Array:
    with np.errstate(invalid="ignore"):  # of NaN: any integer is another argument
        return np.asarray(a.real.astype(np.int64))


TENSORS: Final[dict[str, Callable[[Array], Any]]] = {
    "I": _as_integers, "b": _cast(np.bool_), "C": _cast(np.complex64),
    "+": lambda a: a[None], "0": lambda a: a.reshape(-1)[:1].reshape(()),
    "x": lambda a: np.concatenate([a, a[..., :1]], -1) if a.ndim else np.stack([a, a]),
    "y": lambda a: a[..., :0] if a.ndim else a.reshape(1)[:0],
    "L": lambda a: a.tolist(), "R": lambda a: np.full_like(a, np.nan if a.dtype.kind in "fc" else 1),
}  # fmt: skip
"""Changes of a tensor: dtypes, one dim more, none, one element more, none; a list; all NaN (integers: all 1)."""

LISTS: Final[dict[str, Callable[[Any], Any]]] = {
    "k": lambda v: [*v, None], "K": lambda v: [*v, "abc"], "a": lambda v: [*v, *v], "A": lambda v: [v],
}  # fmt: skip
"""Changes of a list or tuple: an item of another type, twice the length, a list in a list."""
ALONE: Final[dict[str, Callable[[Any], Any]]] = {"g": lambda v: [v]}
"""Changes of a number or string: in a list."""

OF_TENSOR: Final = "nsohgeDIbC0+xyLR"
OF_LIST: Final = "nsohvEqpkKaA"
OF_NUMBER: Final = "nsorihmMz9GHJcBelpvtDg"
OF_SIZES: Final = "nsohmMzHGJBelpqNQjTwWkaAtvDg"
OF_BOOL: Final = "nforhmedTvD"
OF_DTYPE: Final = "sohBez"
OF_DEVICE: Final = "sohe"
OF_STRING: Final = "nsohBezDgY"
OF_OTHER: Final = "nsohe"


def codes_of(p: Parameter) -> str:
    """Return the codes of the values that spoil a parameter, from its kind and annotation."""
    words = p.annotation.split(" | ")
    if p.kind in (TENSOR, OPTIONAL, INDEX, MASK):
        return OF_TENSOR
    if p.kind == OPERAND or "Tensor" in words:
        return OF_TENSOR + "cJBrd"
    if p.kind in (LIST, INDICES):
        return OF_LIST
    if p.kind == DTYPE:
        return OF_DTYPE
    if p.kind == DEVICE:
        return OF_DEVICE
    if "bool" in words:
        return OF_BOOL
    if words[0] == "str":
        return OF_STRING
    if "Callable" in p.annotation or words[0] in ("Any", "object", "Generator", "memory_format", "dict[str, int]"):
        return OF_OTHER
    if words[0] in ("float", "Number", "int", "Integer", "Dim", "InsertedDim", "StorageOffset", "Correction"):
        return OF_NUMBER + ("Q" if "Sequence[int]" in words else "")
    return OF_SIZES


def spoilt(p: Parameter, original: Any) -> Iterator[tuple[str, Any]]:
    """Yield (code, value) for a parameter; ``original`` is the argument of the sample, or ``...`` if it has none."""
    for code in codes_of(p):
        for changes, applies in (
            (TENSORS, isinstance(original, np.ndarray)),
            (LISTS, isinstance(original, (list, tuple))),
            (ALONE, isinstance(original, (bool, int, float, complex, str, np.ndarray)) and original is not ...),
        ):
            if code in changes:
                if applies:
                    yield code, changes[code](original)
                break
        else:
            if code not in TENSORS:
                yield code, VALUES[code]

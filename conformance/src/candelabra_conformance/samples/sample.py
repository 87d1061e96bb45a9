"""A sample: one call of an operator, written on the host with arrays in place of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype


class _DevicePlaceholder:
    """A placeholder in a sample's arguments for the device of the case."""

    def __repr__(self) -> str:
        return "HERE"


HERE: Final = _DevicePlaceholder()


@dataclass(frozen=True)
class Fresh:
    """A placeholder in a sample's arguments for the value of Python source, which is evaluated for each call.

    The source may use ``cd``, ``np`` and ``device`` (the device of the case).
    """

    source: str


@dataclass(frozen=True, eq=False)
class HostArray:
    """A placeholder in a sample's arguments for a NumPy array itself, since an array alone represents a tensor.

    Each call gets a copy.
    """

    array: np.ndarray[Any, Any]


SEED: Final = 20240229
"""The seed of all default generators for calls of public callables that draw random numbers."""

ORDINARY, ZERO_DIM, ZERO_SIZE, LENGTH_ONE, LARGE = "ordinary", "0-d", "zero-size", "length-1", "large"
KINDS: Final = (ORDINARY, ZERO_DIM, ZERO_SIZE, LENGTH_ONE, LARGE)
"""The kinds of samples. Ordinary ones are called with every memory layout, the others only as they are."""


@dataclass(frozen=True)
class Sample:
    """``operator(*args, **kwargs)``. A NumPy array (also inside a list or tuple) represents a tensor of its dtype;
    :data:`HERE`, :class:`Fresh` and :class:`HostArray` represent values that depend on the device or on the call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ORDINARY
    note: str = ""
    """A word that distinguishes this sample from the others in the text of a failure."""
    core: int = 0
    """The number of trailing dims that the operator treats as one (2: matrices). A layout with stride 0 repeats only
    dims before them."""
    gradient: bool = True
    """Whether the derivative is defined at these values (no ties, no kinks)."""
    constant: tuple[str, ...] = ()
    """Parameters that must not require grad."""
    exact: bool = False
    """Whether the values are exact: then the tolerance does not include the change of the answer if the values change.
    It is set for jumps (halves that are rounded) and for functions that are accurate whatever their conditioning (sin
    of large numbers)."""
    of: Callable[[Any], Any] | None = None
    """For a result that is unique only up to a choice (a sign, a phase), a function of the result that does not depend
    on the choice. It takes the result as Tensors, and returns a Tensor or a tuple of them, computed with candelabra's
    functions."""
    layouts: tuple[str, ...] = ()
    """The memory layouts that the operator accepts, if it does not accept all."""
    held: tuple[dtype, ...] = ()
    """Dtypes that the device has to store for this call, in addition to those of the arguments."""
    call: Callable[..., Any] | None = None
    """A differentiable function of free parameters for derivatives, if the domain of the arguments is not an open set
    (symmetric matrices) or ``of`` is required. It takes the operator's function and the arguments as Tensors."""


def sample(*args: Any, **options: Any) -> Sample:
    """Return a :class:`Sample`. Positional arguments are the operator's. So are keywords, except the fields of
    :class:`Sample` (``kind``, ``note``, ``core``, ``gradient``, ``constant``, ``exact``, ``of``, ``layouts``, ``held``,
    ``call``)."""
    known = {name: options.pop(name) for name in FIELDS if name in options}
    if known.get("kind", ORDINARY) not in KINDS:
        raise ValueError(f"sample(): kind must be one of {', '.join(KINDS)}, got {known['kind']!r}")
    return Sample(args, options, **known)


FIELDS: Final = ("kind", "note", "core", "gradient", "constant", "exact", "of", "layouts", "held", "call")


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays in a sample's arguments, in order."""
    every: list[np.ndarray[Any, Any]] = []
    _collect(value, every)
    return iter(every)


def _collect(value: Any, into: list[np.ndarray[Any, Any]]) -> None:
    # The suite calls this for every sample and layout: a list is faster than nested generators, dict than Mapping.
    if isinstance(value, np.ndarray):
        into.append(value)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, into)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, into)


def mapped(value: Any, function: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    """Return the arguments with ``function`` applied to each array; lists and tuples keep their type."""
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(part, function) for part in value)
    if isinstance(value, Mapping):
        return {name: mapped(part, function) for name, part in value.items()}
    return value

"""One call of an operator, written on the host: arrays stand where tensors will be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype


class _Here:
    """Stands in a sample's arguments for the device that the case runs on."""

    def __repr__(self) -> str:
        return "HERE"


HERE: Final = _Here()


@dataclass(frozen=True)
class Fresh:
    """Stands in a sample's arguments for what Python source gives, evaluated anew for each call.

    ``cd``, ``np`` and ``device`` (the device that the case runs on) have their meaning in it.
    """

    source: str


@dataclass(frozen=True, eq=False)
class HostArray:
    """Stands in a sample's arguments for a NumPy array itself, where an array alone would stand for a tensor.

    Each call is given a copy.
    """

    array: np.ndarray[Any, Any]


SEED: Final = 20240229
"""Public callables that draw random numbers are called with all default generators at the start of this seed."""

ORDINARY, ZERO_DIM, ZERO_SIZE, LENGTH_ONE, LARGE = "ordinary", "0-d", "zero-size", "length-1", "large"
KINDS: Final = (ORDINARY, ZERO_DIM, ZERO_SIZE, LENGTH_ONE, LARGE)
"""What a sample is about. Ordinary ones are tried in every memory layout, the others as they are."""


@dataclass(frozen=True)
class Sample:
    """``operator(*args, **kwargs)``. A NumPy array (also inside a list or tuple) stands for a tensor of its dtype, and
    :data:`HERE`, :class:`Fresh` and :class:`HostArray` for what depends on the device or on the call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ORDINARY
    note: str = ""
    """A word that tells this sample from its siblings, as in a failure's text."""
    core: int = 0
    """So many trailing dims belong together (2: matrices); a layout with stride 0 repeats only dims before them."""
    gradient: bool = True
    """Whether the derivative is defined at these values (no ties, no kinks)."""
    constant: tuple[str, ...] = ()
    """Parameters that may not ask for a gradient."""
    exact: bool = False
    """Whether the values are exact as they stand: then no error is forgiven because the answer would move if they did.
    For jumps (halves that are rounded) and where a function is accurate whatever its conditioning (sin far out)."""
    of: Callable[[Any], Any] | None = None
    """Of a result that is determined up to a choice (a sign, a phase): what does not depend on the choice. Given the
    result as Tensors, returns a Tensor or a tuple of them, made with candelabra's functions."""
    layouts: tuple[str, ...] = ()
    """The layouts of memory that the operator takes, where it does not take all."""
    held: tuple[dtype, ...] = ()
    """Dtypes that the device has to store for this call, beside those of the arguments."""
    call: Callable[..., Any] | None = None
    """For derivatives, where the arguments' domain is no open set (symmetric matrices) or ``of`` is needed: given the
    operator's function and the arguments as Tensors, a differentiable function of free parameters."""


def sample(*args: Any, **options: Any) -> Sample:
    """A :class:`Sample`: positional arguments are the operator's; keywords are the operator's too, but for the fields
    of :class:`Sample` (``kind``, ``note``, ``core``, ``gradient``, ``constant``, ``exact``, ``of``, ``layouts``,
    ``held``, ``call``)."""
    known = {name: options.pop(name) for name in FIELDS if name in options}
    if known.get("kind", ORDINARY) not in KINDS:
        raise ValueError(f"sample(): kind must be one of {', '.join(KINDS)}, got {known['kind']!r}")
    return Sample(args, options, **known)


FIELDS: Final = ("kind", "note", "core", "gradient", "constant", "exact", "of", "layouts", "held", "call")


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in a sample's arguments, in order."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from arrays(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from arrays(part)


def mapped(value: Any, function: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    """The same arguments with ``function`` applied to each array; lists and tuples keep their kind."""
    if isinstance(value, np.ndarray):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(part, function) for part in value)
    if isinstance(value, Mapping):
        return {name: mapped(part, function) for name, part in value.items()}
    return value

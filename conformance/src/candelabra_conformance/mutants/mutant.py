"""Mutants, and the two ways to write one: a broken kernel on host arrays, or a broken backend.

A kernel mutant is a function of ``right``, the correct kernel, and of the call's arguments, with NumPy arrays in place
of payloads::

    @breaks("amax", caught_by="amax/special/*")
    def amax_passes_over_nan(right, x, dim, keepdim):
        "The maximum ignores NaN."
        return right(np.where(np.isnan(x), -np.inf, x), dim, keepdim)

The mutant's name is ``amax-passes-over-nan``, and its docstring describes the fault. Changes of its arguments have no
effect on the device. Faults of memory use ``@breaks_kernel``, whose functions get payloads, or ``@breaks_backend``, on
a subclass of :class:`Mirror`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from candelabra.backend import Backend, Kernel
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator

from candelabra_conformance.mutants.mirror import ByDtype, Image, Mirror, first_image
from candelabra_conformance.numpy_dtypes import FROM_HOST, host_dtype

Array = np.ndarray[Any, Any]
HostKernel = Callable[..., Any]
"""``(right, *arguments) -> array or tuple of arrays``."""
F = TypeVar("F", bound=Callable[..., Any])
B = TypeVar("B", bound=type[Mirror])


@dataclass(frozen=True)
class Mutant:
    """A deliberately broken backend."""

    name: str
    fault: str
    """A sentence that describes the fault."""
    make: Callable[[], Backend]
    """Creates a new backend, whose device type is the mutant's name with ``_`` for ``-``."""
    operators: tuple[str, ...]
    """The operators that it breaks; empty if the cases about the device itself show the fault."""
    caught_by: tuple[str, ...]
    """Patterns of the ids of cases that name the fault."""
    family: str
    forbid_fallback: bool = False
    """Whether the suite runs with ``--forbid-fallback``, so that a fallback fails."""
    make_one: Callable[[str], Backend] | None = None
    """For a mutant of kernels, creates a new backend on which only this operator is broken."""

    @property
    def device_type(self) -> str:
        """Return an identifier derived from the name."""
        return self.name.replace("-", "_")

    def named_by(self, case: str) -> bool:
        """Return whether the case of this id is one that names the fault."""
        return any(fnmatchcase(case, pattern) for pattern in self.caught_by)


CATALOGUE: Final[dict[str, Mutant]] = {}


def listed(mutant: Mutant) -> Mutant:
    """Add a mutant to the catalogue. Raises ValueError if the name exists."""
    if mutant.name in CATALOGUE:
        raise ValueError(f"mutant {mutant.name!r} is listed twice")
    CATALOGUE[mutant.name] = mutant
    return mutant


def description_of(source: Any, name: str = "") -> tuple[str, str, str]:
    """Return name, fault and family of a mutant: the name, docstring and module of its function or class."""
    derived = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", source.__name__).lower().replace("_", "-")
    return name or derived, source.__doc__.splitlines()[0], source.__module__.rpartition(".")[2]


def breaks(*operators: str, caught_by: str, only: str = "", name: str = "") -> Callable[[F], F]:
    """Add a mutant whose kernels of these operators are a function of host arrays.

    ``only`` contains the letters of NumPy's dtype kinds (``"f"``, ``"iu"``, with bfloat16 as ``"f"``) for which the
    function runs; the correct kernel serves the others. The in-place kernels are removed, so that in-place forms have
    the fault too. ``caught_by`` contains patterns of case ids, separated by blanks. ``name`` is by default that of the
    function, with ``-`` for ``_``.
    """

    def mark(function: F) -> F:
        mutant, fault, family = description_of(function, name)

        def make(*broken: str) -> Backend:
            mirror = Mirror(mutant.replace("-", "_"))
            for each in broken or operators:
                mirror.table.pop(each + "_", None)
                mirror.table[each] = on_host(mirror, OPERATORS[each], mirror.table[each], function, only)
            return mirror

        listed(Mutant(mutant, fault, make, operators, tuple(caught_by.split()), family, make_one=make))
        return function

    return mark


def breaks_kernel(*kernels: str, caught_by: str) -> Callable[[F], F]:
    """Add a mutant whose kernels of these names (in-place ones end in ``_``) are ``function(mirror, right, *args)``,
    where arguments and result are payloads."""

    def mark(function: F) -> F:
        mutant, fault, family = description_of(function)

        def make(*broken: str) -> Backend:
            mirror = Mirror(mutant.replace("-", "_"))
            for each in kernels:
                if not broken or operator_of(each) in broken:
                    mirror.table[each] = _bound(mirror, mirror.table[each], function)
            return mirror

        operators = tuple(dict.fromkeys(operator_of(each) for each in kernels))
        listed(Mutant(mutant, fault, make, operators, tuple(caught_by.split()), family, make_one=make))
        return function

    return mark


def operator_of(kernel: str) -> str:
    """Return the operator that a kernel serves, of whose in-place form too."""
    return kernel if kernel in OPERATORS else kernel[:-1]


def breaks_backend(*operators: str, caught_by: str, forbid_fallback: bool = False) -> Callable[[B], B]:
    """Add a mutant that is a subclass of :class:`Mirror`. Its name is derived from the class's."""

    def mark(cls: B) -> B:
        name, fault, family = description_of(cls)
        make = partial(cls, name.replace("-", "_"))
        listed(Mutant(name, fault, make, operators, tuple(caught_by.split()), family, forbid_fallback))
        return cls

    return mark


def _bound(mirror: Mirror, right: Kernel, function: Callable[..., Any]) -> Kernel:
    return lambda *args: function(mirror, right, *args)


# -- arrays for payloads ----------------------------------------------------------------------------------------------
def on_host(mirror: Mirror, record: Operator[..., Any], right: Kernel, function: HostKernel, only: str = "") -> Kernel:
    """Return a kernel on payloads for a function ``(right, *arguments)`` on arrays; ``right`` takes and returns
    arrays."""
    if isinstance(right, ByDtype):
        right = right.kernel
    place = next((i for i, p in enumerate(record.schema.parameters) if p.kind == "device"), None)

    def kernel(*args: Any) -> Any:
        image = first_image(args)
        if image is not None and only and kind_of(mirror.dtype_of(image)) not in only:
            return right(*args)
        index = args[place] if place is not None else image.index if image is not None else 0

        def of_arrays(*values: Any) -> Any:
            return as_arrays(mirror, right(*as_payloads(mirror, values, index)))

        with np.errstate(all="ignore"):
            return as_payloads(mirror, function(of_arrays, *as_arrays(mirror, args)), index)

    return kernel


def kind_of(d: dtype) -> str:
    """Return the letter of NumPy's kind: b, i, u, f or c."""
    return "f" if d.name == "bfloat16" else host_dtype(d).kind


def array_of(mirror: Mirror, image: Image) -> Array:
    """Return a copy of a payload's content."""
    flat = np.frombuffer(mirror.reference.to_host(image.inner), host_dtype(mirror.dtype_of(image)))
    return flat.reshape(image.shape).copy()


def payload_of(mirror: Mirror, array: Array, index: int) -> Image:
    """Return a payload with an array's content."""
    content: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    image: Image = mirror.from_host(index, memoryview(content), array.shape, FROM_HOST[array.dtype])
    return image


def as_arrays(mirror: Mirror, value: Any) -> Any:
    """Replace payloads by arrays, also inside lists and tuples."""
    if isinstance(value, Image):
        return array_of(mirror, value)
    if isinstance(value, (list, tuple)):
        return type(value)(as_arrays(mirror, v) for v in value)
    return value


def as_payloads(mirror: Mirror, value: Any, index: int) -> Any:
    """Replace arrays and NumPy's scalars by payloads, also inside lists and tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        return payload_of(mirror, np.asarray(value), index)
    if isinstance(value, (list, tuple)):
        return type(value)(as_payloads(mirror, v, index) for v in value)
    return value

"""What a mutant is, and the two ways to make one: a broken kernel on host arrays, or a broken backend.

A kernel mutant is written as a function of ``right``, the correct kernel, and the call's arguments, with NumPy arrays
for payloads::

    @breaks("amax", caught_by="amax/special/*")
    def amax_passes_over_nan(right, x, dim, keepdim):
        "The greatest value is looked for among those that are no NaN."
        return right(np.where(np.isnan(x), -np.inf, x), dim, keepdim)

The mutant is called ``amax-passes-over-nan``, and its docstring says the fault. What it changes in its arguments stays
without effect on the device; faults of memory take ``@breaks_kernel``, whose functions see payloads, or
``@breaks_backend``, on a subclass of :class:`Mirror`.
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
    """What is wrong with it, a sentence."""
    make: Callable[[], Backend]
    """A fresh backend, whose device type is the mutant's name with ``_`` for ``-``."""
    operators: tuple[str, ...]
    """Those that it breaks; none: cases about the device itself show it."""
    caught_by: tuple[str, ...]
    """Patterns of the ids of cases that name the fault."""
    family: str
    forbid_fallback: bool = False
    """Whether the suite is run so that a fallback fails, as it is by who wants to know."""

    @property
    def device_type(self) -> str:
        """An identifier made of the name."""
        return self.name.replace("-", "_")

    def named_by(self, case: str) -> bool:
        """Whether the case of this id is one that names the fault."""
        return any(fnmatchcase(case, pattern) for pattern in self.caught_by)


CATALOGUE: Final[dict[str, Mutant]] = {}


def listed(mutant: Mutant) -> Mutant:
    """Add a mutant to the catalogue. ValueError where the name is taken."""
    if mutant.name in CATALOGUE:
        raise ValueError(f"mutant {mutant.name!r} is listed twice")
    CATALOGUE[mutant.name] = mutant
    return mutant


def told(made: Any) -> tuple[str, str, str]:
    """Name, fault and family of a mutant: the name, docstring and module of what it is made from."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", made.__name__).lower().replace("_", "-")
    return name, made.__doc__.splitlines()[0], made.__module__.rpartition(".")[2]


def breaks(*operators: str, caught_by: str, only: str = "") -> Callable[[F], F]:
    """List a mutant whose kernels of these operators are a function of host arrays.

    ``only`` is the letters of NumPy's dtype kinds (``"f"``, ``"iu"``, bfloat16 counting as ``"f"``) for which the
    function runs; the correct kernel serves the others. In-place forms follow: their own kernels are taken away.
    ``caught_by`` holds patterns of case ids, apart by blanks.
    """

    def mark(function: F) -> F:
        name, fault, family = told(function)

        def make() -> Backend:
            made = Mirror(name.replace("-", "_"))
            for each in operators:
                made.table.pop(each + "_", None)
                made.table[each] = on_host(made, OPERATORS[each], made.table[each], function, only)
            return made

        listed(Mutant(name, fault, make, operators, tuple(caught_by.split()), family))
        return function

    return mark


def breaks_kernel(*kernels: str, caught_by: str) -> Callable[[F], F]:
    """List a mutant whose kernels of these names (in-place ones end in ``_``) are ``function(mirror, right, *args)``,
    where arguments and result are payloads."""

    def mark(function: F) -> F:
        name, fault, family = told(function)

        def make() -> Backend:
            made = Mirror(name.replace("-", "_"))
            for each in kernels:
                made.table[each] = _bound(made, made.table[each], function)
            return made

        operators = tuple(dict.fromkeys(each if each in OPERATORS else each[:-1] for each in kernels))
        listed(Mutant(name, fault, make, operators, tuple(caught_by.split()), family))
        return function

    return mark


def breaks_backend(*operators: str, caught_by: str, forbid_fallback: bool = False) -> Callable[[B], B]:
    """List a mutant that is a subclass of :class:`Mirror`; its name follows from the class's."""

    def mark(cls: B) -> B:
        name, fault, family = told(cls)
        make = partial(cls, name.replace("-", "_"))
        listed(Mutant(name, fault, make, operators, tuple(caught_by.split()), family, forbid_fallback))
        return cls

    return mark


def _bound(made: Mirror, right: Kernel, function: Callable[..., Any]) -> Kernel:
    return lambda *args: function(made, right, *args)


# -- arrays for payloads ----------------------------------------------------------------------------------------------
def on_host(made: Mirror, record: Operator[..., Any], right: Kernel, function: HostKernel, only: str = "") -> Kernel:
    """A kernel on payloads of a function ``(right, *arguments)`` on arrays, where ``right`` takes and gives arrays."""
    if isinstance(right, ByDtype):
        right = right.kernel
    place = next((i for i, p in enumerate(record.schema.parameters) if p.kind == "device"), None)

    def kernel(*args: Any) -> Any:
        image = first_image(args)
        if image is not None and only and kind_of(made.dtype_of(image)) not in only:
            return right(*args)
        index = args[place] if place is not None else image.index if image is not None else 0

        def of_arrays(*values: Any) -> Any:
            return as_arrays(made, right(*as_payloads(made, values, index)))

        with np.errstate(all="ignore"):
            return as_payloads(made, function(of_arrays, *as_arrays(made, args)), index)

    return kernel


def kind_of(d: dtype) -> str:
    """The letter of NumPy's kind: b, i, u, f or c."""
    return "f" if d.name == "bfloat16" else host_dtype(d).kind


def array_of(made: Mirror, image: Image) -> Array:
    """A copy of a payload's content."""
    flat = np.frombuffer(made.reference.to_host(image.inner), host_dtype(made.dtype_of(image)))
    return flat.reshape(image.shape).copy()


def payload_of(made: Mirror, array: Array, index: int) -> Image:
    """A payload of an array's content."""
    content: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    image: Image = made.from_host(index, memoryview(content), array.shape, FROM_HOST[array.dtype])
    return image


def as_arrays(made: Mirror, value: Any) -> Any:
    """The same with arrays for payloads, also inside lists and tuples."""
    if isinstance(value, Image):
        return array_of(made, value)
    if isinstance(value, (list, tuple)):
        return type(value)(as_arrays(made, v) for v in value)
    return value


def as_payloads(made: Mirror, value: Any, index: int) -> Any:
    """The same with payloads for arrays (and for NumPy's scalars), also inside lists and tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        return payload_of(made, np.asarray(value), index)
    if isinstance(value, (list, tuple)):
        return type(value)(as_payloads(made, v, index) for v in value)
    return value

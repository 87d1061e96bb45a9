"""Faults of dtypes: a kernel that computes a dtype in a narrower one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel
from candelabra.library import INDEX, INDICES, MASK, Operator

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, payload_of
from candelabra_conformance.mutants.storage import each_image
from candelabra_conformance.mutants.systematic.parameters import operands_of
from candelabra_conformance.mutants.systematic.results import elements
from candelabra_conformance.mutants.systematic.switch import (
    CorrectCall,
    Fault,
    Reached,
    Switch,
    Wrong,
    images_of,
    instead,
)

WIDTHS: Final = (
    ("int64", "float64"),
    ("int64", "float32"),
    ("int64", "int32"),
    ("int32", "float32"),
    ("float64", "float32"),
    ("complex128", "complex64"),
)
"""Dtypes and the narrower ones in which kernels compute them by mistake."""


def of_widths(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield a fault for each narrower dtype, to which the operands and the results are rounded."""
    positions = [i for i in operands_of(record) if record.schema.parameters[i].kind not in (INDEX, INDICES, MASK)]
    for wide, narrow in WIDTHS if positions else ():
        through = _through(switch, positions, wide, narrow)
        reached, matters = _of_dtype(positions, wide), _every_number(switch, positions, wide, narrow)
        yield Fault(name, f"{wide} computed in {narrow}", through, reached, only_if_reached=True, matters=matters)


def _of_dtype(positions: Sequence[int], name: str) -> Reached:
    def reached(call: CorrectCall) -> bool:
        images = images_of([call.args[i] for i in positions if i < len(call.args)])
        return any(call.mirror.dtype_of(image).name == name for image in images)

    return reached


def rounded(array: Array, narrow: str) -> Array:
    """Return the array in its own dtype after a conversion to a narrower one. Too large integers saturate."""
    with np.errstate(all="ignore"):
        if array.dtype.kind == "i" and narrow.startswith("float"):
            bounds = np.iinfo(array.dtype)
            through = array.astype(narrow)
            return np.where(through >= float(bounds.max), bounds.max, through.astype(array.dtype)).astype(array.dtype)
        return np.asarray(array.astype(narrow).astype(array.dtype))


def _through(switch: Switch, positions: Sequence[int], wide: str, narrow: str) -> Wrong:
    def one(mirror: Mirror, image: Image) -> Image:
        if mirror.dtype_of(image).name != wide:
            return image
        array = array_of(mirror, image)
        changed = rounded(array, narrow)
        return image if changed.tobytes() == array.tobytes() else payload_of(mirror, changed, image.index)

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        changed = list(args)
        for i in positions:
            changed[i] = each_image(args[i], lambda image: one(mirror, image))
        out = instead(switch, mirror, right, right(*args), tuple(changed))
        less = each_image(out, lambda image: one(mirror, image))
        if any(a is not b for a, b in zip(images_of(less), images_of(out), strict=True)):
            switch.differs()
        return less

    return wrong


# -- whether it matters -----------------------------------------------------------------------------------------------
TURNS: Final = 32
"""The number of ways in which the operands of a call are filled."""


@cache
def numbers(name: str) -> Array:
    """Return numbers of every size of a dtype: 0, powers of two with their neighbours and multiples, of both signs, and
    those that are not finite."""
    d = np.dtype(name)
    if d.kind == "i":
        powers = [1 << bits for bits in range(8 * d.itemsize - 1)]
        near = {sign * (power + k) for power in powers for k in (-1, 0, 1, 2, 3) for sign in (1, -1)}
        limits = np.iinfo(d)
        return np.array(sorted(n for n in near | {0, limits.min, limits.max} if limits.min <= n <= limits.max), d)
    real = np.dtype(f"f{d.itemsize // 2}") if d.kind == "c" else d
    float_limits = np.finfo(real)
    least, most = float_limits.minexp - float_limits.nmant, float_limits.maxexp
    exponents = np.unique([*range(least, most, 5), -150, -149, -127, -126, 127, 128])
    some = np.concatenate([np.ldexp(mantissa, exponents) for mantissa in (1.0, 1.1, 1 + 2.0**-30)])
    every = np.concatenate([some, -some, [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(real)
    if d.kind == "f":
        return every
    both = np.zeros(2 * every.size, d)
    both.real[: every.size], both.imag[every.size :] = every, every
    return both


def _every_number(switch: Switch, positions: Sequence[int], wide: str, narrow: str) -> Wrong:
    """Return the fault with :func:`numbers` for the numbers of the operands. An error shows nothing, so it counts as a
    difference."""
    random = np.random.Generator(np.random.Philox(5))

    def filled(mirror: Mirror, image: Image) -> Image:
        if mirror.dtype_of(image).name != wide:
            return image
        size = elements(image.shape)
        return payload_of(mirror, random.choice(numbers(wide), size).reshape(image.shape), image.index)

    fault = _through(switch, positions, wide, narrow)

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        due = right(*args)
        for _ in range(TURNS):
            changed = list(args)
            for p in positions:
                changed[p] = each_image(args[p], partial(filled, mirror))
            try:
                fault(mirror, right, tuple(changed))
            except Exception:
                switch.differs()
            if switch.differed:
                break
        return due

    return wrong

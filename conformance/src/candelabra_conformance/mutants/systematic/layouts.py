"""Faults of strides: those of one kind of layout ignored, of one operand, of the target, or taken from another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel, contiguous_strides
from candelabra.library import Operator

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, payload_of
from candelabra_conformance.mutants.storage import (
    Steps,
    each_image,
    is_contiguous,
    overwrite,
    read_as,
    whole,
)
from candelabra_conformance.mutants.systematic.parameters import operands_of
from candelabra_conformance.mutants.systematic.results import elements
from candelabra_conformance.mutants.systematic.switch import (
    CorrectCall,
    Fault,
    Reached,
    Switch,
    Wrong,
    another,
    images_of,
    instead,
    of_arguments,
)

Kind = Callable[[Steps, Steps], bool]
"""Returns whether a shape with these strides, which are not contiguous, is of a kind of layout."""


def _several(shape: Steps, strides: Steps) -> list[tuple[int, int]]:
    """Return size and stride of the dims with several elements."""
    return [(n, step) for n, step in zip(shape, strides, strict=True) if n > 1]


def _expanded(shape: Steps, strides: Steps) -> bool:
    return any(step == 0 for _, step in _several(shape, strides))


def _with_gaps(shape: Steps, strides: Steps) -> bool:
    """Return whether each row is contiguous, with a gap before the next one."""
    dims = _several(shape, strides)
    return len(dims) > 1 and dims[-1][1] == 1 and all(a[1] >= b[0] * b[1] > 0 for a, b in pairwise(dims))


def _stepped(shape: Steps, strides: Steps) -> bool:
    dims = _several(shape, strides)
    return bool(dims) and dims[-1][1] > 1 and all(a[1] >= b[0] * b[1] for a, b in pairwise(dims))


def _permuted(shape: Steps, strides: Steps) -> bool:
    steps = [step for _, step in _several(shape, strides)]
    return 0 not in steps and steps != sorted(steps, reverse=True)


KINDS: Final[dict[str, Kind]] = {
    "gaps between rows": _with_gaps,
    "steps": _stepped,
    "permutations": _permuted,
    "expansions": _expanded,
}
"""The kinds of layouts that a kernel may not know of."""


def of_strides(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield the faults of a kernel that reads strided memory."""
    positions = operands_of(record)
    if not positions:
        return
    fault = of_arguments(switch, *_contiguous(lambda *_: True))
    yield Fault(name, "strides ignored", fault, _strided(lambda *_: True))
    for words, kind in KINDS.items():
        fault = of_arguments(switch, *_contiguous(kind))
        # The core dims of a matrix are never repeated, and vectors have no rows.
        yield Fault(name, f"{words} ignored", fault, _strided(kind), only_if_reached=True)
    yield Fault(name, "offsets ignored", _without_offsets(switch), _offset, only_if_reached=True)
    if len(positions) > 1:
        for position in positions:
            p = record.schema.parameters[position]
            yield Fault(
                name,
                f"strides of {p.name} ignored",
                _of_one(switch, position),
                _strided_at(position),
                only_if_reached=True,
                matters=_other_numbers(switch, position),
            )
        fault = _as_the_first(switch)
        yield Fault(name, "strides of the first operand for all", fault, _unlike_the_first, only_if_reached=True)


def _strided(kind: Kind) -> Reached:
    def reached(call: CorrectCall) -> bool:
        return any(
            elements(shape) > 1 and strides != contiguous_strides(shape) and kind(shape, strides)
            for shape, strides, _ in call.layouts
        )

    return reached


def _offset(call: CorrectCall) -> bool:
    return any(offset for _, _, offset in call.layouts)


def _strided_at(position: int) -> Reached:
    def reached(call: CorrectCall) -> bool:
        images = images_of(call.args[position]) if position < len(call.args) else ()
        return any(not is_contiguous(call.mirror, image) for image in images)

    return reached


def _unlike_the_first(call: CorrectCall) -> bool:
    return len({(shape, strides) for shape, strides, _ in call.layouts if shape == call.layouts[0][0]}) > 1


def _contiguous(kind: Kind) -> tuple[Callable[[Mirror, Image], Image], ...]:
    """Return functions that read payloads of one kind of layout as if they were contiguous.

    Beyond the end of the memory the first one reads other values, and the second one the payload's own, which are valid
    wherever others are not.
    """

    def changed(mirror: Mirror, image: Image, own: bool) -> Image:
        strides, _ = mirror.reference.layout(image.inner)
        if elements(image.shape) < 2 or strides == contiguous_strides(image.shape) or not kind(image.shape, strides):
            return image
        return _as_if_contiguous(mirror, image, own)

    return partial(changed, own=False), partial(changed, own=True)


def _as_if_contiguous(mirror: Mirror, image: Image, own: bool) -> Image:
    """Return a payload with the content of a contiguous payload at the same offset; beyond the memory's end there are
    other values, or with ``own`` its last ones."""
    flat = array_of(mirror, whole(mirror, image))
    offset, size = mirror.reference.layout(image.inner)[1], elements(image.shape)
    read = flat[np.arange(offset, offset + size) % flat.size]
    beyond = max(0, offset + size - flat.size)
    read[size - beyond :] = np.resize(flat[::-1], beyond) if own else another(read[size - beyond :])
    return payload_of(mirror, read.reshape(image.shape), image.index)


def _from_the_start(mirror: Mirror, image: Image) -> Image:
    return read_as(mirror, image, offset=0) if mirror.reference.layout(image.inner)[1] else image


def _without_offsets(switch: Switch) -> Wrong:
    """Return a fault that reads all operands from the start of their memory, or one of them if the kernel refuses what
    that gives."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        due, images = right(*args), images_of(args)
        for chosen in (images, *((image,) for image in images)):

            def change(image: Image, chosen: tuple[Image, ...] = chosen) -> Image:
                return _from_the_start(mirror, image) if any(image is one for one in chosen) else image

            out = instead(switch, mirror, right, due, each_image(args, change))
            if out is not due:
                return out
        return due

    return wrong


def _of_one(switch: Switch, position: int) -> Wrong:
    """Return a fault that reads one operand as if it were contiguous."""
    changes = _contiguous(lambda *_: True)

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        due = right(*args)
        for change in changes:
            changed = each_image(args[position], partial(change, mirror))
            out = instead(switch, mirror, right, due, (*args[:position], changed, *args[position + 1 :]))
            if out is not due:
                return out
        return due

    return wrong


def _other_numbers(switch: Switch, position: int) -> Wrong:
    """Return a kernel that reads other numbers than those of one operand: no fault of its strides matters to a kernel
    that reads none of them. An error shows nothing, so it counts as a difference."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        due = right(*args)

        def change(image: Image) -> Image:
            return payload_of(mirror, another(array_of(mirror, image)), image.index)

        changed = (*args[:position], each_image(args[position], change), *args[position + 1 :])
        try:
            right(*changed)
        except Exception:
            switch.differs()
            return due
        return instead(switch, mirror, right, due, changed)

    return wrong


def _as_the_first(switch: Switch) -> Wrong:
    """Return a fault that reads every operand of the first one's shape with the first one's strides."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        images = images_of(args)
        if not images:
            return right(*args)
        strides, _ = mirror.reference.layout(images[0].inner)

        def change(image: Image) -> Image:
            own, _ = mirror.reference.layout(image.inner)
            if image.shape != images[0].shape or own == strides:
                return image
            return read_as(mirror, image, strides=strides)

        return instead(switch, mirror, right, right(*args), each_image(args, change))

    return wrong


# -- in place ---------------------------------------------------------------------------------------------------------
def of_target_strides(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield the faults of an in-place kernel that writes and reads strided memory."""
    for words, kind in KINDS.items():
        if kind is not _expanded:  # no element can be written twice
            yield Fault(
                name, f"{words} of the target ignored", _written(switch, kind), _target(kind), only_if_reached=True
            )
    if len(operands_of(record)) > 1:
        yield Fault(
            name,
            "strides of the target for all operands",
            _read_as_the_target(switch),
            _unlike_the_first,
            only_if_reached=True,
        )


def _target(kind: Kind) -> Reached:
    def reached(call: CorrectCall) -> bool:
        shape, strides, _ = call.layouts[0]
        if elements(shape) < 2 or strides == contiguous_strides(shape) or not kind(shape, strides):
            return False
        written = array_of(call.mirror, call.images[0])
        # Equal elements without gaps are the same in any order.
        return not _dense(shape, strides) or written.tobytes() != np.full_like(written, written.flat[0]).tobytes()

    return reached


def _dense(shape: Steps, strides: Steps) -> bool:
    """Return whether the elements fill their part of the memory, in any order."""
    return sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) == elements(shape) - 1


def _written(switch: Switch, kind: Kind) -> Wrong:
    """Return a fault that writes the right content after the target's offset, as if it were contiguous."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        target: Image = args[0]
        strides, offset = mirror.reference.layout(target.inner)
        everything = whole(mirror, target)
        before = array_of(mirror, everything)
        right(*args)
        if strides == contiguous_strides(target.shape) or not kind(target.shape, strides):
            return target
        result = array_of(mirror, target).reshape(-1)
        due = array_of(mirror, everything)
        after = before.copy()
        after[offset : offset + result.size] = result[: max(before.size - offset, 0)]
        if after.tobytes() != due.tobytes():
            switch.differs()
            overwrite(mirror, everything, after)
        return target

    return wrong


def _read_as_the_target(switch: Switch) -> Wrong:
    """Return a fault that reads every operand of the target's shape with the target's strides."""

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        target: Image = args[0]
        strides, _ = mirror.reference.layout(target.inner)

        def change(image: Image) -> Image:
            unlike = image.shape == target.shape and mirror.reference.layout(image.inner)[0] != strides
            return read_as(mirror, image, strides=strides) if unlike and image is not target else image

        changed = each_image(args[1:], change)
        before = array_of(mirror, target)
        right(*args)
        due = array_of(mirror, target)
        overwrite(mirror, target, before)
        right(target, *changed)
        if array_of(mirror, target).tobytes() != due.tobytes():
            switch.differs()
        return target

    return wrong

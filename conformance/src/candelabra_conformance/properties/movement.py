"""Transfers between devices and libraries, and the layout that a tensor reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.dtypes import ALL, BY_NAME, dtype
from candelabra.errors import DeviceMismatch
from candelabra.library import open_device, own_kernels

from candelabra_conformance.context import MAIN, Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS, MEMORY, to_layout
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.memory import bit_patterns
from candelabra_conformance.properties.registry import Axis, device_property
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.transport import to_device, to_host

VIEWS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "itself": lambda x: x,
    "t": lambda x: x.transpose(0, 2),
    "slice": lambda x: x[1:, ::2],
    "row": lambda x: x[1],
    "slice of t": lambda x: x.transpose(0, 1)[1:3, 1:],
    "unsqueezed": lambda x: x.unsqueeze(1),
    "expanded": lambda x: x[:, :1].expand(4, 3, 6),
    "permuted row": lambda x: x.permute(2, 0, 1)[2],
    "view": lambda x: x.view(2, 6, 6),
    "split view": lambda x: x[:, :, 2:].unsqueeze(0).squeeze(0),
    "empty": lambda x: x[:0],
    "one": lambda x: x[1, 2, 3],
    "diagonal": lambda x: x.diagonal(1, 0, 2),
}
"""Views of a 4 x 3 x 6 tensor."""


def _stored(level: int, layouts: tuple[str, ...]) -> Callable[[Context], Iterator[Axis]]:
    def axes(context: Context) -> Iterator[Axis]:
        for d in ALL:
            if d in context.instance.capabilities.storage:
                for layout in layouts:
                    yield Axis(d, layout, level)

    return axes


def _once(level: int) -> Callable[[Context], Iterator[Axis]]:
    def axes(context: Context) -> Iterator[Axis]:
        yield Axis(None, "", level)

    return axes


@device_property("layout", _once(1))
def layout_reported(context: Context, d: dtype | None, layout: str) -> None:
    """Views have the strides, offset and contiguity of the reference's views."""
    held = next(d for d in ALL if d in context.instance.capabilities.storage)
    values = Maker("device", held)(4, 3, 6)
    for name, view in VIEWS.items():
        got, want = (view(to_device(values, at)) for at in (context.instance, context.reference))
        told = [(tuple(t.shape), t.stride(), t.storage_offset(), t.is_contiguous()) for t in (got, want)]
        if context.instance.capabilities.strided and told[0] != told[1]:
            raise Failure(f"{name}: shape, strides, offset, contiguity are {told[0]}, {told[1]} is due")
        if told[0][0] != told[1][0] or not same(to_host(got), to_host(want)):
            raise Failure(f"{name}: the view shows other values or has another shape")


@device_property("transfer", _stored(1, (CONTIGUOUS, *MEMORY[1:3])))
def transfer(context: Context, d: dtype, layout: str) -> None:
    """Copies to the reference device, to every other device of the type, and back preserve all bits in new memory."""
    instance = context.instance
    others = [context.reference.device]
    others += [cd.device(context.device.type, i) for i in range(len(instance.backend.devices())) if i != instance.index]
    for target in others:
        values = bit_patterns(d, (4, 3, 5))
        tensor = to_layout(values, layout, instance)
        if d not in open_device(target).backend.capabilities.storage or target == context.device:
            continue
        there = tensor.to(target)
        if there.device != target or not same(to_host(there), values):
            raise Failure(f"to({str(target)!r}): other bits arrive")
        back = there.to(context.device)
        if not same(to_host(back), values):
            raise Failure(f"to({str(target)!r}) and back: other bits arrive")
        there.zero_()
        if not same(to_host(tensor), values) or not same(to_host(back), values):
            raise Failure(f"to({str(target)!r}): the copy shares memory with the tensor")


@device_property("mixing", _once(1))
def mixing(context: Context, d: dtype | None, layout: str) -> None:
    """A call with tensors of two devices raises an error that names both, and computes nothing."""
    if context.is_reference and len(context.instance.backend.devices()) == 1:
        raise NotApplicable("the reference device is the only device")
    held = next(d for d in ALL if context.computes(d))
    here, there = (to_device(Maker("device", held)(3), at) for at in (context.instance, context.reference))
    try:
        here + there
    except DeviceMismatch as error:
        if str(context.device) not in str(error) or str(context.reference.device) not in str(error):
            raise Failure(f"the error does not name both devices: {error}") from error
    else:
        raise Failure("tensors of two devices were added")


class _Foreign:
    """An exporter of memory of an unknown device: its DLPack device type is not assigned."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 99, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise Failure("memory of an unknown device type was requested")


def _exported(context: Context) -> Iterator[Axis]:
    """Yield every stored dtype in four layouts; the first one belongs to level 2."""
    first = next((name for name in MAIN if BY_NAME[name] in context.instance.capabilities.storage), "")
    for d, layout, level in _stored(3, MEMORY[:4])(context):
        yield Axis(d, layout, 2 if d is not None and d.name == first else level)


@device_property("dlpack", _exported)
def dlpack(context: Context, d: dtype, layout: str) -> None:
    """Exported memory can be imported again with its layout; a device that does not declare DLPack raises an error."""
    tensor = to_layout(Maker("device", d)(4, 3, 5), layout, context.instance)
    if context.instance.capabilities.dlpack is None:
        try:
            tensor.__dlpack__()
        except BufferError:
            return
        raise Failure("the backend claims no DLPack, but a capsule came")
    if context.instance.backend.from_dlpack(_Foreign(), context.instance.index, None) is not None:
        raise Failure("memory of an unknown device type was imported")
    hosts = to_device(Maker("device", d)(2), context.reference)
    can, theirs = context.instance.capabilities, context.reference.backend.capabilities
    if theirs.dlpack not in (None, can.dlpack) and context.instance.backend.from_dlpack(hosts, 0, None) is not None:
        raise Failure(f"memory of {context.reference.device} was taken for the device's own")
    try:
        back = cd.from_dlpack(tensor)
    except (BufferError, NotImplementedError, RuntimeError, TypeError) as error:
        raise NotApplicable(f"{d.name} does not go through DLPack here: {error}") from error
    if back.device != tensor.device or back.dtype is not tensor.dtype or back.stride() != tensor.stride():
        raise Failure(f"it comes back as {back.dtype.name} on {back.device} with strides {back.stride()}")
    if not same(to_host(back), to_host(tensor)):
        raise Failure("it comes back with other values")
    if context.instance.capabilities.mutable:
        tensor.zero_()
        if np.any(to_host(back) != 0):
            raise Failure("it comes back over memory of its own")


DRAWS: Final[dict[str, Callable[[Any], Tensor]]] = {
    "rand": lambda d: cd.rand(5, 7, dtype=d),
    "randn": lambda d: cd.randn(1001, dtype=d),
    "randint": lambda d: cd.randint(-3, 1000, (33,)),
    "randperm": lambda d: cd.randperm(101),
    "bernoulli": lambda d: cd.bernoulli(cd.full((67,), 0.3, dtype=d)),
    "normal_": lambda d: cd.empty(3, 5, dtype=d).normal_(1.0, 2.0),
    "uniform_ of a view": lambda d: cd.zeros(4, 6, dtype=d).transpose(0, 1)[1:].uniform_(-1, 1),
    "one": lambda d: cd.rand((), dtype=d),
    "none": lambda d: cd.rand(0, dtype=d),
}
"""The draws, in order: each starts at the counter at which the preceding one ended."""


def _floating(context: Context) -> Iterator[Axis]:
    for d in ALL:
        if d.is_floating_point and context.computes(d):
            yield Axis(d, "", 2)


@device_property("random", _floating)
def random(context: Context, d: dtype, layout: str) -> None:
    """A seed, or a restored state, gives the same bits as on the reference device, for each draw."""

    def drawn(instance: Any) -> list[Any]:
        with instance.device:
            cd.manual_seed(1234567890123)
            first = [to_host(draw(d)) for draw in DRAWS.values()]
            kept = cd.get_rng_state()
            again = to_host(cd.rand(3, dtype=d))
            cd.set_rng_state(kept)
            return [*first, again, to_host(cd.rand(3, dtype=d))]

    got = drawn(context.instance)
    with own_kernels():
        want = drawn(context.reference)
    for name, a, b in zip([*DRAWS, "rand", "rand from the kept state"], got, want, strict=True):
        if not same(a, b):
            raise Failure(f"{name}: other bits than on the reference device")
    if not same(got[-1], got[-2]):
        raise Failure("the state that was kept does not give the same draw again")

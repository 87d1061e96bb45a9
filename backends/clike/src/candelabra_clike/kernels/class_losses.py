"""Losses of class indices and their gradient, in one launch each."""

from __future__ import annotations

from math import prod
from typing import Any

from candelabra.dtypes import dtype, float64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import of_floating, of_single_and_double
from candelabra_clike.language import INDEX, Value, cast, constant, select, value_type
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.indexing.index_arrays import IndexErrors

GRAIN = 2048
"""Elements that a work-item reads or writes on serial devices."""
BLOCK, TARGETS = 64, 1 << 12
"""Losses that are added to one sum, and the targets whose sums one work-item adds."""
INVALID_TARGET = IndexOutOfBounds("class_losses", IndexError, "Target {index} is out of bounds.")


@built("class_losses")
def forward(d: dtype, serial: bool, weighted: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item processes some targets, of which a row of ``count`` classes has
    ``inner``. With ``weighted``, each class has a weight.
    """
    k = KernelBuilder(f"{'weighted_' * weighted}class_losses_{d.name}", wide)
    losses, weights = k.writes("losses", d), k.writes("weights", d)
    x, target = k.reads("x", d), k.reads("target", "i64")
    errors, (x_at, target_at) = IndexErrors(k), k.numbers("x_at", "target_at")
    ignored, (n, per_item, count, inner) = k.number("ignored", "i64"), k.numbers("n", "per_item", "count", "inner")
    scale, scale_at = (k.reads("scale", d), k.number("scale_at")) if weighted else (None, None)
    errors.declare()
    position = TargetPosition(k, k.item * per_item, count, inner) if serial else None
    with k.share("i", n, per_item) as i:
        chosen = k.let("chosen", target[target_at + i])
        counts = k.let("counts", chosen != ignored)
        good = k.let("good", counts & (cast("u64", chosen) < count))
        with k.when(counts & ~good):
            errors.note(chosen)
        loss = k.variable("loss", constant(value_type(d), 0))
        weight = k.variable("weight", cast(value_type(d), good))
        with k.when(good):
            k.assign(
                loss, -x[x_at + (_offset(i, chosen, count, inner) if position is None else position.of_class(chosen))]
            )
            if scale is not None and scale_at is not None:
                k.assign(weight, scale[scale_at + cast(INDEX, chosen)])
                k.assign(loss, loss * weight)
        losses[i] = loss
        weights[i] = weight
        if position is not None:
            position.step()
    errors.report(1, count)
    return k.source(group=1 if serial else None)


class TargetPosition:
    """The place of a target, which goes from one target to the next without the divisions of :func:`_offset`."""

    def __init__(self, k: KernelBuilder, first: Value, count: Value, inner: Value) -> None:
        self._kernel, self._inner = k, inner
        self._row_size = k.let("row_size", count * inner)
        self._row = k.variable("row", first // inner * self._row_size)
        self._place = k.variable("place", first % inner)

    def of_class(self, chosen: Value) -> Value:
        """Return the number of the element of the target in its class."""
        return self._row + cast(INDEX, chosen) * self._inner + self._place

    def step(self) -> None:
        """Go on with the next target."""
        k = self._kernel
        k.assign(self._place, self._place + 1)
        with k.when(self._place == self._inner):
            k.assign(self._place, 0)
            k.assign(self._row, self._row + self._row_size)


def _offset(i: Value, chosen: Value, count: Value, inner: Value) -> Value:
    """Return the number of the element of target ``i`` in its class."""
    return (i // inner * count + cast(INDEX, chosen)) * inner + i % inner


@built("mean_class_loss")
def mean(d: dtype, shared: bool) -> Source:
    """Return the kernel in which one work-item adds the losses, in float64 and by blocks.

    ``shared``: each work-item adds those of some targets, and writes their sum and their number.
    """
    k = KernelBuilder(f"mean_class_loss_{'parts_' * shared}{d.name}", wide=True)
    outs = [k.writes("parts", "f64")] if shared else [k.writes("mean", d), k.writes("counted", d)]
    x, target = k.reads("x", d), k.reads("target", "i64")
    errors, (x_at, target_at) = IndexErrors(k), k.numbers("x_at", "target_at")
    ignored, (n, per_item, count, inner) = k.number("ignored", "i64"), k.numbers("n", "per_item", "count", "inner")
    errors.declare()
    many, total = k.variable("many", constant(INDEX, 0)), k.variable("total", constant("f64", 0))
    first = k.let("first", k.item * per_item)
    stop = k.let("stop", first + least(n - first, per_item))
    position = TargetPosition(k, first, count, inner)
    with k.loop("begin", first, stop, BLOCK) as begin:
        part = k.variable("part", constant("f64", 0))
        with k.loop("i", begin, least(begin + BLOCK, stop)) as i:
            chosen = k.let("chosen", target[target_at + i])
            at = k.let("at", position.of_class(chosen))
            position.step()
            with k.when(chosen == ignored):
                k.next()
            k.assign(many, many + 1)
            with k.when(cast("u64", chosen) >= count):
                errors.note(chosen)
                k.next()
            k.assign(part, part - cast("f64", x[x_at + at]))
        k.assign(total, total + part)
    if shared:
        outs[0][k.item * 2] = total
        outs[0][k.item * 2 + 1] = cast("f64", many)
    else:
        outs[0][0] = cast(value_type(d), total / cast("f64", many))
        outs[1][0] = cast(value_type(d), many)
    errors.report(1, count)
    return k.source(group=1)


@built("mean_class_loss")
def mean_of_parts(d: dtype) -> Source:
    """Return the kernel in which one work-item divides the sum of all parts by their number of targets."""
    k = KernelBuilder(f"mean_class_loss_of_parts_{d.name}", wide=False)
    mean, counted, parts, count = (
        k.writes("mean", d),
        k.writes("counted", d),
        k.reads("parts", "f64"),
        k.number("count"),
    )
    total, many = k.variable("total", constant("f64", 0)), k.variable("many", constant("f64", 0))
    with k.loop("i", 0, count) as i:
        k.assign(total, total + parts[i * 2])
        k.assign(many, many + parts[i * 2 + 1])
    mean[0] = cast(value_type(d), total / many)
    counted[0] = cast(value_type(d), many)
    return k.source(group=1)


@built("class_losses_backward")
def backward(d: dtype, serial: bool, single_target: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item writes some rows, or one element.

    ``single_target``: a row has one target.
    """
    k = KernelBuilder(f"class_losses_backward_{d.name}{'_single' if single_target else ''}", wide)
    out, grad, target = k.writes("out", d), k.reads("grad", d), k.reads("target", "i64")
    grad_at, step, target_at = k.numbers("grad_at", "step", "target_at")
    ignored, (n, per_item, count, inner) = k.number("ignored", "i64"), k.numbers("n", "per_item", "count", "inner")

    def gradient(g: Value, is_target: Value) -> Value:
        return select(is_target, 0 - g, 0)

    if not serial:
        i = k.let("i", k.item // inner // count * inner + k.item % inner)
        chosen, mine = k.let("chosen", target[target_at + i]), cast("i64", k.item // inner % count)
        g = k.let("g", grad[grad_at + i * step])
        out[k.item] = gradient(g, (chosen == mine) & (chosen != ignored))
        return k.source()
    with k.share("row", n, per_item) as row:
        to = k.pointer("to", out, row * count * inner)
        if single_target:
            chosen = k.let("chosen", target[target_at + row])
            here = k.let("here", select(chosen == ignored, -1, cast("i32", chosen)))
            g = k.let("g", grad[grad_at + row * step])
            with k.loop("j", 0, k.let("many", cast("i32", count)), independent=True) as j:
                to[j] = gradient(g, j == here)
        else:
            targets = k.pointer("targets", target, target_at + row * inner)
            grads = k.pointer("grads", grad, grad_at + row * inner * step)
            many, far = k.let("many", cast("i32", inner)), k.let("far", cast("i32", step))
            with k.loop("c", 0, count) as c:
                there = k.pointer("there", to, c * inner)
                with k.loop("j", 0, many, independent=True) as j:
                    is_target = (targets[j] == cast("i64", c)) & (targets[j] != ignored)
                    # Loaded for every element: a load under a condition is not vectorized.
                    there[j] = gradient(k.let("g", grads[j * far]), is_target)
    return k.source(group=1)


def _losses(x: StridedArray, target: StridedArray, scale: StridedArray | None, ignored: int, name: str) -> Any:
    """Launch the kernel of losses, with or without weights of the classes."""
    engine, shape = x.engine, (x.shape[0], *x.shape[2:])
    if target.shape != shape:
        raise RuntimeError(f"{name}: expected targets of shape {shape}, got {target.shape}")
    if scale is not None and scale.shape != x.shape[1:2]:
        raise RuntimeError(f"{name}: expected {x.shape[1]} weights, got an array of shape {scale.shape}")
    outs = engine.empty(shape, x.dtype), engine.empty(shape, x.dtype)
    x, target, n = contiguous(x), contiguous(target), outs[0].size
    weights: tuple[Any, ...] = ()
    if scale is not None:
        scale = contiguous(scale)
        weights = scale.buffer, scale.offset
    errors, ticket = engine.errors.register(INVALID_TARGET, [])
    per_item = GRAIN if engine.traits.serial else 1
    wide = max(x.offset + x.size, target.offset + target.size) >= WIDE
    compiled(engine, forward, x.dtype, engine.traits.serial, scale is not None, wide)(
        -(-n // per_item), outs[0].buffer, outs[1].buffer, x.buffer, target.buffer, errors, ticket, x.offset,
        target.offset, ignored, n, per_item, x.shape[1], prod(shape[1:]), *weights,
    )  # fmt: skip
    return outs


def class_losses(x: StridedArray, target: StridedArray, ignored: int) -> Any:
    """Return the losses and 1 for each target that counts."""
    return _losses(x, target, None, ignored, "class_losses")


def weighted_class_losses(x: StridedArray, target: StridedArray, weight: StridedArray, ignored: int) -> Any:
    """Return the losses times the weights of their classes, and these weights."""
    return _losses(x, target, weight, ignored, "weighted_class_losses")


def mean_class_loss(x: StridedArray, target: StridedArray, ignored: int) -> Any:
    """Return the mean loss of the targets that count, and their number."""
    engine, shape, d = x.engine, (x.shape[0], *x.shape[2:]), x.dtype
    if target.shape != shape:
        raise RuntimeError(f"mean_class_loss: expected targets of shape {shape}, got {target.shape}")
    if not engine.traits.serial or engine.lacks(float64):
        return NotImplemented
    outs = engine.empty((), d), engine.empty((), d)
    x, target = contiguous(x), contiguous(target)
    errors, ticket = engine.errors.register(INVALID_TARGET, [])
    buffers = (x.buffer, target.buffer, errors, ticket)
    numbers = (x.offset, target.offset, ignored, target.size, TARGETS, x.shape[1], prod(shape[1:]))
    items = -(-target.size // TARGETS)
    if items <= 1:
        compiled(engine, mean, d, False)(1, outs[0].buffer, outs[1].buffer, *buffers, *numbers)
    else:
        parts = engine.empty((items, 2), float64)
        compiled(engine, mean, d, True)(items, parts.buffer, *buffers, *numbers)
        compiled(engine, mean_of_parts, d)(1, outs[0].buffer, outs[1].buffer, parts.buffer, items)
    return outs


def class_losses_backward(grad: StridedArray, target: StridedArray, shape: Shape, ignored: int) -> StridedArray:
    """Return the gradient of the input."""
    engine, d, inner = grad.engine, grad.dtype, prod(shape[2:])
    out = engine.empty(tuple(shape), d)
    if not out.size:
        return out
    step = 0 if not any(grad.strides) else 1  # the gradient of a sum is the same for all elements
    grad, target = grad if not step else contiguous(grad), contiguous(target)
    row = shape[1] * inner
    wide = max(out.size, grad.offset + out.size, target.offset + out.size) >= WIDE
    per_item = max(1, GRAIN // row)
    items = -(-shape[0] // per_item) if engine.traits.serial else out.size
    compiled(engine, backward, d, engine.traits.serial, inner == 1, wide)(
        items, out.buffer, grad.buffer, target.buffer, grad.offset, step, target.offset, ignored, shape[0],
        per_item, shape[1], inner,
    )  # fmt: skip
    return out


KERNELS: dict[str, Any] = {
    "mean_class_loss": of_single_and_double(mean_class_loss), "class_losses": of_floating(class_losses),
    "weighted_class_losses": of_floating(weighted_class_losses),
    "class_losses_backward": of_floating(class_losses_backward),
}  # fmt: skip

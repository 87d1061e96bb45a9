"""Losses of class indices and their gradient, in one launch each."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from candelabra.dtypes import FLOATING, dtype, float32, float64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

GRAIN = 2048
"""Elements that a work-item reads or writes on serial devices."""
BLOCK, MOST_TARGETS = 64, 1 << 12
"""Losses that are added to one sum, and the number of targets up to which one work-item adds all sums."""
INVALID_TARGET = IndexOutOfBounds("class_losses", IndexError, "Target {index} is out of bounds.")


@lru_cache(None)
def forward(engine: Engine, d: dtype, weighted: bool, wide: bool) -> Launch:
    """Return the kernel in which a work-item processes some targets, of which a row of ``count`` classes has
    ``inner``. With ``weighted``, each class has a weight.
    """
    c = CTYPES[d]
    parameters = (
        *((reads("scale", c.memory), number("scale_at")) if weighted else ()),
        writes("losses", c.memory), writes("weights", c.memory), reads("x", c.memory), reads("target", "i64"),
        writes("errors", "i64"), number("ticket", "u32"), number("x_at"), number("target_at"), number("ignored", "i64"),
        *map(number, ("n", "per_item", "count", "inner")),
    )  # fmt: skip
    scale = c.load("scale[scale_at + (INDEX)chosen]")
    weight = f"good ? {scale} : ({c.value})0" if weighted else f"({c.value})counts"
    body = (
        "u32 wrong = 0; i64 value = 0;\nconst INDEX begin = GLOBAL_ID * per_item;\n"
        "const INDEX end = begin + per_item < n ? begin + per_item : n;\n"
        "for (INDEX i = begin; i < end; ++i) {\n"
        "const i64 chosen = target[target_at + i];\n"
        "const u32 counts = chosen != ignored, good = counts && (u64)chosen < (u64)count;\n"
        "if (counts && !good) { wrong = 1; value = chosen; }\n"
        f"{c.value} loss = 0;\nif (good) {{\n"
        "const INDEX place = (i / inner * count + (INDEX)chosen) * inner + i % inner;\n"
        f"loss = -({c.load('x[x_at + place]')});\n}}\n"
        f"const {c.value} weight = {weight};\n"
        f"losses[i] = {c.store('loss * weight' if weighted else 'loss')};\nweights[i] = {c.store('weight')};\n}}\n"
        "if (wrong) report_error(errors, ticket, value, 1, (i64)count);"
    )
    group = 1 if engine.traits.serial else None
    name = f"{'weighted_' if weighted else ''}class_losses_{d.name}"
    return engine.compile(Source(name, parameters, body, group=group, wide=wide))


@lru_cache(None)
def mean(engine: Engine, d: dtype) -> Launch:
    """Return the kernel in which one work-item adds the losses, in float64 and by blocks."""
    c = CTYPES[d]
    parameters = (
        writes("mean", c.memory), writes("counted", c.memory), reads("x", c.memory), reads("target", "i64"),
        writes("errors", "i64"), number("ticket", "u32"), number("x_at"), number("target_at"), number("ignored", "i64"),
        *map(number, ("n", "count", "inner")),
    )  # fmt: skip
    body = f"""u32 wrong = 0; i64 value = 0; INDEX many = 0; f64 total = 0;
for (INDEX begin = 0; begin < n; begin += {BLOCK}u) {{
const INDEX end = begin + {BLOCK}u < n ? begin + {BLOCK}u : n;
f64 part = 0;
for (INDEX i = begin; i < end; ++i) {{
const i64 chosen = target[target_at + i];
if (chosen == ignored) continue;
++many;
if ((u64)chosen >= (u64)count) {{ wrong = 1; value = chosen; continue; }}
part -= (f64)x[x_at + (i / inner * count + (INDEX)chosen) * inner + i % inner];
}}
total += part;
}}
mean[0] = ({c.value})(total / (f64)many);
counted[0] = ({c.value})many;
if (wrong) report_error(errors, ticket, value, 1, (i64)count);"""
    return engine.compile(Source(f"mean_class_loss_{d.name}", parameters, body, group=1, wide=True))


@lru_cache(None)
def backward(engine: Engine, d: dtype, single_target: bool, wide: bool) -> Launch:
    """Return the kernel in which a work-item writes some rows, or one element.

    ``single_target``: a row has one target.
    """
    c, serial = CTYPES[d], engine.traits.serial
    parameters = (
        writes("out", c.memory), reads("grad", c.memory), reads("target", "i64"), number("grad_at"), number("step"),
        number("target_at"), number("ignored", "i64"), *map(number, ("n", "per_item", "count", "inner")),
    )  # fmt: skip
    if not serial:
        body = (
            "const INDEX row = GLOBAL_ID / inner / count, i = row * inner + GLOBAL_ID % inner;\n"
            "const i64 chosen = target[target_at + i], mine = (i64)(GLOBAL_ID / inner % count);\n"
            f"const {c.value} g = {c.load('grad[grad_at + i * step]')};\n"
            f"out[GLOBAL_ID] = {c.store('chosen == mine && chosen != ignored ? 0 - g : 0')};"
        )
    else:
        body = (
            "const INDEX begin = GLOBAL_ID * per_item;\n"
            "const INDEX end = begin + per_item < n ? begin + per_item : n;\n"
            "for (INDEX row = begin; row < end; ++row) {\n"
            f"GLOBAL {c.memory}* const to = out + row * count * inner;\n"
            f"{(_single_target_rows if single_target else _target_rows)(d)}}}"
        )
    name = f"class_losses_backward_{d.name}{'_single' if single_target else ''}"
    return engine.compile(Source(name, parameters, body, group=1 if serial else None, wide=wide))


def _single_target_rows(d: dtype) -> str:
    c = CTYPES[d]
    return (
        "const i64 chosen = target[target_at + row];\n"
        "const int here = chosen == ignored ? -1 : (int)chosen, many = (int)count;\n"
        f"const {c.value} g = {c.load('grad[grad_at + row * step]')};\n"
        f"INDEPENDENT\nfor (int j = 0; j < many; ++j) to[j] = {c.store('j == here ? 0 - g : 0')};\n"
    )


def _target_rows(d: dtype) -> str:
    c = CTYPES[d]
    return (
        "GLOBAL const i64* const chosen = target + (target_at + row * inner);\n"
        f"GLOBAL const {c.memory}* const from_grad = grad + (grad_at + row * inner * step);\n"
        "const int many = (int)inner, far = (int)step;\nfor (INDEX k = 0; k < count; ++k) {\n"
        f"GLOBAL {c.memory}* const there = to + k * inner;\nINDEPENDENT\nfor (int j = 0; j < many; ++j) {{\n"
        f"const {c.value} g = {c.load('from_grad[j * far]')};\n"
        f"there[j] = {c.store('chosen[j] == (i64)k && chosen[j] != ignored ? 0 - g : 0')};\n}}\n}}\n"
    )


def _losses(x: StridedArray, target: StridedArray, scale: StridedArray | None, ignored: int, name: str) -> Any:
    """Launch the kernel of losses, with or without weights of the classes."""
    engine, shape = x.engine, (x.shape[0], *x.shape[2:])
    if target.shape != shape:
        raise RuntimeError(f"{name}: expected targets of shape {shape}, got {target.shape}")
    if scale is not None and scale.shape != x.shape[1:2]:
        raise RuntimeError(f"{name}: expected {x.shape[1]} weights, got an array of shape {scale.shape}")
    outs = engine.empty(shape, x.dtype), engine.empty(shape, x.dtype)
    x, target, n = contiguous(x), contiguous(target), outs[0].size
    first: tuple[Any, ...] = ()
    if scale is not None:
        scale = contiguous(scale)
        first = scale.buffer, scale.offset
    errors, ticket = engine.errors.register(INVALID_TARGET, [])
    per_item = GRAIN if engine.traits.serial else 1
    wide = max(x.offset + x.size, target.offset + target.size) >= WIDE
    forward(engine, x.dtype, scale is not None, wide)(
        -(-n // per_item), *first, outs[0].buffer, outs[1].buffer, x.buffer, target.buffer, errors, ticket, x.offset,
        target.offset, ignored, n, per_item, x.shape[1], prod(shape[1:]),
    )  # fmt: skip
    return outs


def class_losses(x: StridedArray, target: StridedArray, ignored: int) -> Any:
    """Return the losses and 1 for each target that counts."""
    return _losses(x, target, None, ignored, "class_losses")


def weighted_class_losses(x: StridedArray, target: StridedArray, weight: StridedArray, ignored: int) -> Any:
    """Return the losses times the weights of their classes, and these weights."""
    return _losses(x, target, weight, ignored, "weighted_class_losses")


def _mean_for(d: dtype) -> Callable[..., Any] | None:
    if d not in (float32, float64):
        return None

    def mean_class_loss(x: StridedArray, target: StridedArray, ignored: int) -> Any:
        engine, shape = x.engine, (x.shape[0], *x.shape[2:])
        if target.shape != shape:
            raise RuntimeError(f"mean_class_loss: expected targets of shape {shape}, got {target.shape}")
        if target.size > MOST_TARGETS or not engine.traits.serial or engine.lacks(float64):
            return NotImplemented
        outs = engine.empty((), d), engine.empty((), d)
        x, target = contiguous(x), contiguous(target)
        errors, ticket = engine.errors.register(INVALID_TARGET, [])
        mean(engine, d)(
            1, outs[0].buffer, outs[1].buffer, x.buffer, target.buffer, errors, ticket, x.offset, target.offset,
            ignored, target.size, x.shape[1], prod(shape[1:]),
        )  # fmt: skip
        return outs

    return mean_class_loss


def _losses_backward_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def class_losses_backward(grad: StridedArray, target: StridedArray, shape: Shape, ignored: int) -> StridedArray:
        engine, inner = grad.engine, prod(shape[2:])
        out = engine.empty(tuple(shape), d)
        if not out.size:
            return out
        step = 0 if not any(grad.strides) else 1  # the gradient of a sum is the same for all elements
        grad, target = grad if not step else contiguous(grad), contiguous(target)
        row = shape[1] * inner
        wide = max(out.size, grad.offset + out.size, target.offset + out.size) >= WIDE
        per_item = max(1, GRAIN // row)
        items = -(-shape[0] // per_item) if engine.traits.serial else out.size
        backward(engine, d, inner == 1, wide)(
            items, out.buffer, grad.buffer, target.buffer, grad.offset, step, target.offset, ignored, shape[0],
            per_item, shape[1], inner,
        )  # fmt: skip
        return out

    return class_losses_backward


KERNELS: dict[str, Any] = {
    "mean_class_loss": DtypeSpecialized(_mean_for),
    "class_losses": DtypeSpecialized(lambda d: class_losses if d.category == FLOATING else None),
    "weighted_class_losses": DtypeSpecialized(lambda d: weighted_class_losses if d.category == FLOATING else None),
    "class_losses_backward": DtypeSpecialized(_losses_backward_for),
}

"""Convolutions and their adjoints, in every numeric dtype; half types in float32, complex ones as four real ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd, prod
from typing import Any, NamedTuple

from candelabra.dtypes import COMPLEX, FLOATING, dtype, float32, float64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.copying import dense
from candelabra_clike.kernels.matmul import narrow, parts, widen
from candelabra_clike.layouts import collapsed
from candelabra_clike.templates.convolutions.convolution import Patches, Results, convolution_in_weight, convolve
from candelabra_clike.templates.copies.packing import as_bits, framed
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.products.packing import Rows


class Geometry(NamedTuple):
    """Stride, padding and dilation of each dim, and the number of groups."""

    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int

    def places(self, sizes: Shape, kernel: Shape) -> Shape:
        """How many places a kernel has, per dim."""
        each = zip(sizes, kernel, *self[:3], strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each)


def patches(x: StridedArray, kernel: Shape, geometry: Geometry, places: Shape) -> tuple[StridedArray, Patches, bool]:
    """The images with a frame where one is needed, what each place sees of them, and whether there is slack behind."""
    stride, padding, dilation, groups = geometry
    slack = any(padding)
    if slack:
        reach = [(m - 1) * s + d * (k - 1) + 1 for m, k, s, d in zip(places, kernel, stride, dilation, strict=True)]
        after = tuple([max(r - n - p, 0) for r, n, p in zip(reach, x.shape[2:], padding, strict=True)])
        x = framed(x, padding, after)
    steps = x.strides[2:]
    found = Patches(
        x.offset, x.shape[0], groups, x.shape[1] // groups, kernel, places, x.strides[0], x.strides[1],
        tuple([s * d for s, d in zip(steps, dilation)]), tuple([s * t for s, t in zip(steps, stride)]),
    )  # fmt: skip
    return x, found, slack


def _conv(x: StridedArray, w: StridedArray, bias: StridedArray | None, geometry: Geometry) -> StridedArray:
    kernel = w.shape[2:]
    places = geometry.places(x.shape[2:], kernel)
    out = x.engine.empty((x.shape[0], w.shape[0], *places), x.dtype)
    if out.size:
        seen, found, slack = patches(x, kernel, geometry, places)
        count, row_step = w.shape[0] // geometry.groups, w.strides[0]
        sizes, (steps,) = collapsed(w.shape[1:], (w.strides[1:],))
        filters = Rows(w.offset, geometry.groups, count * row_step, count, row_step, sizes, steps)
        results = Results(0, out.strides[0], out.strides[1], out.strides[2:])
        convolve(out, w, filters, seen, bias, found, results, slack)
    return out


class Phase(NamedTuple):
    """The positions of one dim of the input, ``stride`` apart, that see the same taps, in the order of what they see.

    There are ``places`` of them from ``first`` on, and ``taps`` taps, the first of them ``tap``, then ``tap_step``
    backwards; ``seen`` is the place that the first position sees by the first of them, ``seen_step`` on.
    """

    first: int
    places: int
    taps: int
    tap: int
    tap_step: int
    seen: int
    seen_step: int


def phases(size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Phase]:
    """The phases of a dim. Position i sees place (i + padding - tap * dilation) / stride where that is whole."""
    found = []
    step, seen_step = stride // gcd(stride, dilation), dilation // gcd(stride, dilation)
    for first in range(min(stride, size)):
        count = -(-(size - first) // stride)
        taps = [k for k in range(kernel) if (first + padding - k * dilation) % stride == 0]
        last = taps[-1] if taps else 0
        seen = (first + padding - last * dilation) // stride if taps else 0
        found.append(Phase(first, count, len(taps), last, step, seen, seen_step))
    return found


def _conv_input(y: StridedArray, w: StridedArray, shape: Shape, geometry: Geometry) -> StridedArray:
    """Each phase is a convolution of ``y`` at stride 1 with the taps it sees, turned round."""
    stride, padding, dilation, _ = geometry
    out = y.engine.empty(shape, y.dtype)
    if not out.size:
        return out
    if shape[2:] == w.shape[2:] and set(y.shape[2:]) == {1} == set(dilation) and not any(padding):
        return _one_place(out, y, dense(w), geometry.groups)
    each = [phases(*sizes) for sizes in zip(shape[2:], w.shape[2:], stride, padding, dilation, strict=True)]
    before = tuple([max(0, *[-p.seen for p in dim]) for dim in each])
    last = [max(p.seen + p.places - 1 + (p.taps - 1) * p.seen_step for p in dim) for dim in each]
    after = tuple([max(0, n - m + 1) for n, m in zip(last, y.shape[2:], strict=True)])
    slack = any(before) or any(after)
    if slack:
        y = framed(y, before, after)
    for chosen in _combinations(each):
        _one_phase(out, y, w, chosen, before, geometry, slack)
    return out


def _combinations(each: list[list[Phase]]) -> list[tuple[Phase, ...]]:
    combined: list[tuple[Phase, ...]] = [()]
    for dim in each:
        combined = [(*left, phase) for left in combined for phase in dim]
    return combined


def _one_phase(
    out: StridedArray, y: StridedArray, w: StridedArray, chosen: tuple[Phase, ...], before: Shape, geometry: Geometry,
    slack: bool,
) -> None:  # fmt: skip
    groups = geometry.groups
    steps, o_steps, w_steps = y.strides[2:], out.strides[2:], w.strides[2:]
    inner, outer = w.shape[0] // groups, w.shape[1]
    taps = tuple([p.taps for p in chosen])
    turned = Rows(
        w.offset + sum(p.tap * s for p, s in zip(chosen, w_steps)), groups, inner * w.strides[0],
        outer, w.strides[1], (inner, *taps), (w.strides[0], *[-p.tap_step * s for p, s in zip(chosen, w_steps)]),
    )  # fmt: skip
    found = Patches(
        y.offset + sum((p.seen + b) * s for p, b, s in zip(chosen, before, steps)), y.shape[0], groups, inner, taps,
        tuple([p.places for p in chosen]), y.strides[0], y.strides[1],
        tuple([p.seen_step * s for p, s in zip(chosen, steps)]), steps,
    )  # fmt: skip
    first = sum(p.first * s for p, s in zip(chosen, o_steps))
    results = Results(first, out.strides[0], out.strides[1], tuple([t * s for t, s in zip(geometry.stride, o_steps)]))
    convolve(out, w, turned, y, None, found, results, slack)


def _one_place(out: StridedArray, y: StridedArray, w: StridedArray, groups: int) -> StridedArray:
    """Each position sees one tap of the only place: taps and channels are the rows of a convolution with one tap."""
    inner, once, nowhere = w.shape[0] // groups, (1,) * len(w.shape[2:]), (0,) * len(w.shape[2:])
    rows = prod(w.shape[1:])
    filters = Rows(w.offset, groups, inner * rows, rows, 1, (inner,), (rows,))
    found = Patches(y.offset, y.shape[0], groups, inner, once, once, y.strides[0], y.strides[1], nowhere, nowhere)
    convolve(out, w, filters, y, None, found, Results(0, out.strides[0], 1, nowhere), False)
    return out


def _conv_weight(x: StridedArray, y: StridedArray, shape: Shape, geometry: Geometry) -> StridedArray:
    kernel = shape[2:]
    out = x.engine.empty(shape, x.dtype)
    if not out.size:
        return out
    seen, found, _ = patches(x, kernel, geometry, y.shape[2:])
    if found.few:
        found = found.together()
        (images, channels, *places), (step, channel_step, *steps) = y.shape, y.strides
        y = y.restrided((1, channels, images, *places), (0, channel_step, step, *steps), y.offset)
    convolution_in_weight(x.dtype, len(found.taps))(out, seen, dense(y), found)
    return out


Multilinear = Callable[..., StridedArray]


def _in_parts(function: Multilinear, a: StridedArray, b: StridedArray, *rest: Any) -> StridedArray:
    """A bilinear function of complex arrays, from that of their parts."""
    (a_real, a_imag), (b_real, b_imag) = parts(a), parts(b)
    result: StridedArray = combine(a.dtype)(
        function(a_real, b_real, *rest),
        function(a_imag, b_imag, *rest),
        function(a_real, b_imag, *rest),
        function(a_imag, b_real, *rest),
    )
    return result


@lru_cache(2)
def combine(d: dtype) -> Elementwise:
    """The complex product from those of the parts."""
    word, real = ("C64", float32) if d.itemsize == 8 else ("C128", float64)
    return Elementwise(f"complex_from_parts_{d.name}", f"{word}({{a}} - {{b}}, {{c}} + {{d}})", (real,) * 4, d)


def bilinear(function: Multilinear, a: StridedArray, b: StridedArray, *rest: Any) -> StridedArray:
    """The function in the dtypes that it computes in, from those of its arguments."""
    d = a.dtype
    if d.category == COMPLEX:
        return _in_parts(function, a, b, *rest)
    if d.category == FLOATING and d.itemsize == 2:
        result: StridedArray = narrow(d)(function(widen(d)(a), widen(d)(b), *rest))
        return result
    if d.category < FLOATING:
        bits = function(as_bits(a), as_bits(b), *rest)
        return bits.restrided(bits.shape, bits.strides, bits.offset, d)
    return function(a, b, *rest)


@lru_cache(2)
def add(d: dtype) -> Elementwise:
    """The sum of complex numbers."""
    return Elementwise(f"complex_sum_{d.name}", "{a} + {b}", (d, d), d)


def conv(
    x: StridedArray, w: StridedArray, bias: StridedArray | None, stride: Shape, padding: Shape, dilation: Shape,
    groups: int,
) -> StridedArray:  # fmt: skip
    """The kernel of ``conv``."""
    geometry = Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)
    rank, d = len(geometry.stride), x.dtype
    if len(x.shape) != rank + 2 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise RuntimeError(f"shapes {x.shape} and {w.shape} do not fit")
    if 0 in w.shape[2:] or min(geometry.places(x.shape[2:], w.shape[2:])) < 1:
        raise RuntimeError(f"the kernel {w.shape} is larger than {x.shape}")
    if bias is not None and d.category == COMPLEX:
        wide = bias.restrided((*bias.shape, *[1] * rank), (*bias.strides, *[0] * rank), bias.offset)
        result: StridedArray = add(d)(bilinear(_conv, x, w, None, geometry), wide)
        return result
    if bias is not None:
        bias = widen(d)(bias) if d.category == FLOATING and d.itemsize == 2 else bias
        bias = dense(as_bits(bias) if d.category < FLOATING else bias)
    return bilinear(_conv, x, w, bias, geometry)


def conv_input(
    y: StridedArray, w: StridedArray, shape: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> StridedArray:
    """The kernel of ``conv_input``."""
    geometry = Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)
    if y.shape[1] != w.shape[0] or shape[1] != w.shape[1] * groups or w.shape[0] % groups or y.shape[0] != shape[0]:
        raise RuntimeError(f"shapes {y.shape}, {w.shape} and {shape} do not fit")
    return bilinear(_conv_input, y, w, tuple(shape), geometry)


def conv_weight(
    x: StridedArray, y: StridedArray, shape: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> StridedArray:
    """The kernel of ``conv_weight``."""
    geometry = Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)
    if x.shape[1] != shape[1] * groups or y.shape[:2] != (x.shape[0], shape[0]) or shape[0] % groups:
        raise RuntimeError(f"shapes {x.shape}, {y.shape} and {shape} do not fit")
    return bilinear(_conv_weight, x, y, tuple(shape), geometry)


KERNELS: dict[str, Any] = {"conv": conv, "conv_input": conv_input, "conv_weight": conv_weight}

"""Convolutions and their gradients in all numeric dtypes. Half types use float32; complex dtypes use four real
convolutions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import gcd, prod
from typing import Any, Final, NamedTuple

from candelabra.dtypes import COMPLEX, FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.matmul import from_float32, real_and_imaginary, to_float32
from candelabra_clike.language import pair
from candelabra_clike.layouts import collapsed
from candelabra_clike.templates.convolutions.convolution import (
    OutputLayout,
    Patches,
    Weight,
    convolve,
    weight_gradient_kernel,
)
from candelabra_clike.templates.convolutions.packed import PackedFilters
from candelabra_clike.templates.copies.packing import as_bits, padded
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.matmul.packing import StridedRows


class ConvGeometry(NamedTuple):
    """Stride, padding and dilation of each dim, and the number of groups."""

    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int

    def positions(self, sizes: Shape, kernel: Shape) -> Shape:
        """Return the spatial sizes of the result."""
        return _positions(self, sizes, kernel)


@lru_cache(4096)
def _positions(geometry: ConvGeometry, sizes: Shape, kernel: Shape) -> Shape:
    each = zip(sizes, kernel, *geometry[:3], strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each)


Padding = Callable[[StridedArray, Shape, Shape], StridedArray]
"""Adds zeros before and after the last dims, see :func:`~candelabra_clike.templates.copies.packing.padded`."""


def patches(
    x: StridedArray, kernel: Shape, geometry: ConvGeometry, positions: Shape, pad: Padding = padded
) -> tuple[StridedArray, Patches, bool]:
    """Return the padded images, their patches, and whether there is slack behind them."""
    slack = any(geometry.padding)
    if slack:
        x = pad(x, geometry.padding, _padding_after(x.shape[2:], kernel, geometry, positions))
    return x, _patches(x.offset, x.shape, x.strides, kernel, geometry, positions), slack


@lru_cache(4096)
def _padding_after(sizes: Shape, kernel: Shape, geometry: ConvGeometry, positions: Shape) -> Shape:
    """Return how many zeros each dim needs behind its elements."""
    stride, padding, dilation, _ = geometry
    extents = [(m - 1) * s + d * (k - 1) + 1 for m, k, s, d in zip(positions, kernel, stride, dilation, strict=True)]
    return tuple([max(r - n - p, 0) for r, n, p in zip(extents, sizes, padding, strict=True)])


@lru_cache(4096)
def _patches(
    offset: int, shape: Shape, strides: Shape, kernel: Shape, geometry: ConvGeometry, positions: Shape
) -> Patches:
    stride, _, dilation, groups = geometry
    steps = strides[2:]
    return Patches(
        offset, shape[0], groups, shape[1] // groups, kernel, positions, strides[0], strides[1],
        tuple([s * d for s, d in zip(steps, dilation)]), tuple([s * t for s, t in zip(steps, stride)]),
    )  # fmt: skip


def forward_filters(w: Weight, groups: int) -> StridedRows:
    """Return the filters of a convolution as rows."""
    count, row_step = w.shape[0] // groups, w.strides[0]
    sizes, (steps,) = collapsed(w.shape[1:], (w.strides[1:],))
    return StridedRows(w.offset, groups, count * row_step, count, row_step, sizes, steps)


def convolution_inputs(
    x: StridedArray, w: Weight, positions: Shape, strides: Shape, geometry: ConvGeometry, pad: Padding = padded
) -> tuple[StridedArray, StridedRows, Patches, OutputLayout, bool]:
    """Return the padded images, the filters, the patches, the results of these strides, and whether there is slack."""
    source, source_patches, slack = patches(x, w.shape[2:], geometry, positions, pad)
    results = OutputLayout(0, strides[0], strides[1], strides[2:])
    return source, forward_filters(w, geometry.groups), source_patches, results, slack


class ConvolutionForm(NamedTuple):
    """How arrays of known layouts are convolved, with the arguments of
    :func:`~candelabra_clike.templates.convolutions.convolution.convolve`, and how images are surrounded by zeros.
    """

    convolve: Callable[..., None]
    pad: Padding


KERNELS_IN_C: Final = ConvolutionForm(convolve, padded)


def forward(
    x: StridedArray,
    w: Weight,
    bias: StridedArray | None,
    geometry: ConvGeometry,
    form: ConvolutionForm = KERNELS_IN_C,
) -> StridedArray:
    """Convolve images with filters."""
    positions = geometry.positions(x.shape[2:], w.shape[2:])
    out = x.engine.empty((x.shape[0], w.shape[0], *positions), x.dtype)
    if out.size:
        source, filters, source_patches, results, slack = convolution_inputs(
            x, w, positions, out.strides, geometry, form.pad
        )
        form.convolve(out, w, filters, source, bias, source_patches, results, slack)
    return out


class Phase(NamedTuple):
    """The elements of one dim of the input, ``stride`` apart, to which the same taps contribute.

    There are ``positions`` such elements from ``first`` on, and ``taps`` taps: the first is ``tap``, the others follow
    backwards with ``tap_step``. ``seen`` is the position in the output gradient from which the first tap contributes to
    the first element; it advances by ``input_step``.
    """

    first: int
    positions: int
    taps: int
    tap: int
    tap_step: int
    seen: int
    input_step: int


def phases(size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Phase]:
    """Return the phases of a dim. Element i gets (i + padding - tap * dilation) / stride where that is an integer."""
    result = []
    step, input_step = stride // gcd(stride, dilation), dilation // gcd(stride, dilation)
    for first in range(min(stride, size)):
        count = -(-(size - first) // stride)
        taps = [k for k in range(kernel) if (first + padding - k * dilation) % stride == 0]
        last = taps[-1] if taps else 0
        seen = (first + padding - last * dilation) // stride if taps else 0
        result.append(Phase(first, count, len(taps), last, step, seen, input_step))
    return result


def input_gradient(
    y: StridedArray, w: Weight, shape: Shape, geometry: ConvGeometry, form: ConvolutionForm = KERNELS_IN_C
) -> StridedArray:
    """Compute the input gradient: each phase is a convolution of ``y`` at stride 1 with its taps in reverse order."""
    out = y.engine.empty(shape, y.dtype)
    if not out.size:
        return out
    if has_single_position(shape, w.shape, y.shape, geometry):
        return _single_position(out, y, w, geometry.groups, form)
    combinations, before, after = _all_phases(shape[2:], w.shape[2:], y.shape[2:], geometry)
    slack = any(before) or any(after)
    if slack:
        y = form.pad(y, before, after)
    for chosen in combinations:
        flipped = _phase_filters((w.offset, w.shape, w.strides), chosen, geometry.groups)
        source_patches, results = _phase_layout(
            (y.offset, y.shape, y.strides), flipped, out.strides, chosen, before, geometry
        )
        form.convolve(out, w, flipped, y, None, source_patches, results, slack)
    return out


@lru_cache(4096)
def _all_phases(
    shape: Shape, kernel: Shape, positions: Shape, geometry: ConvGeometry
) -> tuple[list[tuple[Phase, ...]], Shape, Shape]:
    """Return the combinations of phases, and the padding of the output gradient before and after each dim."""
    each = [phases(*sizes) for sizes in zip(shape, kernel, *geometry[:3], strict=True)]
    before = tuple([max(0, *[-p.seen for p in dim]) for dim in each])
    last = [max(p.seen + p.positions - 1 + (p.taps - 1) * p.input_step for p in dim) for dim in each]
    after = tuple([max(0, n - m + 1) for n, m in zip(last, positions, strict=True)])
    return _phase_combinations(each), before, after


def _phase_combinations(each: list[list[Phase]]) -> list[tuple[Phase, ...]]:
    combined: list[tuple[Phase, ...]] = [()]
    for dim in each:
        combined = [(*left, phase) for left in combined for phase in dim]
    return combined


Layout = tuple[int, Shape, Shape]
"""Offset, shape and strides of an array."""


@lru_cache(4096)
def _phase_filters(w: Layout, chosen: tuple[Phase, ...], groups: int) -> StridedRows:
    """Return the filters of the convolution of one phase, with its taps in reverse order."""
    offset, shape, strides = w
    inner, outer, steps = shape[0] // groups, shape[1], strides[2:]
    return StridedRows(
        offset + sum(p.tap * s for p, s in zip(chosen, steps)), groups, inner * strides[0], outer, strides[1],
        (inner, *[p.taps for p in chosen]), (strides[0], *[-p.tap_step * s for p, s in zip(chosen, steps)]),
    )  # fmt: skip


def input_gradient_filters(w: Weight, shape: Shape, positions: Shape, geometry: ConvGeometry) -> list[StridedRows]:
    """Return the filters of the convolutions that compute an input gradient of ``shape``. The weight is contiguous."""
    if has_single_position(shape, w.shape, (0, 0, *positions), geometry):
        return [_all_taps(w, geometry.groups)]
    combinations, _, _ = _all_phases(shape[2:], w.shape[2:], positions, geometry)
    return [_phase_filters((w.offset, w.shape, w.strides), chosen, geometry.groups) for chosen in combinations]


@lru_cache(4096)
def _phase_layout(
    y: Layout, filters: StridedRows, out_strides: Shape, chosen: tuple[Phase, ...], before: Shape,
    geometry: ConvGeometry,
) -> tuple[Patches, OutputLayout]:  # fmt: skip
    """Return the patches and the results of the convolution of one phase."""
    (y_offset, y_shape, y_strides), (inner, *taps) = y, filters.sizes
    steps, o_steps = y_strides[2:], out_strides[2:]
    patches_ = Patches(
        y_offset + sum((p.seen + b) * s for p, b, s in zip(chosen, before, steps)), y_shape[0], geometry.groups,
        inner, tuple(taps),
        tuple([p.positions for p in chosen]), y_strides[0], y_strides[1],
        tuple([p.input_step * s for p, s in zip(chosen, steps)]), steps,
        tuple([p.seen + b for p, b in zip(chosen, before)]),
    )  # fmt: skip
    first = sum(p.first * s for p, s in zip(chosen, o_steps))
    each = tuple([t * s for t, s in zip(geometry.stride, o_steps)])
    return patches_, OutputLayout(first, out_strides[0], out_strides[1], each)


def has_single_position(shape: Shape, kernel: Shape, y: Shape, geometry: ConvGeometry) -> bool:
    """Return whether a convolution has one output position, at which the filters cover the whole input."""
    _, padding, dilation, _ = geometry
    return shape[2:] == kernel[2:] and set(y[2:]) == {1} == set(dilation) and not any(padding)


def _all_taps(w: Weight, groups: int) -> StridedRows:
    """Return taps and channels of a contiguous weight as the rows of filters with one tap."""
    inner, rows = w.shape[0] // groups, prod(w.shape[1:])
    return StridedRows(w.offset, groups, inner * rows, rows, 1, (inner,), (rows,))


def _single_position(out: StridedArray, y: StridedArray, w: Weight, groups: int, form: ConvolutionForm) -> StridedArray:
    """Compute the input gradient for one output position: taps and channels are the rows of a convolution with one
    tap.
    """
    inner, once, nowhere = w.shape[0] // groups, (1,) * len(w.shape[2:]), (0,) * len(w.shape[2:])
    w = w if isinstance(w, PackedFilters) else contiguous(w)
    filters = _all_taps(w, groups)
    source_patches = Patches(
        y.offset, y.shape[0], groups, inner, once, once, y.strides[0], y.strides[1], nowhere, nowhere
    )
    form.convolve(out, w, filters, y, None, source_patches, OutputLayout(0, out.strides[0], 1, nowhere), False)
    return out


def _conv_weight(x: StridedArray, y: StridedArray, shape: Shape, geometry: ConvGeometry) -> StridedArray:
    kernel = shape[2:]
    out = x.engine.empty(shape, x.dtype)
    if not out.size:
        return out
    source, source_patches, _ = patches(x, kernel, geometry, y.shape[2:])
    if source_patches.few_positions and not x.engine.traits.serial:
        source_patches = source_patches.merge_images()
        (images, channels, *positions), (step, channel_step, *steps) = y.shape, y.strides
        y = y.restrided((1, channels, images, *positions), (0, channel_step, step, *steps), y.offset)
    weight_gradient_kernel(x.dtype, len(source_patches.taps))(out, source, contiguous(y), source_patches)
    return out


Factor = Any
"""An array, or packed filters, which are in the dtype of computation already."""
Multilinear = Callable[..., StridedArray]


def _complex_bilinear(function: Multilinear, a: StridedArray, b: StridedArray, *rest: Any) -> StridedArray:
    """Apply a bilinear function to complex arrays by applying it to their real and imaginary parts."""
    (a_real, a_imag), (b_real, b_imag) = real_and_imaginary(a), real_and_imaginary(b)
    result: StridedArray = complex_from_parts(a.dtype)(
        function(a_real, b_real, *rest),
        function(a_imag, b_imag, *rest),
        function(a_real, b_imag, *rest),
        function(a_imag, b_real, *rest),
    )
    return result


@lru_cache(2)
def complex_from_parts(d: dtype) -> Elementwise:
    """Return the kernel that combines the four real products of a complex product."""
    parts = (d.to_real(),) * 4
    return Elementwise.of(f"complex_from_parts_{d.name}", lambda a, b, c, d: pair(a - b, c + d), parts, d)


def bilinear(function: Multilinear, a: StridedArray, b: Factor, *rest: Any) -> StridedArray:
    """Apply a bilinear function in the dtype of computation."""
    d, packed = a.dtype, isinstance(b, PackedFilters)
    if d.category == COMPLEX:
        return _complex_bilinear(function, a, b, *rest)
    if d.is_half:
        wide = b if packed else to_float32(d)(b)
        result: StridedArray = from_float32(d)(function(to_float32(d)(a), wide, *rest))
        return result
    if d.category < FLOATING:
        bits = function(as_bits(a), as_bits(b), *rest)
        return bits.restrided(bits.shape, bits.strides, bits.offset, d)
    return function(a, b, *rest)


@lru_cache(2)
def complex_sum(d: dtype) -> Elementwise:
    """Return the kernel for sums of complex numbers."""
    return Elementwise.of(f"complex_sum_{d.name}", lambda a, b: a + b, (d, d), d)


# -- kernels ----------------------------------------------------------------------------------------------------------
def check_conv(x: StridedArray, w: Weight, geometry: ConvGeometry) -> None:
    """Raise ``RuntimeError`` if the shapes of a convolution do not match."""
    groups = geometry.groups
    if len(x.shape) != len(geometry.stride) + 2 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise RuntimeError(f"conv: shapes {x.shape} and {w.shape} do not match")
    if 0 in w.shape[2:] or min(geometry.positions(x.shape[2:], w.shape[2:])) < 1:
        raise RuntimeError(f"conv: the kernel {w.shape} is larger than the padded input {x.shape}")


def check_conv_input(y: StridedArray, w: Weight, shape: Shape, groups: int) -> None:
    """Raise ``RuntimeError`` if the shapes of an input gradient do not match."""
    if y.shape[1] != w.shape[0] or shape[1] != w.shape[1] * groups or w.shape[0] % groups or y.shape[0] != shape[0]:
        raise RuntimeError(f"conv_input: shapes {y.shape}, {w.shape} and {shape} do not match")


def check_conv_weight(x: StridedArray, y: StridedArray, shape: Shape, groups: int) -> None:
    """Raise ``RuntimeError`` if the shapes of a weight gradient do not match."""
    if x.shape[1] != shape[1] * groups or y.shape[:2] != (x.shape[0], shape[0]) or shape[0] % groups:
        raise RuntimeError(f"conv_weight: shapes {x.shape}, {y.shape} and {shape} do not match")


def conv(x: StridedArray, w: Weight, bias: StridedArray | None, geometry: ConvGeometry) -> StridedArray:
    """Convolve images with filters, and add a bias."""
    check_conv(x, w, geometry)
    rank, d = len(geometry.stride), x.dtype
    if bias is not None and d.category == COMPLEX:
        wide = bias.restrided((*bias.shape, *[1] * rank), (*bias.strides, *[0] * rank), bias.offset)
        result: StridedArray = complex_sum(d)(bilinear(forward, x, w, None, geometry), wide)
        return result
    if bias is not None:
        bias = to_float32(d)(bias) if d.is_half else bias
        bias = contiguous(as_bits(bias) if d.category < FLOATING else bias)
    return bilinear(forward, x, w, bias, geometry)


def conv_input(y: StridedArray, w: Weight, shape: Shape, geometry: ConvGeometry) -> StridedArray:
    """Compute the gradient of the images."""
    check_conv_input(y, w, shape, geometry.groups)
    return bilinear(input_gradient, y, w, tuple(shape), geometry)


def conv_weight(x: StridedArray, y: StridedArray, shape: Shape, geometry: ConvGeometry) -> StridedArray:
    """Compute the gradient of the filters."""
    check_conv_weight(x, y, shape, geometry.groups)
    return bilinear(_conv_weight, x, y, tuple(shape), geometry)


def with_geometry(function: Callable[..., StridedArray]) -> Callable[..., StridedArray]:
    """Return the kernel of an operator, whose geometry is four arguments."""

    def kernel(
        first: StridedArray,
        second: StridedArray,
        third: Any,
        stride: Shape,
        padding: Shape,
        dilation: Shape,
        groups: int,
    ) -> StridedArray:
        return function(first, second, third, ConvGeometry(tuple(stride), tuple(padding), tuple(dilation), groups))

    return kernel


PLAIN: Final[dict[str, Callable[..., StridedArray]]] = {
    "conv": with_geometry(conv), "conv_input": with_geometry(conv_input), "conv_weight": with_geometry(conv_weight),
}  # fmt: skip
"""The kernels without what they say to the passes over graphs."""


def _packing(name: str) -> Callable[[Callable[[int], Engine]], Callable[..., StridedArray]]:
    """Return a factory of the kernel that also packs its filters apart, see :mod:`candelabra_clike.packing`."""

    def of(engines: Callable[[int], Engine]) -> Callable[..., StridedArray]:
        kernel: Any = partial(PLAIN[name])
        kernel.packing = partial(_asked, name, engines)
        return kernel  # type: ignore[no-any-return]

    return of


def _asked(name: str, engines: Callable[[int], Engine], *arguments: Any) -> Any:
    from candelabra_clike.packing import packing_of  # graphs alone need it

    return packing_of(name, engines, arguments)


KERNELS: dict[str, Any] = {"conv_weight": PLAIN["conv_weight"]}
FACTORIES: dict[str, Any] = {"conv": _packing("conv"), "conv_input": _packing("conv_input")}

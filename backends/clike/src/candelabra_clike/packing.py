"""The packing of convolutions' filters as a node of a graph, see :class:`candelabra.graph.Packing`.

A kernel of :mod:`candelabra_clike.kernels.convolution` packs its filters at each call. In a graph, the core asks for
the layouts that it reads, and has the packed filters computed once for several calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.dtypes import float32
from candelabra.graph import Packing, Spec

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.convolution import PLAIN, ConvGeometry, forward_filters, input_gradient_filters
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.matmul import to_float32
from candelabra_clike.templates.convolutions.packed import FilterLayout, PackedFilters, filter_layout, pack_filters
from candelabra_clike.templates.matmul.packing import StridedRows

WEIGHT = 1
"""The position of the weight among the arguments of ``conv`` and ``conv_input``."""


def packing_of(name: str, engines: Callable[[int], Engine], arguments: tuple[Any, ...]) -> Packing | None:
    """Return how the filters of ``conv`` or ``conv_input`` are packed, or None: complex and integer ones, and those of
    empty convolutions, are not. ``arguments`` have specs in place of arrays.
    """
    first, w, third, *geometry = arguments
    if not first.dtype.is_floating_point or not w.numel or not first.numel:
        return None
    stride, padding, dilation, groups = geometry
    filters = _filters(name, first, w, third, ConvGeometry(tuple(stride), tuple(padding), tuple(dilation), groups))
    engine, d = engines(first.instance.index), float32 if first.dtype.is_half else first.dtype
    layouts = tuple(filter_layout(engine, d, each) for each in filters)
    return Packing(WEIGHT, layouts, packed, with_packed_filters(name, filters))


def _filters(name: str, first: Spec, w: Spec, third: Any, geometry: ConvGeometry) -> list[StridedRows]:
    """Return the filters that a kernel reads from a contiguous weight."""
    weight = PackedFilters(w.shape, {})
    if name == "conv":
        return [forward_filters(weight, geometry.groups)]
    return input_gradient_filters(weight, tuple(third), first.shape[2:], geometry)


def packed(w: StridedArray, layout: FilterLayout) -> StridedArray:
    """Return the filters of a weight in a layout."""
    return pack_filters(to_float32(w.dtype)(w) if w.dtype.is_half else contiguous(w), layout)


def with_packed_filters(name: str, filters: list[StridedRows]) -> Callable[..., StridedArray]:
    """Return the kernel that reads packed filters, the last argument, in place of the weight."""
    plain = PLAIN[name]

    def kernel(first: StridedArray, w: StridedArray, *others: Any) -> StridedArray:
        *rest, arrays = others
        return plain(first, PackedFilters(w.shape, dict(zip(filters, arrays, strict=True))), *rest)

    return kernel

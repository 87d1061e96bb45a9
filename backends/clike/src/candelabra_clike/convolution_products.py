"""Convolutions as products of the filters and a matrix of patches, for devices on which a library multiplies matrices.

Half types and complex dtypes are multiplied by the library, too. Patches in memory are bounded: if there are more than
:data:`MAX_PATCHES` elements, some images are processed after the others. Convolutions with groups, whose products would
be small, and those of complex128 and of other dtypes are the kernels of :mod:`candelabra_clike.kernels.convolution`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Final, NamedTuple

from candelabra.backend import is_contiguous_layout
from candelabra.dtypes import dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels import convolution
from candelabra_clike.kernels.attention import Multiply, rounded, transpose
from candelabra_clike.kernels.convolution import ConvGeometry, ConvolutionForm, with_geometry
from candelabra_clike.kernels.copies import contiguous, copy_into, filled_
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import collapsed
from candelabra_clike.templates.convolutions.convolution import OutputLayout, Patches
from candelabra_clike.templates.convolutions.gathering import PaddedView, gather_patches, padded_view
from candelabra_clike.templates.copies.packing import UNSIGNED, strided_copy
from candelabra_clike.templates.matmul.packing import StridedRows

MAX_PATCHES: Final = 1 << 26
"""The maximum number of elements of patches in memory: 256 MiB of float32."""


class Products(NamedTuple):
    """Convolutions of one group, with the matrix product of a dtype."""

    multiply: Multiply

    @property
    def form(self) -> ConvolutionForm:
        """How images are convolved: no zeros are written around them."""
        return ConvolutionForm(self.convolve, padded_view)

    def conv(self, x: StridedArray, w: StridedArray, bias: StridedArray | None, geometry: ConvGeometry) -> StridedArray:
        """Convolve images with filters, and add a bias."""
        convolution.check_conv(x, w, geometry)
        return convolution.forward(x, w, bias, geometry, self.form)

    def conv_input(self, y: StridedArray, w: StridedArray, shape: Shape, geometry: ConvGeometry) -> StridedArray:
        """Compute the gradient of the images."""
        convolution.check_conv_input(y, w, shape, 1)
        return convolution.input_gradient(y, w, tuple(shape), geometry, self.form)

    def conv_weight(self, x: StridedArray, y: StridedArray, shape: Shape, geometry: ConvGeometry) -> StridedArray:
        """Compute the gradient of the filters."""
        convolution.check_conv_weight(x, y, shape, 1)
        out = x.engine.empty(tuple(shape), x.dtype)
        if out.size:
            source, patches, _ = convolution.patches(x, tuple(shape)[2:], geometry, y.shape[2:], padded_view)
            self.weight_gradient(out, source, y, patches)
        return out

    def convolve(
        self, out: StridedArray, w: StridedArray, filters: StridedRows, x: StridedArray, bias: StridedArray | None,
        patches: Patches, results: OutputLayout, slack: bool,
    ) -> None:  # fmt: skip
        """Convolve. The results start from the bias, so that half types are rounded once."""
        rows, count = filters.rows, prod(patches.positions)
        shape = (patches.images, rows, *patches.positions)
        steps = (results.image_step, results.row_step, *results.position_steps)
        view = out.restrided(shape, steps, out.offset + results.first)
        whole = view if view.contiguous else out.engine.empty(shape, out.dtype)
        left = filter_matrix(w, filters)
        for first, part in image_chunks(patches):
            size = (part.images, rows, count)
            target = whole.restrided(size, (rows * count, count, 1), whole.offset + first * rows * count)
            if bias is not None:
                copy_into(target, bias.restrided(size, (0, bias.strides[0], 0), bias.offset))
            repeated = left.restrided((part.images, *left.shape), (0, *left.strides), left.offset)
            self.multiply(target, repeated, patch_matrices(x, part), bias is not None)
        if whole is not view:
            copy_into(view, whole)

    def weight_gradient(self, out: StridedArray, x: StridedArray, y: StridedArray, patches: Patches) -> None:
        """Compute the gradient of the filters. ``out`` is contiguous. Sums of half types are float32."""
        rows, count = out.shape[0], prod(patches.positions)
        sums = out.engine.empty(out.shape, float32) if out.dtype.is_half else out
        if not patches.images:
            filled_(sums, 0)
        y = contiguous(y)
        for first, part in image_chunks(patches):
            order = y.restrided(
                (rows, part.images, count), (count, rows * count, 1), y.offset + first * rows * count
            )  # fmt: skip
            left = contiguous(order).reshaped((rows, part.images * count))
            self.multiply(sums.reshaped((rows, patches.depth)), left, transpose(gather_patches(x, part)), first > 0)
        if sums is not out:
            copy_into(out, rounded(sums, out.dtype))


def filter_matrix(w: StridedArray, filters: StridedRows) -> StridedArray:
    """Return the filters as the rows of a matrix."""
    shape, steps = (filters.rows, *filters.sizes), (filters.row_step, *filters.steps)
    depth = prod(filters.sizes)
    if is_contiguous_layout(shape, steps):
        return w.restrided((filters.rows, depth), (depth, 1), filters.first)
    return strided_copy(w, shape, steps, filters.first).reshaped((filters.rows, depth))


def image_chunks(patches: Patches) -> Iterator[tuple[int, Patches]]:
    """Yield the first image and the patches of chunks of images, each with few enough elements if possible."""
    per_chunk = max(1, MAX_PATCHES // max(1, patches.depth * prod(patches.positions)))
    for first in range(0, patches.images, per_chunk):
        images = min(per_chunk, patches.images - first)
        yield first, patches._replace(images=images, first=patches.first + first * patches.image_step)


def patch_matrices(x: StridedArray, patches: Patches) -> StridedArray:
    """Return the patches as a matrix per image: (elements of a patch, positions). If patches are the pixels of the
    images, this is a view.
    """
    images, count = patches.images, prod(patches.positions)
    sizes, (steps,) = collapsed(patches.positions, (patches.position_steps,))
    if prod(patches.taps) == 1 and steps == (1,) and len(sizes) == 1 and not isinstance(x, PaddedView):
        layout = (patches.image_step, patches.channel_step, 1)
        return x.restrided((images, patches.channels, count), layout, patches.first)
    matrix = gather_patches(x, patches)
    return matrix.restrided((images, patches.depth, count), (count, images * count, 1), matrix.offset)


# -- kernels ----------------------------------------------------------------------------------------------------------
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "conv": Products.conv, "conv_input": Products.conv_input, "conv_weight": Products.conv_weight,
}  # fmt: skip


def kernels(multiplying: Callable[[dtype], Multiply | None]) -> dict[str, Any]:
    """Return the kernels of convolutions; ``multiplying(dtype)`` returns the matrix product of a dtype, or None where
    the library has none.
    """
    return {name: _specialized(name, multiplying) for name in FUNCTIONS}


def _specialized(name: str, multiplying: Callable[[dtype], Multiply | None]) -> DtypeSpecialized:
    def choose(d: dtype) -> Callable[..., Any]:
        multiply = multiplying(d) if d.itemsize in UNSIGNED else None
        grouped: Callable[..., Any] = convolution.PLAIN[name]
        if multiply is None:
            return grouped
        products = Products(multiply)

        def kernel(first: StridedArray, second: StridedArray, third: Any, geometry: ConvGeometry) -> StridedArray:
            if geometry.groups != 1:
                return grouped(first, second, third, *geometry)  # type: ignore[no-any-return]
            return FUNCTIONS[name](products, first, second, third, geometry)  # type: ignore[no-any-return]

        return with_geometry(kernel)

    return DtypeSpecialized(choose)

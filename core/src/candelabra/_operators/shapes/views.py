"""Views over the memory of a tensor: ``detach``, ``view`` in another shape or dtype, real and imaginary parts.

The record of a view has its geometry (shape, strides and offset in strided memory), its derivative, and its scatter,
which returns the base with the elements of the view replaced. With the scatter, a write to a view changes a base that
cannot be written in place, and autograd records a write.
"""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING
from candelabra._geometry import Geometry, Ints
from candelabra._layout import infer_shape, view_strides
from candelabra._operators.indexing.basic import basic_index
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part, to_complex, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, from_geometry, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.dtypes import dtype as dtype_type
    from candelabra.typing import DType, InferredShape, Tensor


def _same_geometry(shape: Ints, strides: Ints, offset: int) -> Geometry:
    return shape, strides, offset


@operator(like_input, view=_same_geometry, method=False, elementwise=True)
def detach(input: Tensor) -> Tensor:
    """Return a tensor with the same memory and version counter that does not require a gradient."""
    ...


detach.no_gradient("that is its purpose").scattered(lambda base, source: source)


@operator(like_input, view=_same_geometry, method=False, public=False, elementwise=True)
def alias(input: Tensor) -> Tensor:
    """Return a new tensor over the same memory, with its own node in the graph."""
    ...


alias.vjp(input=lambda g: g).scattered(lambda base, source: source)


# -- in another shape -------------------------------------------------------------------------------------------------
def _view_geometry(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry:
    result = view_strides(shape, strides, size)
    if result is None:
        infer_shape(size, prod(shape))  # raises the error if the number of elements is wrong
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return size, result, offset


def _check_view(input: Tensor, size: Ints) -> None:
    strides, offset = input._layout()
    _view_geometry(shape_of(input), strides, offset, size)


@operator(from_geometry, name="view", check=_check_view, view=_view_geometry, public=False)
def view_shape(input: Tensor, *size: InferredShape) -> Tensor:
    """Return a view in another shape. One size may be -1.

    Raises ``RuntimeError`` if the number of elements differs and if only a copy can have that shape.
    """
    ...


view_shape.vjp(input=lambda g, input_spec: g.reshape(input_spec.shape))
view_shape.scattered(lambda base, source, size: source.reshape(base.shape)).gathered(lambda g, size: g.reshape(size))


# -- in another dtype -------------------------------------------------------------------------------------------------
@by
def _reinterpreted(input: Tensor, dtype: dtype_type) -> Ints:
    shape = shape_of(input)
    old, new = input.dtype.itemsize, dtype.itemsize
    if old == new:
        return shape
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {_from_to(input, dtype)}")
    if new > old and shape[-1] % (new // old):
        raise RuntimeError(
            f"self.size(-1) must be divisible by {new // old} {_from_to(input, dtype)}, but got {shape[-1]}"
        )
    return (*shape[:-1], shape[-1] * old // new)


def _check_reinterpreted(input: Tensor, dtype: dtype_type) -> None:
    strides, offset = input._layout()
    old, new = input.dtype.itemsize, dtype.itemsize
    if old == new:
        return
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {_from_to(input, dtype)}, but got {strides[-1]}")
    ratio = new // old
    if ratio and offset % ratio:
        raise RuntimeError(
            f"self.storage_offset() must be divisible by {ratio} {_from_to(input, dtype)}, but got {offset}"
        )
    for d, step in enumerate(strides[:-1] if ratio else ()):
        if step % ratio:
            raise RuntimeError(
                f"self.stride({d}) must be divisible by {ratio} {_from_to(input, dtype)}, but got {step}"
            )


def _from_to(input: Tensor, dtype: dtype_type) -> str:
    return f"to view {input.dtype.title} as {dtype.title} (different element sizes)"


@operator(_reinterpreted, check=_check_reinterpreted, promote=unpromoted, view=True, method=False, public=False)
def view_dtype(input: Tensor, dtype: DType) -> Tensor:
    """Return a view of the bytes of ``input`` as another dtype. If the widths differ, the last dim shrinks or grows.

    Raises ``RuntimeError`` if its size or the strides of the other dims are not divisible.
    """
    ...


view_dtype.no_gradient("the same bytes represent other numbers").scattered(
    lambda base, source, dtype: view_dtype(source.contiguous(), base.dtype)
)


def view_as_dtype(input: Tensor, dtype: DType) -> Tensor:
    """Return a view of the bytes of ``input`` as another dtype; the last dim changes with the dtype's width.

    The view has no gradient, unless the dtype is that of ``input``.
    """
    return alias(input) if dtype is input.dtype else view_dtype(input, dtype)


view = overloads("view", view_shape, view_as_dtype, is_function=False)


@public(is_function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.view(other.shape)``."""
    return view_shape(input, other.shape)


# -- complex numbers and their parts ----------------------------------------------------------------------------------
@operator(by(lambda input: (*shape_of(input), 2)), view=True, result=real_part, accepts="complex")
def view_as_real(input: Tensor) -> Tensor:
    """Return a view of complex numbers as pairs (real, imaginary) in a last dim of size 2."""
    ...


@by
def _pairs(input: Tensor) -> Ints:
    shape = shape_of(input)
    if input.dtype.is_half:
        raise RuntimeError(f"view_as_complex is only supported for float and double tensors, but got {input.dtype}")
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    return shape[:-1]


def _check_pairs(input: Tensor) -> None:
    if input._layout()[0][-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")


@operator(
    _pairs, check=_check_pairs, view=True, result=to_complex, accepts="real floating", autocast=Autocast(host="float32")
)
def view_as_complex(input: Tensor) -> Tensor:
    """Return a view of the pairs in a last dim of size 2 as complex numbers."""
    ...


view_as_real.vjp(input=lambda g: view_as_complex(g.contiguous())).scattered(
    lambda base, source: view_as_complex(source.contiguous())
)
view_as_complex.vjp(input=lambda g: view_as_real(g)).scattered(lambda base, source: view_as_real(source)).gathered(
    lambda g: view_as_complex(g.contiguous())
)


@operator(like_input, view=True, result=real_part, is_property=True, elementwise=True)
def real(input: Tensor) -> Tensor:
    """A view of the real part; for a real tensor, the tensor itself."""
    return _part(input, 0) if input.is_complex() else input


@operator(like_input, view=True, result=real_part, accepts="complex", is_property=True, elementwise=True)
def imag(input: Tensor) -> Tensor:
    """A view of the imaginary part of a complex tensor."""
    return _part(input, 1)


def _part(input: Tensor, part: int) -> Tensor:
    slices = [slice(0, size, 1) for size in input._payload.shape]
    return basic_index(view_as_real(input), (*slices, part))

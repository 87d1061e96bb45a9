"""Questions about whole tensors: equal, close, of which kind; and complex numbers from their parts."""

from __future__ import annotations

from builtins import complex as complex_number  # a front of this module takes the name

from candelabra import dtypes
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._dispatch.out import store
from candelabra._keys import NO_GRAD, mode
from candelabra._records.callables import public
from candelabra.dtypes import (
    FLOATING,
    PYTHON_NAMES,
    Operand,
    category_of_scalar,
    default_for_category,
    get_default_dtype,
)

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _check(name: str, **tensors: Any) -> None:
    for position, (argument, value) in enumerate(tensors.items()):
        if not hasattr(value, "_payload"):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position + 1}) must be Tensor, not {kind_of(value)}"
            )


@public
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements; NaN equals nothing."""
    _check("equal", input=input, other=other)
    if input.shape != other.shape:
        return False
    return bool((input == other).all().item())


@public
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``, elementwise; equal infinities are close.

    Integers are compared in the default floating dtype. ``RuntimeError`` where the dtypes differ or a tolerance is
    negative.
    """
    _check("isclose", input=input, other=other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{PYTHON_NAMES[input.dtype.name]} did not match {PYTHON_NAMES[other.dtype.name]}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    with mode(include=NO_GRAD):
        close = input == other
        if equal_nan and input.dtype.category >= FLOATING:
            close = close | ((input != input) & (other != other))
        if rtol == 0 and atol == 0:
            return close
        if input.dtype.category < FLOATING:
            input, other = input.to(get_default_dtype()), other.to(get_default_dtype())
        error = (input - other).abs()
        return close | (error.isfinite() & (error <= atol + rtol * other.abs()))


@public
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether :func:`isclose` holds for every element."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


@public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    _check("is_same_size", input=input, other=other)
    return bool(input.shape == other.shape)


@public(method=False)
def is_tensor(obj: Any) -> bool:
    """Whether an object is a Tensor."""
    from candelabra._tensor import Tensor

    return isinstance(obj, Tensor)


@public(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one; complex ones are not."""
    _check("is_floating_point", input=input)
    return input.is_floating_point()


@public(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    _check("is_complex", input=input)
    return input.is_complex()


@public(method=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    _check("numel", input=input)
    return input.numel()


@public
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0; ``RuntimeError`` unless there is exactly one."""
    _check("is_nonzero", input=input)
    return bool(input)


@public(method=False)
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of ``tensor1 + tensor2``, each of them a tensor or a number."""
    return dtypes.result_dtype([_operand(tensor1), _operand(tensor2)])


def _operand(value: Any) -> Operand:
    if hasattr(value, "_payload"):
        return Operand(value.dtype, 2 if value._payload.shape else 1)
    if not isinstance(value, (bool, int, float, complex_number)):
        raise TypeError(f"result_type() takes tensors and numbers, not {kind_of(value)}")
    return Operand(default_for_category(category_of_scalar(value)), 0)


# -- complex numbers from their parts ---------------------------------------------------------------------------------
def _check_parts(first: Tensor, second: Tensor) -> None:
    if first.dtype.name not in ("float16", "float32", "float64"):
        one, two = PYTHON_NAMES[first.dtype.name], PYTHON_NAMES[second.dtype.name]
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {one} and {two}")
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {PYTHON_NAMES[first.dtype.name]} but got scalar type "
            f"{PYTHON_NAMES[second.dtype.name]} for second argument"
        )


@public(method=False)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``real + i * imag``, broadcast: complex64 of float32 (and float16), complex128 of float64."""
    from candelabra._operators.shapes.joining import stack
    from candelabra._operators.shapes.views import view_as_complex

    _check("complex", real=real, imag=imag)
    _check_parts(real, imag)
    if real.dtype.itemsize == 2:
        real, imag = real.float(), imag.float()
    if real.shape != imag.shape:
        shape = (real + imag).shape
        real, imag = real.expand(shape), imag.expand(shape)
    made: Tensor = view_as_complex(stack([real, imag], -1))
    if out is not None and out.dtype is not made.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {PYTHON_NAMES[made.dtype.name]} but got scalar type "
            f"{PYTHON_NAMES[out.dtype.name]} for argument 'out'"
        )
    stored: Tensor = store("complex", made, out)
    return stored


@public(method=False, out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """``abs * (cos(angle) + i * sin(angle))``, broadcast."""
    _check("polar", abs=abs, angle=angle)
    _check_parts(abs, angle)
    made: Tensor = complex(abs * angle.cos(), abs * angle.sin())
    return made

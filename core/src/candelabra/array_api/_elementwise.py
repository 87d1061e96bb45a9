"""Elementwise functions of the standard, and the table of their names in ``candelabra``.

One of two operands may be a Python number. Arrays are promoted to one dtype by the standard's table, independently of
their ranks. Special cases are those of the standard.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, arrays_of, floor_divided, named, promoted
from candelabra.dtypes import COMPLEX, INTEGER

Unary = Callable[[Tensor], Array]
Binary = Callable[[Any, Any], Array]


def titled(function: Any, name: str, doc: str) -> Any:
    """Return ``function`` with its public name, module and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = "candelabra.array_api"
    function.__doc__ = doc
    return function


def unary(name: str, doc: str, of: str = "") -> Unary:
    """Return the standard's ``name``: the function ``of`` (or the same name) of ``candelabra`` on one array."""
    source = of or name

    def function(x: Tensor, /) -> Array:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}() expects an array, not {type(x).__name__}")
        return arrayed(named(source)(x), x)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def binary(name: str, doc: str, of: str = "", numbers: bool = True) -> Binary:
    """Return the standard's ``name`` of two operands: the function ``of`` (or the same name) of ``candelabra``.

    ``numbers=False`` means that the function accepts only tensors, so that a number is converted to one.
    """
    source = of or name

    def function(x1: Any, x2: Any, /) -> Array:
        arrays_of(x1, x2, name=name)
        x1, x2 = promoted(x1, x2)
        if not numbers:
            x1, x2 = _as_array(x1, x2), _as_array(x2, x1)
        return arrayed(named(source)(x1, x2), x1, x2)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _as_array(value: Any, like: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    result: Tensor = named("full")((), value, dtype=like.dtype, device=like.device)
    return result


# -- one operand ------------------------------------------------------------------------------------------------------
abs = unary("abs", "Return the absolute value; for complex numbers the modulus, which is real.")
acos = unary("acos", "Return the inverse cosine.")
acosh = unary("acosh", "Return the inverse hyperbolic cosine.")
asin = unary("asin", "Return the inverse sine.")
asinh = unary("asinh", "Return the inverse hyperbolic sine.")
atan = unary("atan", "Return the inverse tangent.")
atanh = unary("atanh", "Return the inverse hyperbolic tangent.")
bitwise_invert = unary(
    "bitwise_invert", "Return the bitwise complement of integers, or the negation of bools.", "bitwise_not"
)
ceil = unary("ceil", "Return the smallest integer that is not less, in the same dtype.")
conj = unary("conj", "Return the complex conjugate.")
cos = unary("cos", "Return the cosine.")
cosh = unary("cosh", "Return the hyperbolic cosine.")
exp = unary("exp", "Return the exponential function.")
expm1 = unary("expm1", "``exp(x) - 1``, accurate near 0.")
floor = unary("floor", "Return the largest integer that is not greater, in the same dtype.")
isfinite = unary("isfinite", "Return whether an element is neither infinite nor NaN.")
isinf = unary("isinf", "Return whether an element (or a part of it) is infinite.")
isnan = unary("isnan", "Return whether an element (or a part of it) is NaN.")
log = unary("log", "Return the natural logarithm.")
log1p = unary("log1p", "``log(1 + x)``, accurate near 0.")
log2 = unary("log2", "Return the logarithm to base 2.")
log10 = unary("log10", "Return the logarithm to base 10.")
logical_not = unary("logical_not", "Return whether an element is 0 or False.")
negative = unary("negative", "``-x``.", "neg")
positive = unary("positive", "``+x``: a copy of the values.", "clone")
reciprocal = unary("reciprocal", "``1 / x``.")
signbit = unary("signbit", "Return whether the sign bit is set: also for -0 and for NaNs with a sign.")
sin = unary("sin", "Return the sine.")
sinh = unary("sinh", "Return the hyperbolic sine.")
sqrt = unary("sqrt", "Return the square root.")
square = unary("square", "``x * x``.")
tan = unary("tan", "Return the tangent.")
tanh = unary("tanh", "Return the hyperbolic tangent.")
trunc = unary("trunc", "Return the input rounded towards 0, in the same dtype.")


def real(x: Tensor, /) -> Array:
    """Return the real part of each element, a view of ``x``; for a real array, the array itself."""
    return arrayed(x.real, x)


def imag(x: Tensor, /) -> Array:
    """Return the imaginary part of each element: a view of a complex array, zeros for a real one."""
    return arrayed(x.imag if x.dtype.category == COMPLEX else named("zeros_like")(x))


def round(x: Tensor, /) -> Array:
    """Return the nearest integer, ties to even, in the same dtype; for complex numbers, of each part."""
    if x.dtype.category == COMPLEX:
        real_and_imaginary = named("round")(named("view_as_real")(x))
        return arrayed(named("view_as_complex")(real_and_imaginary))
    return arrayed(named("round")(x), x)


def sign(x: Tensor, /) -> Array:
    """Return -1, 0 or 1; for complex numbers ``x / abs(x)``; NaN is propagated."""
    result = named("sgn")(x)
    return arrayed(
        result + 0 if x.dtype.category == COMPLEX else result, x
    )  # adding 0 normalises a signed complex zero to 0 + 0j


# -- two operands -----------------------------------------------------------------------------------------------------
add = binary("add", "``x1 + x2``.")
atan2 = binary("atan2", "Return the angle of the point (``x2``, ``x1``) in [-π, π].", numbers=False)
bitwise_and = binary("bitwise_and", "``x1 & x2``.")
bitwise_left_shift = binary("bitwise_left_shift", "``x1 << x2``.")
bitwise_or = binary("bitwise_or", "``x1 | x2``.")
bitwise_right_shift = binary("bitwise_right_shift", "``x1 >> x2``, an arithmetic shift for signed integers.")
bitwise_xor = binary("bitwise_xor", "``x1 ^ x2``.")
copysign = binary("copysign", "Return the magnitude of ``x1`` with the sign of ``x2``.", numbers=False)
divide = binary("divide", "``x1 / x2``.", "div")
equal = binary("equal", "``x1 == x2``.", "eq", numbers=False)
greater = binary("greater", "``x1 > x2``.", "gt", numbers=False)
greater_equal = binary("greater_equal", "``x1 >= x2``.", "ge", numbers=False)
hypot = binary("hypot", "``sqrt(x1**2 + x2**2)`` without intermediate overflow.", numbers=False)
less = binary("less", "``x1 < x2``.", "lt", numbers=False)
less_equal = binary("less_equal", "``x1 <= x2``.", "le", numbers=False)
logaddexp = binary("logaddexp", "``log(exp(x1) + exp(x2))`` without intermediate overflow.", numbers=False)
logical_and = binary("logical_and", "Return whether both are nonzero.", numbers=False)
logical_or = binary("logical_or", "Return whether at least one is nonzero.", numbers=False)
logical_xor = binary("logical_xor", "Return whether exactly one is nonzero.", numbers=False)
maximum = binary("maximum", "Return the larger of two elements; NaN if either is NaN.", numbers=False)
minimum = binary("minimum", "Return the smaller of two elements; NaN if either is NaN.", numbers=False)
multiply = binary("multiply", "``x1 * x2``.", "mul")
nextafter = binary("nextafter", "Return the next number of the dtype from ``x1`` towards ``x2``.", numbers=False)
not_equal = binary("not_equal", "``x1 != x2``.", "ne", numbers=False)
pow = binary("pow", "``x1 ** x2``.")
remainder = binary("remainder", "``x1 - floor(x1 / x2) * x2``: it has the sign of ``x2``.")
subtract = binary("subtract", "``x1 - x2``.", "sub")


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """``x1 // x2``: the quotient rounded down; for infinite numbers ``floor(x1 / x2)``."""
    arrays_of(x1, x2, name="floor_divide")
    return arrayed(floor_divided(*promoted(x1, x2)))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Array:
    """Return ``x`` limited to [``min``, ``max``], numbers or arrays that broadcast, in the dtype of ``x``."""
    out = x
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            out = named(name)(out, _bound(bound, x))
    return arrayed(out.clone() if out is x else out)


def _bound(bound: Any, x: Tensor) -> Tensor:
    """Return a bound in the dtype of ``x``; for an integer dtype it is limited to the dtype's range."""
    if isinstance(bound, Tensor):
        return bound if bound.dtype is x.dtype else bound.to(x.dtype)
    if x.dtype.category == INTEGER:
        from candelabra.dtypes import iinfo

        limits = iinfo(x.dtype)
        bound = limits.min if bound < limits.min else limits.max if bound > limits.max else int(bound)
    result: Tensor = named("full")((), bound, dtype=x.dtype, device=x.device)
    return result

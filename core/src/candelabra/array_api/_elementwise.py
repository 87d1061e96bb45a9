"""Functions of the standard that act on each element, and the table of what they are called here.

An operand may be an array or, where there are two, one of them a Python number. Arrays are made alike by the standard's
table of promotion, whatever their ranks. Special cases are those of the standard.
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
    """``function`` under its public name."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = "candelabra.array_api"
    function.__doc__ = doc
    return function


def unary(name: str, doc: str, of: str = "") -> Unary:
    """The standard's ``name``: the function ``of`` (or the same name) of ``candelabra`` on one array."""
    source = of or name

    def function(x: Tensor, /) -> Array:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}() takes an array, not {type(x).__name__}")
        return arrayed(named(source)(x), x)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def binary(name: str, doc: str, of: str = "", numbers: bool = True) -> Binary:
    """The standard's ``name`` of two operands: the function ``of`` (or the same name) of ``candelabra``.

    ``numbers=False`` says that the function takes only tensors, so that a number is made one.
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
    made: Tensor = named("full")((), value, dtype=like.dtype, device=like.device)
    return made


# -- one operand ------------------------------------------------------------------------------------------------------
abs = unary("abs", "The absolute value; of complex numbers the modulus, which is real.")
acos = unary("acos", "The inverse cosine.")
acosh = unary("acosh", "The inverse hyperbolic cosine.")
asin = unary("asin", "The inverse sine.")
asinh = unary("asinh", "The inverse hyperbolic sine.")
atan = unary("atan", "The inverse tangent.")
atanh = unary("atanh", "The inverse hyperbolic tangent.")
bitwise_invert = unary("bitwise_invert", "Every bit of an integer inverted; of a bool its negation.", "bitwise_not")
ceil = unary("ceil", "The least integer that is no smaller, in the same dtype.")
conj = unary("conj", "The complex conjugate.")
cos = unary("cos", "The cosine.")
cosh = unary("cosh", "The hyperbolic cosine.")
exp = unary("exp", "The exponential function.")
expm1 = unary("expm1", "``exp(x) - 1``, accurate near 0.")
floor = unary("floor", "The greatest integer that is no greater, in the same dtype.")
isfinite = unary("isfinite", "Whether an element is neither infinite nor NaN.")
isinf = unary("isinf", "Whether an element (or a part of it) is infinite.")
isnan = unary("isnan", "Whether an element (or a part of it) is NaN.")
log = unary("log", "The natural logarithm.")
log1p = unary("log1p", "``log(1 + x)``, accurate near 0.")
log2 = unary("log2", "The logarithm to base 2.")
log10 = unary("log10", "The logarithm to base 10.")
logical_not = unary("logical_not", "Whether an element is 0 or False.")
negative = unary("negative", "``-x``.", "neg")
positive = unary("positive", "``+x``: the values unchanged, in an array of their own.", "clone")
reciprocal = unary("reciprocal", "``1 / x``.")
signbit = unary("signbit", "Whether the sign bit is set: of -0 and of NaNs with a sign too.")
sin = unary("sin", "The sine.")
sinh = unary("sinh", "The hyperbolic sine.")
sqrt = unary("sqrt", "The square root.")
square = unary("square", "``x * x``.")
tan = unary("tan", "The tangent.")
tanh = unary("tanh", "The hyperbolic tangent.")
trunc = unary("trunc", "The integer next to it towards 0, in the same dtype.")


def real(x: Tensor, /) -> Array:
    """The real part of each element, a view of ``x``; a real array's is itself."""
    return arrayed(x.real, x)


def imag(x: Tensor, /) -> Array:
    """The imaginary part of each element: a view of a complex array, zeros for a real one."""
    return arrayed(x.imag if x.dtype.category == COMPLEX else named("zeros_like")(x))


def round(x: Tensor, /) -> Array:
    """The nearest integer, ties to the even one, in the same dtype; of complex numbers each part."""
    if x.dtype.category == COMPLEX:
        parts = named("round")(named("view_as_real")(x))
        return arrayed(named("view_as_complex")(parts))
    return arrayed(named("round")(x), x)


def sign(x: Tensor, /) -> Array:
    """-1, 0 or 1; of complex numbers ``x / abs(x)``; NaN stays NaN."""
    found = named("sgn")(x)
    return arrayed(found + 0 if x.dtype.category == COMPLEX else found, x)  # that of 0 is 0 + 0j, whatever its signs


# -- two operands -----------------------------------------------------------------------------------------------------
add = binary("add", "``x1 + x2``.")
atan2 = binary("atan2", "The angle of the point (``x2``, ``x1``) in [-π, π].", numbers=False)
bitwise_and = binary("bitwise_and", "``x1 & x2``.")
bitwise_left_shift = binary("bitwise_left_shift", "``x1 << x2``.")
bitwise_or = binary("bitwise_or", "``x1 | x2``.")
bitwise_right_shift = binary("bitwise_right_shift", "``x1 >> x2``: arithmetic for integers with a sign.")
bitwise_xor = binary("bitwise_xor", "``x1 ^ x2``.")
copysign = binary("copysign", "The magnitude of ``x1`` with the sign of ``x2``.", numbers=False)
divide = binary("divide", "``x1 / x2``.", "div")
equal = binary("equal", "``x1 == x2``.", "eq", numbers=False)
greater = binary("greater", "``x1 > x2``.", "gt", numbers=False)
greater_equal = binary("greater_equal", "``x1 >= x2``.", "ge", numbers=False)
hypot = binary("hypot", "``sqrt(x1**2 + x2**2)`` without overflow on the way.", numbers=False)
less = binary("less", "``x1 < x2``.", "lt", numbers=False)
less_equal = binary("less_equal", "``x1 <= x2``.", "le", numbers=False)
logaddexp = binary("logaddexp", "``log(exp(x1) + exp(x2))`` without overflow on the way.", numbers=False)
logical_and = binary("logical_and", "Whether both hold.", numbers=False)
logical_or = binary("logical_or", "Whether one or both hold.", numbers=False)
logical_xor = binary("logical_xor", "Whether exactly one holds.", numbers=False)
maximum = binary("maximum", "The greater of two; NaN where one is.", numbers=False)
minimum = binary("minimum", "The smaller of two; NaN where one is.", numbers=False)
multiply = binary("multiply", "``x1 * x2``.", "mul")
nextafter = binary("nextafter", "The next number of the dtype from ``x1`` towards ``x2``.", numbers=False)
not_equal = binary("not_equal", "``x1 != x2``.", "ne", numbers=False)
pow = binary("pow", "``x1 ** x2``.")
remainder = binary("remainder", "``x1 - floor(x1 / x2) * x2``: it has the sign of ``x2``.")
subtract = binary("subtract", "``x1 - x2``.", "sub")


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """``x1 // x2``: the quotient rounded down; of infinite numbers ``floor(x1 / x2)``."""
    arrays_of(x1, x2, name="floor_divide")
    return arrayed(floor_divided(*promoted(x1, x2)))


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Array:
    """``x`` limited to [``min``, ``max``], numbers or arrays that broadcast; the dtype stays that of ``x``."""
    out = x
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            out = named(name)(out, _bound(bound, x))
    return arrayed(out.clone() if out is x else out)


def _bound(bound: Any, x: Tensor) -> Tensor:
    """A bound in the dtype of ``x``; one that an integer dtype does not hold becomes the nearest that it does."""
    if isinstance(bound, Tensor):
        return bound if bound.dtype is x.dtype else bound.to(x.dtype)
    if x.dtype.category == INTEGER:
        from candelabra.dtypes import iinfo

        limits = iinfo(x.dtype)
        bound = limits.min if bound < limits.min else limits.max if bound > limits.max else int(bound)
    made: Tensor = named("full")((), bound, dtype=x.dtype, device=x.device)
    return made

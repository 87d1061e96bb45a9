"""Pointwise operators that have an expression: functional and in-place forms, in the dtypes for which it is defined.

The *form* of a call is determined by which operands are arrays and which are numbers, and by the values of parameters
that select an expression. Each form has its own loop nest, which is looked up in a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from candelabra.backend import outline
from candelabra.dtypes import COMPLEX, FLOATING, INTEGER, bool_, dtype, int32, int64
from candelabra.library import INDEX, MASK, OPERAND, OPERATORS, PLAIN, REQUIRED, TENSOR, Operator, Parameter, boolean

from candelabra_clike.array import StridedArray
from candelabra_clike.conversions import converted, scalar, scalar_converter, scalar_types
from candelabra_clike.expressions import EXPRESSIONS, Entry, Expression, expression_for, is_contracted
from candelabra_clike.language import Value, Variable, call, declared, value_type
from candelabra_clike.templates.elementwise.calls import ScalarParameter, build_call, specialize
from candelabra_clike.templates.elementwise.elementwise import NAMES, Elementwise

Kernel = Callable[..., Any]
FIXED = {MASK: bool_, INDEX: int64}
"""The dtype of parameters that are not promoted."""
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
"""Operators whose Python number must not wrap around: a shift count out of range acts as the width."""
NUMBERS = ("float", "float | None", "Number", "Number | None")
"""Annotations of plain parameters that are arguments of the kernel. Other parameters are constants in its text."""


class Pointwise:
    """The kernel of an operator. :meth:`for_dtype` returns the function for one dtype."""

    def __init__(self, record: Operator[..., Any], entry: Entry, inplace: bool) -> None:
        self.record = record
        self.entry = entry
        self.inplace = inplace
        self.for_dtype = lru_cache(None)(self._for_dtype)

    def _for_dtype(self, d: dtype) -> Kernel | None:
        forms = self._forms(d)
        return None if forms is None else forms.kernel()

    def value(self, d: dtype) -> Value | None:
        """Return the expression of the operator for arrays of a dtype, with the defaults of parameters that select one.

        Returns None for a dtype that the operator does not have. Raises ``ExpressionError``.
        """
        forms = self._forms(d)
        return None if forms is None else forms.declare(forms.of_arrays()).value

    def _forms(self, d: dtype) -> CallForms | None:
        expression = expression_for(self.entry, d)
        if expression is None:
            return None
        output = d if self.inplace else self.record.results[0](d)
        return CallForms(self.record, expression, d, output, self.inplace)

    def __call__(self, *args: Any) -> Any:
        """Call the function for the dtype of the arguments. Raises ``TypeError`` if there is none."""
        d = next(
            a.dtype
            for a, p in zip(args, self.record.schema.parameters, strict=True)
            if p.kind not in FIXED and type(a) is StridedArray
        )
        kernel = self.for_dtype(d)
        if kernel is None:
            raise TypeError(f"{self.record.name}: not implemented for {d}")
        return kernel(*args)


class Power(Pointwise):
    """The kernel of ``pow``. Squares are products.

    Raises ``RuntimeError`` for an integer to the power of a negative number. Negative elements of an integer tensor
    give ``1 / input**n``, truncated.
    """

    def _for_dtype(self, d: dtype) -> Kernel | None:
        kernel = super()._for_dtype(d)
        square = Pointwise(OPERATORS["square"], EXPRESSIONS["square"], self.inplace).for_dtype(d)
        if kernel is None or square is None:
            return kernel
        general, squared, whole = kernel, square, d.category == INTEGER

        def power(x: Any, y: Any) -> Any:
            if y.__class__ is not StridedArray:
                if y == 2:
                    return squared(x)
                if whole and y < 0:
                    raise RuntimeError("Integers to negative integer powers are not allowed.")
            return general(x, y)

        return power


class ScaledPointwise(Pointwise):
    """The kernel of ``add_scaled`` and ``sub_scaled``.

    It declines a factor of a kind that the operator may refuse, such as a float for integers: the composite then raises
    the error, or computes.
    """

    def _for_dtype(self, d: dtype) -> Kernel | None:
        kernel: Any = super()._for_dtype(d)
        if kernel is None:
            return None
        kinds = {INTEGER: (int,), FLOATING: (int, float), COMPLEX: (int, float, complex)}[d.category]

        def scaled(x: Any, y: Any, alpha: Any) -> Any:
            return kernel(x, y, alpha) if alpha.__class__ in kinds else NotImplemented

        def into(out: StridedArray, x: Any, y: Any, alpha: Any) -> Any:
            return kernel.into(out, x, y, alpha) if alpha.__class__ in kinds else NotImplemented

        scaled.into = into  # type: ignore[attr-defined]
        return scaled


SPECIAL: Final = {"pow": Power, "add_scaled": ScaledPointwise, "sub_scaled": ScaledPointwise}
"""The operators with kernels of other classes."""


class Form(NamedTuple):
    """The expression of a form, and what its kernel takes."""

    value: Value
    inputs: list[dtype]
    numbers: list[str]
    """The types of the scalars."""
    arrays: list[str]
    """The parameters that are arrays."""
    scalars: list[ScalarParameter]


class CallForms:
    """The forms of an operator in one dtype."""

    def __init__(
        self, record: Operator[..., Any], expression: Expression, d: dtype, output: dtype, inplace: bool
    ) -> None:
        self.record = record
        self.expression = expression
        self.dtype = d
        self.output = output
        self.inplace = inplace
        self.parameters = record.schema.parameters

    def kernel(self) -> Kernel:
        """Return the function for all calls."""
        names = [p.name for p in self.parameters]
        tokens = [token(p) for p in self.parameters]
        if all(t == "True" for t in tokens):
            return self.form((True,) * len(tokens))
        return specialize(self.record.name, names, tokens, self.form)

    def of_arrays(self) -> tuple[Any, ...]:
        """Return the tokens of a call with arrays, and with the defaults of parameters that select an expression.

        One without a default is the order of a derivative, whose general form starts at 2.
        """
        return tuple(
            not p.optional if p.kind != PLAIN or p.annotation in NUMBERS else 2 if p.default is REQUIRED else p.default
            for p in self.parameters
        )

    def declare(self, key: tuple[Any, ...]) -> Form:
        """Return the form of calls with these tokens. Raises ``ExpressionError``."""
        inputs: list[dtype] = []
        numbers: list[str] = []
        values: dict[str, Any] = {}
        arrays: list[str] = []
        scalars: list[ScalarParameter] = []
        letters = iter(NAMES)
        for p, value in zip(self.parameters, key, strict=True):
            d = FIXED.get(p.kind, self.dtype)
            name = p.name if p.kind == PLAIN else next(letters)
            if p.kind in (TENSOR, *FIXED) or (p.kind == OPERAND and value):
                values[name] = Variable(value_type(d), f"v{NAMES[len(inputs)]}")
                inputs.append(d)
                arrays.append(p.name)
            elif p.kind == PLAIN and p.annotation not in NUMBERS:
                values[name] = value
            elif value or p.kind == OPERAND:
                values[name] = scalar(d, len(numbers), self.record.results[0] is boolean)
                numbers.extend(scalar_types(d))
                scalars.append(ScalarParameter(p.name, number_converter(self.record, p, d), scalar_types(d)))
            else:
                values[name] = None
        operator = f"{self.record.name!r} in {self.dtype.name}"
        result = self.record.results[0](self.dtype)
        value = declared(operator, self.expression, values, value_type(result))
        if result is not self.output:  # an in-place comparison
            value = converted(value, result, self.output)
        return Form(value, inputs, numbers, arrays, scalars)

    def form(self, key: tuple[Any, ...]) -> Kernel:
        """Return the function for calls with these tokens."""
        value, inputs, numbers, arrays, scalars = self.declare(key)
        operator = self.record.name
        nest = Elementwise(self._name(key), value, inputs, self.output, numbers, is_contracted(operator), operator)
        return build_call(nest, [p.name for p in self.parameters], arrays, scalars, self.inplace)

    def _name(self, key: tuple[Any, ...]) -> str:
        marks = "".join("an"[not k] for k, p in zip(key, self.parameters, strict=True) if p.kind == OPERAND)
        return f"{self.record.name}_{self.dtype.name}" + (f"_{marks}" if "n" in marks else "")


def number_converter(record: Operator[..., Any], p: Parameter, d: dtype) -> Callable[[Any], tuple[Any, ...]]:
    """Return the conversion of a Python number for a parameter to arguments of the kernel."""
    if record.name in SHIFTS and p.name == "other":
        width = 8 * d.itemsize
        return lambda value: (value if 0 <= value < width else width,)
    return scalar_converter(d)


def token(p: Parameter) -> str:
    """Return the Python expression of the property of an argument that determines the form."""
    if p.kind == OPERAND:
        return f"{p.name}.__class__ is Array"
    if p.kind != PLAIN:
        return "True"
    return f"{p.name} is not None" if p.annotation in NUMBERS else p.name


class PointwiseKernels(Mapping[str, Pointwise]):
    """The kernels of the operators that have an expression and a record. A kernel is created at its first use."""

    def __init__(self) -> None:
        self._kernels: dict[str, Pointwise] = {}

    def __getitem__(self, name: str) -> Pointwise:
        kernel = self._kernels.get(name)
        if kernel is None:
            if name not in self._names():
                raise KeyError(name)
            operator = name if name in EXPRESSIONS else name.removesuffix("_")
            kernel_class = SPECIAL.get(operator, Pointwise)
            created = kernel_class(OPERATORS[operator], EXPRESSIONS[operator], inplace=name != operator)
            kernel = self._kernels.setdefault(name, created)  # another thread may have been first
        return kernel

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @staticmethod
    @lru_cache(1)
    def _names() -> tuple[str, ...]:
        names = [name for name in EXPRESSIONS if name in OPERATORS]
        return tuple(form for name in names for form in ((name, f"{name}_") if outline(name).inplace else (name,)))


POINTWISE: Final = PointwiseKernels()


class Clamp:
    """The kernel of ``clamp`` between two numbers, which is that of ``hardtanh``. It declines other bounds, and all
    calls where the distribution that declares ``hardtanh`` is not installed.
    """

    @cached_property
    def between(self) -> Pointwise | None:
        """The kernel of ``hardtanh``."""
        if "hardtanh" not in OPERATORS:
            return None
        return Pointwise(OPERATORS["hardtanh"], EXPRESSIONS["hardtanh"], inplace=False)

    def for_dtype(self, d: dtype) -> Callable[..., Any] | None:
        """Return the function for a floating dtype."""
        between = None if self.between is None else self.between.for_dtype(d)
        if between is None:
            return None

        def clamp(x: StridedArray, low: Any, high: Any) -> Any:
            numbers = low.__class__ in (float, int) and high.__class__ in (float, int)
            # If bounds cross, the upper one is the result for all elements; a bound that is NaN fails here, too.
            return between(x, float(low), float(high)) if numbers and low <= high else NotImplemented

        return clamp

    def __call__(self, x: StridedArray, low: Any, high: Any) -> Any:
        kernel = self.for_dtype(x.dtype)
        return NotImplemented if kernel is None else kernel(x, low, high)


@lru_cache(None)
def _frexp_kernels(d: dtype) -> tuple[Elementwise, Elementwise]:
    return (
        Elementwise.of(f"frexp_mantissa_{d.name}", lambda a: call("frexp_mantissa", a), (d,), d),
        Elementwise.of(f"frexp_exponent_{d.name}", lambda a: call("frexp_exponent", a), (d,), int32),
    )


def frexp(x: StridedArray) -> tuple[StridedArray, StridedArray]:
    """Mantissa and exponent. The magnitude of the mantissa is in [0.5, 1); 0, infinities and NaN have exponent 0."""
    mantissa, exponent = _frexp_kernels(x.dtype)
    return mantissa(x), exponent(x)


KERNELS: Final = {"clamp": Clamp(), "frexp": frexp}

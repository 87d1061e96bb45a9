"""The data types and their promotion.

A dtype is a plain object with a name, category, size, and its bit in a dispatch key. Promotion follows PyTorch: the
*category* (bool < integer < floating < complex) decides first, and tensors without dims and Python scalars change the
result only if their category is higher. NumPy's promotion differs for 39 of 105 pairs, so backends never promote.
"""

from __future__ import annotations

from collections.abc import Iterable

from candelabra._annotations import Final, NamedTuple
from candelabra._invalidation import invalidate
from candelabra._keys import DTYPE_SHIFT

BOOL, INTEGER, FLOATING, COMPLEX = range(4)
"""The categories, lowest first."""


class dtype:
    """The type of a tensor's elements. There is one object per type; compare with ``is`` or ``==``.

    Attributes: ``name``; ``itemsize`` in bytes; ``category``; ``is_signed``; ``is_half`` (a 16-bit float, which
    computes in float32); ``digits``, the significant bits (for a float including the leading one, for an integer
    without the sign); ``lowest_exponent``, that of the smallest normal float; ``title``, PyTorch's name in error
    messages; ``c_name``, PyTorch's C++ name; ``format``, the code of ``struct`` and ``memoryview`` (for a complex dtype
    that of its real part, "" if there is none); ``safetensors``, the code in such files ("" if there is none);
    ``dlpack``, DLPack's type code; ``bit``, its bit in a dispatch key.
    """

    __slots__ = (
        "name", "itemsize", "category", "is_signed", "is_half", "title", "c_name", "format", "safetensors", "dlpack",
        "digits", "lowest_exponent", "bit", "order",
    )  # fmt: skip

    def __init__(
        self, name: str, itemsize: int, category: int, signed: bool, title: str, c_name: str, format: str,
        safetensors: str, dlpack: int, digits: int, lowest_exponent: int, order: int,
    ) -> None:  # fmt: skip
        self.name: Final = name
        self.itemsize: Final = itemsize
        self.category: Final = category
        self.is_signed: Final = signed
        self.is_half: Final = category == FLOATING and itemsize == 2
        self.title: Final = title
        self.c_name: Final = c_name
        self.format: Final = format
        self.safetensors: Final = safetensors
        self.dlpack: Final = dlpack
        self.digits: Final = digits
        self.lowest_exponent: Final = lowest_exponent
        self.order: Final = order
        self.bit: Final = 1 << (DTYPE_SHIFT + order)

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    def to_real(self) -> dtype:
        """Return the dtype of the real part: ``float32`` for ``complex64``."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """Return the complex dtype with real parts of this dtype; ``complex64`` for half types and integers."""
        return self if self.is_complex else complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return f"candelabra.{self.name}"

    def __reduce__(self) -> str:
        return "bool_" if self.name == "bool" else self.name  # the module's global

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self


_TABLE = (
    # name, bytes, category, signed, PyTorch's title, C++ name, struct, safetensors, DLPack, digits, lowest exponent
    ("bool", 1, BOOL, False, "Bool", "bool", "?", "BOOL", 6, 1, 0),
    ("uint8", 1, INTEGER, False, "Byte", "uint8_t", "B", "U8", 1, 8, 0),
    ("int8", 1, INTEGER, True, "Char", "int8_t", "b", "I8", 0, 7, 0),
    ("int16", 2, INTEGER, True, "Short", "int16_t", "h", "I16", 0, 15, 0),
    ("int32", 4, INTEGER, True, "Int", "int", "i", "I32", 0, 31, 0),
    ("int64", 8, INTEGER, True, "Long", "int64_t", "q", "I64", 0, 63, 0),
    ("uint16", 2, INTEGER, False, "UInt16", "uint16_t", "H", "U16", 1, 16, 0),
    ("uint32", 4, INTEGER, False, "UInt32", "uint32_t", "I", "U32", 1, 32, 0),
    ("uint64", 8, INTEGER, False, "UInt64", "uint64_t", "Q", "U64", 1, 64, 0),
    ("float16", 2, FLOATING, True, "Half", "at::Half", "e", "F16", 2, 11, -14),
    ("bfloat16", 2, FLOATING, True, "BFloat16", "at::BFloat16", "", "BF16", 4, 8, -126),
    ("float32", 4, FLOATING, True, "Float", "float", "f", "F32", 2, 24, -126),
    ("float64", 8, FLOATING, True, "Double", "double", "d", "F64", 2, 53, -1022),
    ("complex64", 8, COMPLEX, True, "ComplexFloat", "c10::complex<float>", "f", "C64", 5, 24, -126),
    ("complex128", 16, COMPLEX, True, "ComplexDouble", "c10::complex<double>", "d", "", 5, 53, -1022),
)
"""All facts about dtypes that the core and file formats need, in one table. NumPy's names are candelabra's, with
bfloat16 from ml_dtypes. DLPack's bits are those of the element."""
ALL: Final[tuple[dtype, ...]] = tuple(dtype(*row, order) for order, row in enumerate(_TABLE))
BY_NAME: Final[dict[str, dtype]] = {d.name: d for d in ALL}
BY_BIT: Final[dict[int, dtype]] = {d.bit: d for d in ALL}
DTYPE_MASK: Final[int] = sum(BY_BIT)

(bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
 float16, bfloat16, float32, float64, complex64, complex128) = ALL  # fmt: skip
COMPLEX_BITS: Final[int] = complex64.bit | complex128.bit
DIFFERENTIABLE_BITS: Final[int] = sum(d.bit for d in BY_BIT.values() if d.category >= FLOATING)
ALIASES: Final[dict[str, dtype]] = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64,
    "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
"""PyTorch's alternative names."""

PYTHON_NAMES: Final[dict[str, str]] = {d.name: d.title for d in ALL}
"""PyTorch's name of each dtype in its error messages."""


class _DefaultDtype:
    """The default dtype of floating values in this process, as in PyTorch."""

    value: dtype = float32


def get_default_dtype() -> dtype:
    """Return the dtype of Python floats: ``float32``, unless :func:`set_default_dtype` has changed it."""
    return _DefaultDtype.value


def set_default_dtype(d: dtype) -> None:
    """Make ``d``, a floating dtype, the dtype of Python floats and of integer inputs to floating functions."""
    if not getattr(d, "is_floating_point", False):
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _DefaultDtype.value = d
    invalidate()  # adapters contain the default dtype


def default_for_category(category: int) -> dtype:
    """Return the default dtype of a Python scalar of this category."""
    return (bool_, int64, _DefaultDtype.value, _DefaultDtype.value.to_complex())[category]


def category_of_scalar(value: object) -> int:
    """Return the category of a Python scalar: 0 for ``True``, 1 for ``1``, 2 for ``1.0``, 3 for ``1j``."""
    return (
        BOOL if isinstance(value, bool) else INTEGER if isinstance(value, int)
        else COMPLEX if isinstance(value, complex) and not isinstance(value, float) else FLOATING
    )  # fmt: skip


def _integer(a: dtype, b: dtype) -> dtype:
    if a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned is uint64:
        # PyTorch and the Array API leave this mix undefined: no integer dtype has both ranges.
        raise TypeError(
            f"promotion of {a} and {b} is not defined: no integer dtype holds both; cast one of them with .to(dtype)"
        )
    return {1: int16, 2: int32, 4: int64}[unsigned.itemsize]


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype to which both can be promoted, as ``torch.promote_types``.

    Mixes of ``uint16``–``uint64`` with signed integers, which PyTorch refuses, follow the Array API standard. Raises
    ``TypeError`` for ``uint64`` with a signed integer, which the standard does not define either.
    """
    a, b = type1, type2
    if a is b:
        return a
    if not (isinstance(a, dtype) and isinstance(b, dtype)):
        raise not_dtypes("promote_types", type1=a, type2=b)
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high is complex64 and low is float64:
            return complex128
        return high
    if a.category == INTEGER:
        return _integer(a, b)
    if a.itemsize == b.itemsize:  # float16 with bfloat16: neither can represent the other
        return float32
    return a if a.itemsize > b.itemsize else b


class Operand(NamedTuple):
    """The properties of an argument that promotion depends on: its dtype, and whether it is a tensor with dims."""

    dtype: dtype
    rank: int
    """2 for a tensor with dims, 1 for one without, 0 for a Python scalar."""


def result_dtype(operands: Iterable[Operand]) -> dtype:
    """Return the common dtype of a call: that of tensors with dims; 0-d tensors and scalars only raise the category.

    Source: PyTorch's documentation, "Tensor Attributes", on type promotion.
    """
    best: list[dtype | None] = [None, None, None]
    for d, rank in operands:
        seen = best[rank]
        best[rank] = d if seen is None else promote_types(seen, d)
    result: dtype | None = None
    for candidate in (best[2], best[1], best[0]):
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif candidate.category > result.category:
            result = _raised(result, candidate)
    assert result is not None  # there is an operand
    return result


def _raised(current: dtype, higher: dtype) -> dtype:
    # A complex scalar with float64 must keep the tensor's precision; with float16 the result is complex64.
    if higher.category == COMPLEX and current.category == FLOATING:
        return current.to_complex()
    return higher


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether a result of dtype ``from_`` may be written into a tensor of dtype ``to`` (in-place and ``out=``).

    As ``torch.can_cast``: a cast to a lower category is not allowed, a narrower dtype of the same category is.
    """
    try:
        return not (from_.category > to.category or (from_.category != BOOL and to.category == BOOL))
    except AttributeError:
        raise not_dtypes("can_cast", from_=from_, to=to) from None


def not_dtypes(name: str, **arguments: object) -> TypeError:
    """Return the error for the first argument that is not a dtype."""
    position, parameter, value = next(
        (position, parameter, value)
        for position, (parameter, value) in enumerate(arguments.items(), 1)
        if not isinstance(value, dtype)
    )
    kind = type(value).__name__
    return TypeError(f"{name}(): argument '{parameter}' (position {position}) must be dtype, not {kind}")


class finfo:
    """The limits of a floating dtype (for a complex one, of its parts): ``bits``, ``eps``, ``max``, ``tiny`` …"""

    def __init__(self, type: dtype | None = None) -> None:
        if not isinstance(type, dtype | None):
            raise TypeError(f"candelabra.finfo() requires a floating point input type, got {type!r}")
        d = (type or get_default_dtype()).to_real()
        if not d.is_floating_point:
            raise TypeError(f"candelabra.finfo() requires a floating point input type, got {d}; use iinfo")
        self.dtype = d.name
        self.bits = d.itemsize * 8
        self.eps = 2.0 ** (1 - d.digits)
        self.max = (2.0 - self.eps) * 2.0 ** (1 - d.lowest_exponent)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**d.lowest_exponent
        self.resolution = 10.0 ** -int((d.digits - 1) * 0.30103)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype: ``bits``, ``min``, ``max``."""

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype) or type.category != INTEGER:
            raise TypeError(f"candelabra.iinfo() requires an integer input type, got {type}; use finfo")
        self.dtype = type.name
        self.bits = type.itemsize * 8
        self.min = -(1 << (self.bits - 1)) if type.is_signed else 0
        self.max = (1 << (self.bits - type.is_signed)) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


__all__ = [
    "ALIASES", "ALL", "bfloat16", "BOOL", "bool_", "BY_BIT", "BY_NAME", "can_cast", "category_of_scalar", "COMPLEX",
    "COMPLEX_BITS", "complex128", "complex64", "default_for_category", "dtype", "DTYPE_MASK", "finfo", "float16",
    "float32", "float64", "FLOATING", "get_default_dtype", "iinfo", "int16", "int32", "int64", "int8", "INTEGER",
    "Operand", "promote_types", "PYTHON_NAMES", "result_dtype", "set_default_dtype", "uint16", "uint32", "uint64",
    "uint8",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

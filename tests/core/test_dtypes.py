"""Promotion, conversion and limits of dtypes, compared with tables printed by PyTorch 2.13."""

import copy
import pickle  # noqa: TID251 - what is unpickled here was pickled here
from fractions import Fraction
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.dtypes import ALL, can_cast, promote_types

ROOT = Path(__file__).resolve().parents[2]
SHORT = dict(zip(["b1", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "bf", "f4", "f8", "c8", "c16"], ALL))
"""The dtypes with the letters of the tables, in the order of rows and columns."""

PROMOTED = """
    b1 u1 i1 i2 i4 i8 - - - f2 bf f4 f8 c8 c16
    u1 u1 i2 i2 i4 i8 - - - f2 bf f4 f8 c8 c16
    i1 i2 i1 i2 i4 i8 - - - f2 bf f4 f8 c8 c16
    i2 i2 i2 i2 i4 i8 - - - f2 bf f4 f8 c8 c16
    i4 i4 i4 i4 i4 i8 - - - f2 bf f4 f8 c8 c16
    i8 i8 i8 i8 i8 i8 - - - f2 bf f4 f8 c8 c16
    - - - - - - u2 - - f2 bf f4 f8 - -
    - - - - - - - u4 - f2 bf f4 f8 - -
    - - - - - - - - u8 f2 bf f4 f8 - -
    f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c8 c16
    bf bf bf bf bf bf bf bf bf f4 bf f4 f8 c8 c16
    f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 c16
    f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16
    c8 c8 c8 c8 c8 c8 - - - c8 c8 c8 c16 c8 c16
    c16 c16 c16 c16 c16 c16 - - - c16 c16 c16 c16 c16 c16
"""
"""``torch.promote_types``; ``-`` where PyTorch refuses (combinations with uint16 to uint64)."""

ZERO_DIM = """
    b1 u1 i1 i2 i4 i8 - - - f2 bf f4 f8 c8 c16
    u1 u1 u1 u1 u1 u1 u1 u1 u1 f2 bf f4 f8 c8 c16
    i1 i1 i1 i1 i1 i1 i1 i1 i1 f2 bf f4 f8 c8 c16
    i2 i2 i2 i2 i2 i2 i2 i2 i2 f2 bf f4 f8 c8 c16
    i4 i4 i4 i4 i4 i4 i4 i4 i4 f2 bf f4 f8 c8 c16
    i8 i8 i8 i8 i8 i8 i8 i8 i8 f2 bf f4 f8 c8 c16
    u2 u2 u2 u2 u2 u2 u2 u2 u2 f2 bf f4 f8 c8 c16
    u4 u4 u4 u4 u4 u4 u4 u4 u4 f2 bf f4 f8 c8 c16
    u8 u8 u8 u8 u8 u8 u8 u8 u8 f2 bf f4 f8 c8 c16
    f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 c4 c4
    bf bf bf bf bf bf bf bf bf bf bf bf bf c8 c8
    f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 c8 c8
    f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16
    c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8
    c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""
"""``torch.result_type(row with one dim, 0-d column)``; ``c4`` is complex32, which candelabra does not have."""

SCALARS = """
    b1 i8 f4 c8
    u1 u1 f4 c8
    i1 i1 f4 c8
    i2 i2 f4 c8
    i4 i4 f4 c8
    i8 i8 f4 c8
    u2 u2 f4 c8
    u4 u4 f4 c8
    u8 u8 f4 c8
    f2 f2 f2 c4
    bf bf bf c8
    f4 f4 f4 c8
    f8 f8 f8 c16
    c8 c8 c8 c8
    c16 c16 c16 c16
"""
"""``torch.result_type(row with one dim, value)`` for the values True, 1, 1.0, 1j."""

CASTABLE = """
    111111111111111
    011111111111111
    011111111111111
    011111111111111
    011111111111111
    011111111111111
    011111111111111
    011111111111111
    011111111111111
    000000000111111
    000000000111111
    000000000111111
    000000000111111
    000000000000011
    000000000000011
"""
"""``torch.can_cast(row, column)``."""


def rows(table: str) -> list[list[str]]:
    """Return a table's cells."""
    return [line.split() for line in table.strip().splitlines()]


@pytest.mark.parametrize("row", range(15), ids=lambda i: ALL[i].name)
def test_promotion_of_tensors_is_pytorchs(row: int) -> None:
    """The promoted dtype is PyTorch's, if PyTorch defines it."""
    for other, cell in zip(ALL, rows(PROMOTED)[row], strict=True):
        if cell != "-":
            assert promote_types(ALL[row], other) is SHORT[cell]


def test_promotion_that_pytorch_refuses_follows_the_array_api() -> None:
    """Unsigned integers with signed ones give the next larger signed dtype; with uint64 there is no such dtype."""
    assert cd.promote_types(cd.uint16, cd.int8) is cd.int32
    assert cd.promote_types(cd.uint32, cd.int32) is cd.int64
    assert cd.promote_types(cd.uint8, cd.uint64) is cd.uint64
    assert cd.promote_types(cd.uint16, cd.int64) is cd.int64
    assert cd.promote_types(cd.bool, cd.uint32) is cd.uint32
    with pytest.raises(TypeError, match=r"promotion of candelabra.uint64 and candelabra.int8 is not defined"):
        cd.promote_types(cd.uint64, cd.int8)


@pytest.mark.parametrize("row", range(15), ids=lambda i: ALL[i].name)
def test_tensor_without_dims_raises_only_the_category(row: int) -> None:
    """A 0-d tensor combined with a tensor with dims takes part only if its category is higher."""
    one = cd.zeros(1, dtype=ALL[row])
    for other, cell in zip(ALL, rows(ZERO_DIM)[row], strict=True):
        if cell != "-":
            want = cd.complex64 if cell == "c4" else SHORT[cell]
            assert cd.result_type(one, cd.zeros((), dtype=other)) is want, other


@pytest.mark.parametrize("row", range(15), ids=lambda i: ALL[i].name)
def test_python_number_raises_only_the_category(row: int) -> None:
    """A Python number takes part only if its category is higher than the tensor's; then it has the default dtype."""
    one = cd.zeros(1, dtype=ALL[row])
    for value, cell in zip((True, 1, 1.0, 1j), rows(SCALARS)[row], strict=True):
        want = cd.complex64 if cell == "c4" else SHORT[cell]
        assert cd.result_type(one, value) is want, value
        assert cd.result_type(value, one) is want, value


def test_result_type_of_two_numbers() -> None:
    """Two numbers have the default dtype of the higher category."""
    assert cd.result_type(1, 2) is cd.int64
    assert cd.result_type(True, 2.0) is cd.float32
    assert cd.result_type(cd.tensor(1), 1.5) is cd.float32
    with pytest.raises(TypeError, match=r"result_type\(\) takes tensors and numbers, not Fraction"):
        cd.result_type(cd.ones(1), Fraction(1, 2))
    with pytest.raises(TypeError, match=r"promote_types\(\): argument 'type2' \(position 2\) must be dtype, not str"):
        promote_types(cd.float32, "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"can_cast\(\): argument 'from_' \(position 1\) must be dtype, not str"):
        can_cast("x", cd.float32)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"finfo\(\) requires a floating point input type, got 'x'"):
        cd.finfo("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"iinfo\(\) requires an integer input type, got None"):
        cd.iinfo(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", range(15), ids=lambda i: ALL[i].name)
def test_can_cast_is_pytorchs(row: int) -> None:
    """A result may be written to another dtype if PyTorch allows it."""
    for other, cell in zip(ALL, CASTABLE.split()[row], strict=True):
        assert can_cast(ALL[row], other) is (cell == "1"), other


@pytest.mark.parametrize(
    ("d", "words"),
    [
        (
            cd.float32,
            "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
            "tiny=1.17549e-38, dtype=float32)",
        ),
        (
            cd.float16,
            "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, "
            "tiny=6.10352e-05, dtype=float16)",
        ),
        (
            cd.bfloat16,
            "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, smallest_normal=1.17549e-38, "
            "tiny=1.17549e-38, dtype=bfloat16)",
        ),
        (
            cd.float64,
            "finfo(resolution=1e-15, min=-1.79769e+308, max=1.79769e+308, eps=2.22045e-16, "
            "smallest_normal=2.22507e-308, tiny=2.22507e-308, dtype=float64)",
        ),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_limits_of_floats_read_as_pytorchs(d: cd.dtype, words: str) -> None:
    """``repr(finfo)`` equals PyTorch's in every digit."""
    assert repr(cd.finfo(d)) == words


def test_limits_of_integers() -> None:
    """``iinfo`` has bits, min and max; ``finfo`` of a complex dtype is that of its real part."""
    assert repr(cd.iinfo(cd.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert (cd.iinfo(cd.uint64).min, cd.iinfo(cd.uint64).max, cd.iinfo(cd.uint64).bits) == (0, 2**64 - 1, 64)
    assert cd.finfo(cd.complex128).dtype == "float64"
    assert cd.finfo().dtype == "float32"
    with pytest.raises(TypeError, match=r"finfo\(\) requires a floating point input type"):
        cd.finfo(cd.int32)
    with pytest.raises(TypeError, match=r"iinfo\(\) requires an integer input type"):
        cd.iinfo(cd.float32)
    with pytest.raises(TypeError, match=r"iinfo\(\) requires an integer input type"):
        cd.iinfo(cd.bool)


def test_default_dtype_is_that_of_python_floats() -> None:
    """``set_default_dtype`` changes the dtype of Python floats and complex numbers."""
    cd.set_default_dtype(cd.float64)
    try:
        assert cd.tensor(1.5).dtype is cd.float64
        assert cd.tensor(1j).dtype is cd.complex128
        assert cd.tensor([1]).dtype is cd.int64
        assert (cd.tensor([1]) / 2).dtype is cd.float64
    finally:
        cd.set_default_dtype(cd.float32)
    assert (cd.tensor([1]) / 2).dtype is cd.float32
    with pytest.raises(TypeError, match=r"only floating-point types are supported as the default type"):
        cd.set_default_dtype(cd.int32)


def test_second_names_are_the_same_objects() -> None:
    """``cd.long`` is ``cd.int64``, as in PyTorch."""
    assert cd.long is cd.int64
    assert cd.half is cd.float16
    assert cd.float is cd.float32
    assert cd.double is cd.float64
    assert cd.int is cd.int32
    assert cd.short is cd.int16
    assert cd.cfloat is cd.complex64
    assert cd.cdouble is cd.complex128
    assert repr(cd.bool) == "candelabra.bool"


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_dtype_survives_copies_and_pickles_as_itself(d: cd.dtype) -> None:
    """There is one object per dtype, also after copies and pickles."""
    assert copy.copy(d) is d
    assert copy.deepcopy([d])[0] is d
    assert pickle.loads(pickle.dumps(d)) is d  # noqa: S301


def test_half_precision_is_a_property_of_a_dtype() -> None:
    """No function recognizes half precision by its size, which 16-bit integers share."""
    assert [str(d) for d in ALL if d.is_half] == ["candelabra.float16", "candelabra.bfloat16"]
    sources = [path for folder in ("core/src", "nn/src") for path in (ROOT / folder).rglob("*.py")]
    assert [p.name for p in sources if "itemsize == 2" in p.read_text(encoding="utf-8")] == ["dtypes.py"]

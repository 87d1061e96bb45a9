"""New tensors: strided ones, ranges and scales, triangles of indices, fillers, and the arguments of factories."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._operators.creation.matrices import triangle_indices


# -- memory without content -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("size", "stride"), [((2, 3), (1, 2)), ((2, 3), (0, 1)), ((3,), (2,)), ((), ()), ((2, 0), (5, 1))]
)
def test_strided_tensors_have_the_steps_that_are_asked_for(size: Any, stride: Any) -> None:
    """They can be written to; a new one takes dtype and device of its model."""
    x = cd.empty_strided(size, stride, dtype=cd.int32)
    assert x.shape == size
    assert x.dtype is cd.int32
    assert math.prod(size) == 0 or x.stride() == stride
    assert not x._is_view()
    assert cd.ones(1, dtype=cd.float64).new_empty_strided(size, stride).dtype is cd.float64


def test_dims_lie_in_memory_in_the_order_that_is_asked_for() -> None:
    """The physical layout names them from the outermost to the innermost."""
    x = cd.empty_permuted((2, 3, 4), (1, 2, 0))
    assert x.stride() == (1, 8, 2)
    assert cd.empty_permuted((2, 3), (0, 1)).is_contiguous()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: cd.empty_strided((2, 3), (1,)), r"sizes \(2\) must match dimensionality of strides \(1\)"),
        (lambda: cd.empty_strided((2,), (-1,)), r"Negative strides are not supported .*: \[-1\]"),
        (lambda: cd.empty_strided((-2,), (1,)), "negative dimension -2"),
        (lambda: cd.empty_permuted((2, 3), (0,)), r"len\(size\) = 2 is not equal to len\(physical_layout\) = 1"),
        (lambda: cd.empty_permuted((2, 3), (0, 5)), r"between 0 and 1, but got 5 at index 1"),
        (lambda: cd.empty_permuted((2, 3), (0, 0)), "Duplicate dim not allowed"),
    ],
)  # fmt: skip
def test_layouts_that_are_none_are_refused(make: Any, match: str) -> None:
    """Counts, signs and orders are checked."""
    with pytest.raises(RuntimeError, match=match):
        make()


def test_new_makes_by_shape_or_by_values() -> None:
    """In the dtype of the tensor that is asked."""
    x = cd.ones(2, dtype=cd.float64)
    assert x.new(2, 3).shape == (2, 3)
    assert x.new().shape == (0,)
    assert x.new(cd.ones(4, 5).shape).shape == (4, 5)
    made = x.new([1, 2])
    assert made.tolist() == [1, 2]
    assert made.dtype is cd.float64


# -- ranges and scales ------------------------------------------------------------------------------------------------
def test_ranges_include_their_end() -> None:
    """Of the default floating dtype unless given; the end is there where a step meets it."""
    assert cd.range(1, 4, 0.5).tolist() == [1, 1.5, 2, 2.5, 3, 3.5, 4]
    assert cd.range(1, 4.2).tolist() == [1, 2, 3, 4]
    assert cd.range(3, 1, -1, dtype=cd.int64).tolist() == [3, 2, 1]
    assert cd.range(2).tolist() == [0, 1, 2]
    assert cd.range(cd.tensor(1), cd.tensor(2)).dtype is cd.float32


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0, 1, 0), "step must be nonzero"),
        ((3, 1), "upper bound and lower bound inconsistent with step sign"),
        ((0, math.inf), "unsupported range: 0 -> inf"),
    ],
)
def test_ranges_without_end_are_refused(arguments: Any, match: str) -> None:
    """A step of nothing, away from the end, or never there; ``arange`` says the same."""
    for make in (cd.range, cd.arange):
        with pytest.raises(RuntimeError, match=match):
            make(*arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "bfloat16"])
@pytest.mark.parametrize("arguments", [(0, 3, 4), (2, -1, 7), (0.5, 3, 1), (0, 1, 0)])
def test_powers_are_evenly_spaced_in_their_exponents(arguments: Any, dtype: str) -> None:
    """As NumPy's; the ends of integer scales are cut off first."""
    start, end, steps = arguments
    d = getattr(cd, dtype)
    ends = (int(start), int(end)) if dtype == "int64" else (start, end)
    for base in (10.0, 2.0):
        made = cd.logspace(start, end, steps, base, dtype=d)
        assert made.dtype is d
        wanted = np.logspace(*ends, steps, base=base)
        if dtype == "int64":
            assert np.abs(made.numpy() - wanted).max(initial=0) <= 1
        else:
            assert np.allclose(made.to(cd.complex128).numpy(), wanted, rtol=1e-2 if dtype == "bfloat16" else 1e-5)


def test_scales_of_tensors_and_of_complex_numbers() -> None:
    """Ends may be 0-d tensors; a complex end makes a complex scale."""
    assert np.allclose(cd.logspace(cd.tensor(1.0), 3, 2).tolist(), [10, 1000])
    assert cd.logspace(0, 1j, 3).dtype is cd.complex64
    assert np.allclose(cd.linspace(0, 2j, 3).tolist(), [0, 1j, 2j])
    assert cd.linspace(cd.tensor(1), cd.tensor(2.0), 2).tolist() == [1, 2]
    assert cd.linspace(4.3, -3, 3, dtype=cd.int64).tolist() == [4, 0, -3]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: cd.linspace(cd.ones(1), 2, 3), RuntimeError, "but got start with 1 dimension"),
        (lambda: cd.linspace(0, 1, 3, dtype=cd.bool), NotImplementedError, "linspace\" not implemented"),
        (lambda: cd.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: cd.logspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: cd.arange(3, dtype=cd.bool), NotImplementedError, "\"arange\" not implemented for 'Bool'"),
        (lambda: cd.arange(0, 9, 0.5, dtype=cd.int64), ValueError, "step must be nonzero"),
        (lambda: cd.eye(2.0), TypeError, "must be an int or a tuple of ints, but found float|must be int, not float"),
    ],
)  # fmt: skip
def test_scales_that_are_none_are_refused(make: Any, error: Any, match: str) -> None:
    """Bools, ends with dims, negative counts, steps that are cut off to nothing."""
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize(
    ("arguments", "dtype", "wanted"),
    [
        ((-8.000001, -4.0), "int64", [-8, -7, -6, -5]),
        ((-0.9, 2.1, 2.0), "int32", [0, 2]),
        ((1.0, 5, 2), "int64", [1, 3]),
        ((0.1, 0.75, 0.3), "float64", [0.1, 0.4, 0.7]),
        ((5, 0, -2), "uint8", [5, 3, 1]),
    ],
)
def test_integer_ranges_cut_off_first(arguments: Any, dtype: str, wanted: Any) -> None:
    """Start, end and step become integers before anything is counted."""
    made = cd.arange(*arguments, dtype=getattr(cd, dtype))
    assert np.allclose(made.tolist(), wanted)
    assert made.dtype is getattr(cd, dtype)


# -- triangles --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("offset", [-4, -1, 0, 1, 5])
@pytest.mark.parametrize(("row", "col"), [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0), (700, 90), (2, 40_000)])
def test_triangles_of_indices(row: int, col: int, offset: int) -> None:
    """In the order of the rows, as NumPy's."""
    for name in ("tril_indices", "triu_indices"):
        made = getattr(cd, name)(row, col, offset)
        assert made.numpy().tolist() == np.array(getattr(np, name)(row, offset, col)).tolist()
        assert made.dtype is cd.int64


def test_triangles_of_other_dtypes_and_sizes_are_refused() -> None:
    """Indices are integers, and sizes are not negative."""
    assert cd.tril_indices(2, 2, dtype=cd.int32).dtype is cd.int32
    with pytest.raises(NotImplementedError, match="\"tril_indices\" not implemented for 'Float'"):
        cd.tril_indices(2, 2, dtype=cd.float32)
    with pytest.raises(RuntimeError, match="col must be non-negative, got-3"):
        cd.triu_indices(2, -3)
    with pytest.raises(RuntimeError, match="row must be non-negative, got-1"):
        cd.tril_indices(-1, 3)


# -- filling ----------------------------------------------------------------------------------------------------------
def test_filled_tensors_and_their_gradients() -> None:
    """A number is cast to the dtype; a 0-d tensor gets the sum of the gradient."""
    x, value = cd.ones(2, 3, requires_grad=True), cd.tensor(2.0, requires_grad=True)
    made = cd.fill(x, value)
    assert made.tolist() == [[2] * 3] * 2
    made.sum().backward()
    assert value.grad.item() == 6
    assert x.grad.tolist() == [[0] * 3] * 2
    assert cd.fill(cd.ones(2, dtype=cd.int64), 3.5).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="only supports 0-dimension value tensor but got tensor with 1 dimensions"):
        cd.fill(cd.ones(2), cd.ones(1))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_content_is_overwritten_in_every_dtype(dtype: str) -> None:
    """``zero_`` and ``fill_``, functions and methods, contiguous or not; copies cast."""
    x = cd.ones(3, 2, dtype=getattr(cd, dtype))
    assert cd.fill_(x[:, 1], 0) is not x
    assert x.tolist() == [[1, 0]] * 3
    assert cd.zero_(x) is x
    assert x.tolist() == [[0, 0]] * 3
    x.t().copy_(cd.ones(2, 3))
    assert x.tolist() == [[1, 1]] * 3
    x.copy_(cd.zeros(1, dtype=cd.int32))
    assert not x.any()
    assert type(x[0, 0].item()) is {"bool": bool, "uint8": int, "int64": int, "complex64": complex}.get(dtype, float)


# -- arguments that all factories take --------------------------------------------------------------------------------
FACTORIES: dict[str, tuple[Any, ...]] = {
    "zeros": (2,), "ones": (2,), "full": ((2,), 3), "arange": (2,), "linspace": (0, 1, 2), "logspace": (0, 1, 2),
    "range": (0, 1), "rand": (2,), "randn": (2,), "randint": (3, (2,)), "randperm": (2,), "empty": (2,),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_write_into_out(name: str) -> None:
    """It gives the dtype, is resized, and must agree with a dtype that is given."""
    make, arguments = getattr(cd, name), FACTORIES[name]
    out = cd.empty(0, dtype=cd.float64)
    assert make(*arguments, out=out) is out
    assert out.shape == (2,)
    with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
        make(*arguments, out=out, dtype=cd.int32)
    made = make(*arguments, layout=cd.strided, pin_memory=False, device="cpu", dtype=cd.float32, requires_grad=True)
    assert made.requires_grad
    assert made.is_leaf


@pytest.mark.parametrize("device", ["lantern", "ember"])
def test_devices_without_float64_have_scales_and_reshapes(device: str, lantern: Any) -> None:
    """Exponents are computed in the widest dtype there is, and what is copied lies in C order."""
    assert np.allclose(cd.logspace(0, 2, 3, device=device).tolist(), [1, 10, 100])
    assert cd.arange(6).reshape(2, 3).to(device).t().reshape(6).tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("offset", [-4, -1, 0, 1, 5])
@pytest.mark.parametrize(("row", "col"), [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0)])
def test_the_operator_of_triangles_knows_its_size_and_has_a_body(row: int, col: int, offset: int, upper: bool) -> None:
    """What a device without a kernel computes has the shape that the rule says and the kernel's indices."""
    arguments = (row, col, offset, upper)
    made = triangle_indices(*arguments, dtype=cd.int64, device=cd.device("cpu"))
    body = triangle_indices.body(*arguments, dtype=cd.int64, device=cd.device("cpu"))
    assert made.tolist() == body.tolist()
    assert tuple(made.shape) == triangle_indices.rule(triangle_indices, arguments)

"""Every kernel of the CPU's table: a result shares memory with an argument if and only if the record says view.

Arguments are made from the records' schemas, so a new kernel is tested without being listed; only a kernel whose
arguments the schema does not determine (windows, index forms) says them in ``ARGUMENTS``, or in ``KERNEL_ARGUMENTS`` of
its family in tests/operators/samples.
"""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.device import open_device
from candelabra.operator.record import OPERATORS, Operator
from candelabra.operator.schema import REQUIRED

KERNELS = open_device().kernels
WHOLE, ROW = (slice(0, 4, 1), slice(0, 4, 1)), (slice(0, 2, 1), 1)
IMAGE = np.arange(32.0).reshape(1, 2, 4, 4)
PAIR = np.array([0, 2])
WINDOW: dict[str, Any] = {
    "input": IMAGE, "output": IMAGE, "weight": np.ones((2, 2, 1, 1)), "bias": np.ones(2), "shape": (1, 2, 4, 4),
    "window": (1, 1), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "places": (4, 4),
}  # fmt: skip
ARGUMENTS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("conv", "conv_input", "max_pool", "max_pool_values", "sum_pool", "sum_pool_adjoint"), WINDOW),
    "conv_weight": {**WINDOW, "shape": (2, 2, 1, 1)},
    "basic_index": {"index": ROW},
    "basic_index_adjoint": {"index": WHOLE},
    "basic_index_scatter": {"index": WHOLE},
    "index_add": {"index": PAIR, "source": np.ones((2, 4))},
    "index_put": {"indices": [PAIR, None], "values": np.ones((2, 4))},
    "index_select": {"index": PAIR},
    "normalize": {"weight": np.ones(4), "bias": np.ones(4), "dims": (1,)},
    "normalize_backward": {"mean": np.ones((4, 1)), "rstd": np.ones((4, 1)), "weight": np.ones(4), "dims": (1,)},
    "permute": {"dims": (1, 0)},
    "random_integers": {"dtype": cd.int64, "high": 5},
}
for path in sorted((Path(__file__).parents[1] / "operators" / "samples").glob("*.py")):
    family = importlib.import_module(f"tests.operators.samples.{path.stem}")
    ARGUMENTS.update(getattr(family, "KERNEL_ARGUMENTS", {}))
BY_KIND: dict[str, Any] = {
    "index": np.zeros((4, 4), np.int64), "mask": np.eye(4) > 0, "indices": [PAIR, None], "dim": 0, "dims": (0,),
    "shape": (4, 4), "device": 0,
}  # fmt: skip
BY_ANNOTATION: dict[str, Any] = {"int": 1, "bool": False, "float": 0.5, "Number": 2, "DType": cd.float64, "str": "none"}


def record_of(kernel: str) -> Operator[..., Any]:
    """The record that a kernel serves, in place or not."""
    return OPERATORS[kernel] if kernel in OPERATORS else OPERATORS[kernel.removesuffix("_")]


def argument(op: Operator[..., Any], p: Any, dtype: Any) -> Any:
    """A value for one parameter: the one that is said, or one of its kind."""
    said = ARGUMENTS.get(op.name, {})
    if p.name in said:
        value = said[p.name]
        return value.copy() if isinstance(value, np.ndarray) else value
    if p.kind in ("tensor", "operand", "optional"):
        ramp = np.arange(1, 17).reshape(4, 4)
        return (ramp if np.dtype(dtype).kind in "biu" else ramp / 16).astype(dtype)
    if p.kind == "list":
        return [np.ones((4, 4), dtype), np.ones((4, 4), dtype)]
    if p.kind in BY_KIND:
        return BY_KIND[p.kind]
    if p.default is not REQUIRED:
        return p.default
    return BY_ANNOTATION[p.annotation]


def arrays(value: Any) -> Iterator[np.ndarray]:
    """The arrays in an argument or a result."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from arrays(part)


def called(kernel: str, dtype: Any) -> tuple[list[Any], Any, list[np.ndarray]]:
    """(arguments, result, copies of the arrays among the arguments from before the call)."""
    op = record_of(kernel)
    arguments = [argument(op, p, dtype) for p in op.schema.parameters]
    before = [a.copy() for a in arrays(arguments)]
    return arguments, KERNELS[kernel](*arguments), before


def check(kernel: str, dtype: Any) -> None:
    """Results are arrays; they alias as the record says; arguments are as they were, but for what is written."""
    arguments, result, before = called(kernel, dtype)
    given = list(arrays(arguments))
    written = kernel not in OPERATORS
    results = list(arrays(result))
    assert results or written, f"{kernel} returned {type(result).__name__}, not an array"
    for a, b in list(zip(given, before, strict=True))[written:]:
        np.testing.assert_array_equal(a, b)
    for out in () if written else results:
        shared = any(np.shares_memory(out, a) for a in given)
        assert shared == record_of(kernel).view, f"{kernel} {'shares' if shared else 'does not share'} memory"


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_a_result_shares_memory_only_where_the_record_says_view(kernel: str) -> None:
    """Whatever a kernel returns is new memory, but for views; and it changes none of its arguments."""
    accepts = record_of(kernel).accepts
    check(kernel, {"integral": np.int64, "integer": np.int64, "complex": np.complex128}.get(accepts or "", np.float64))


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float32], ids=["int64", "bool", "float32"])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_same_for_other_dtypes(kernel: str, dtype: Any) -> None:
    """Where a function has nothing to do (rounding integers, casting to what is already there) it copies, too."""
    try:
        called(kernel, dtype)
    except Exception:
        return  # not a dtype of this kernel; that every kernel runs for one is the test above
    check(kernel, dtype)


def test_no_kernel_without_a_record() -> None:
    """Every name in the table is an operator's, or one's in-place form."""
    assert [k for k in KERNELS if k not in OPERATORS and k.removesuffix("_") not in OPERATORS] == []

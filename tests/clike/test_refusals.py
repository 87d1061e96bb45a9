"""Errors of kernels that are called without the core, which checks arguments first.

The core replaces such an error by the operator's own. A direct caller of the kernels gets these.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.library import open_device
from candelabra_clike import StridedArray, kernels, tables
from candelabra_clike.device_errors import REASONS
from candelabra_clike.language import refuse
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.elementwise import loops
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_opencl.backend import OpenCLBackend

Array = Callable[..., StridedArray]
Table = dict[str, Any]


@pytest.fixture(scope="module")
def array() -> Array:
    """Return a function that creates arrays on the first OpenCL device."""
    backend = open_device(cd.device("opencl", 0)).backend
    assert isinstance(backend, OpenCLBackend)
    engine = backend.engine(0)
    return lambda *shape, d=cd.float32: engine.empty(shape, d)


@pytest.fixture(scope="module")
def table(array: Array) -> Table:
    """Return every kernel by its operator."""
    return dict(kernels.table(lambda index: array().engine))


REFUSED: dict[str, tuple[Callable[[Table, Array], object], type[Exception], str]] = {
    "cat": (lambda t, a: t["cat"]([a(2, 3), a(2, 4)], 0), ValueError, r"cat\(\) expects equal sizes except along dim"),
    "mean": (
        lambda t, a: t["mean"](a(3), None, False, cd.int64), ValueError,
        r"mean\(\) expects a floating or complex dtype",
    ),
    "nansum": (
        lambda t, a: t["nansum"](a(3), None, False, cd.complex64), TypeError,
        r"nansum\(\) expects a real dtype, got",
    ),
    "nanmean": (
        lambda t, a: t["nanmean"](a(3), None, False, cd.int64), TypeError,
        r"nanmean\(\) expects a floating dtype, got",
    ),
    "softmax": (lambda t, a: t["softmax"](a(3, d=cd.int64), 0), TypeError, r"not implemented for candelabra\.int64"),
    "topk": (lambda t, a: t["topk"](a(3), 4, 0, True, True), ValueError, r"topk\(\) expects k in 0 to"),
    "searchsorted": (
        lambda t, a: t["sorted_place"](a(2, 3), a(3, 3), False), ValueError, "batches of shapes .* do not match",
    ),
    "gather": (
        lambda t, a: t["gather"](a(2, 3), 0, a(2, 4, d=cd.int64)), ValueError, "does not fit an input of shape",
    ),
    "index_select": (
        lambda t, a: t["index_select"](a(2), 0, a(2, 2, d=cd.int64)), ValueError,
        r"the index must be a vector \(of one element for a 0-d input\)",
    ),
    "embedding": (
        lambda t, a: t["embedding"](a(2), a(2, d=cd.int64), -1, False), ValueError,
        r"embedding\(\) expects a weight with 2 dims, got 1",
    ),
    "gather from nothing": (
        lambda t, a: t["gather"](a(0), 0, a(2, d=cd.int64)), IndexError, "index out of bounds: an indexed dim is empty",
    ),
    "scatter": (
        lambda t, a: t["scatter_src"](a(4), 0, a(3, d=cd.int64), a(2)), ValueError, "is larger than the source",
    ),
    "scatter to nothing": (
        lambda t, a: t["scatter_src"](a(0), 0, a(2, d=cd.int64), a(2)), IndexError,
        "index out of bounds: an indexed dim is empty",
    ),
    "index_add": (
        lambda t, a: t["index_add"](a(4), 0, a(3, d=cd.int64), a(2)), ValueError,
        r"a source of shape \(2,\) does not fit an",
    ),
    "index_put": (
        lambda t, a: t["index_put"](a(4), [a(3, d=cd.int64)], a(2, 3), False), ValueError,
        "values of shape .* do not broadcast to the indexed shape",
    ),
    "matmul": (lambda t, a: t["matmul"](a(2, 3), a(2, 3)), RuntimeError, r"shapes \(2, 3\) and \(2, 3\) do not match"),
    "convolution": (
        lambda t, a: t["conv"](a(1, 2, 5), a(1, 3, 3), None, (1,), (0,), (1,), 1), RuntimeError,
        r"shapes \(1, 2, 5\) and \(1, 3, 3\) do not match",
    ),
    "convolution with a large kernel": (
        lambda t, a: t["conv"](a(1, 2, 5), a(1, 2, 6), None, (1,), (0,), (1,), 1), RuntimeError,
        r"the kernel \(1, 2, 6\) is larger than the padded input \(1, 2, 5\)",
    ),
    "gradient of a convolution's input": (
        lambda t, a: t["conv_input"](a(1, 2, 3), a(1, 2, 3), (1, 2, 5), (1,), (0,), (1,), 1), RuntimeError,
        r"shapes \(1, 2, 3\), \(1, 2, 3\) and \(1, 2, 5\) do not match",
    ),
    "gradient of a convolution's weight": (
        lambda t, a: t["conv_weight"](a(1, 2, 5), a(1, 2, 3), (1, 2, 3), (1,), (0,), (1,), 1), RuntimeError,
        r"shapes \(1, 2, 5\), \(1, 2, 3\) and \(1, 2, 3\) do not match",
    ),
    "normalize": (
        lambda t, a: t["normalize"](a(3), a(2, 3), None, (0,), 1e-5), RuntimeError,
        r"normalize: weight and bias are larger than \(3,\)",
    ),
    "tril": (lambda t, a: t["tril"](a(3), 0), ValueError, "a triangle needs at least 2 dims, got shape"),
    "argmax": (
        lambda t, a: t["argmax"](a(0), None, False), IndexError,
        "argmax_float32: expected at least one element along the reduced dims",
    ),
    "amax": (
        lambda t, a: t["amax"](a(3, 0), (1,), False), IndexError,
        "amax_float32: expected at least one element along the reduced dims",
    ),
    "amin of nothing for no result": (
        lambda t, a: t["amin"](a(0, 0), (1,), False), IndexError,
        "amin_float32: expected at least one element along the reduced dims",
    ),
    "view_as_complex": (
        lambda t, a: t["view_as_complex"](a(3)), ValueError, "view_as_complex: expected pairs of float32",
    ),
    "view_as_complex of a part": (
        lambda t, a: t["view_as_complex"](a(9).restrided((2, 2), (3, 1), 0)), ValueError,
        r"view_as_complex: expected even strides, so that pairs are aligned, got \(3, 1\)",
    ),
    "an expression": (
        lambda t, a: t["bitwise_and"](a(3), a(3)), TypeError, "bitwise_and: not implemented for",
    ),
    "power": (
        lambda t, a: t["pow"](a(3, d=cd.int64), -1), RuntimeError, "Integers to negative integer powers",
    ),
    "a step in integers": (
        lambda t, a: t["sgd_step_"]([a(3, d=cd.int64)], [a(3, d=cd.int64)], 0.1, 0.0, False), TypeError,
        "fused optimizer steps support float32 and float64, got",
    ),
    "a step with another's gradient": (
        lambda t, a: t["sgd_step_"]([a(3), a(3)], [a(3), a(4)], 0.1, 0.0, False), RuntimeError,
        "expected arrays of one shape per parameter, got",
    ),
    "losses": (
        lambda t, a: t["class_losses"](a(2, 3), a(3, d=cd.int64), -100), RuntimeError,
        r"class_losses: expected targets of shape \(2,\), got \(3,\)",
    ),
    "losses with other weights": (
        lambda t, a: t["weighted_class_losses"](a(2, 3), a(2, d=cd.int64), a(1), -100), RuntimeError,
        r"weighted_class_losses: expected 3 weights, got an array of shape \(1,\)",
    ),
    "bags": (
        lambda t, a: t["bag_sums"](a(2, 3), a(3, d=cd.int64), a(1, d=cd.int64), a(2), False, False), RuntimeError,
        "bags are a matrix, vectors of indices and starts, and a scale for each index",
    ),
    "the gradient of maxima": (
        lambda t, a: t["bag_maxima_backward"](a(2, 3), a(2, 4, d=cd.int64), 5), RuntimeError,
        r"the gradient and the rows of maxima are matrices, got \(2, 3\) and \(2, 4\)",
    ),
    "the gradient of bags": (
        lambda t, a: t["bag_dots"](a(2, 3), a(4, 3), a(3, d=cd.int64), a(1, d=cd.int64), False), RuntimeError,
        r"the gradient of bags has shape \(1, 3\), got \(2, 3\)",
    ),
    "shapes": (lambda t, a: broadcast([(2,), (3,)]), RuntimeError, r"shapes \(2,\), \(3,\) do not broadcast"),
    "a result": (
        lambda t, a: Elementwise.of("copy", lambda a: a, (cd.float32,), cd.float32)(a(2, 3), out=a(3)), RuntimeError,
        r"copy: a result of shape \(2, 3\) does not fit into \(3,\)",
    ),
}  # fmt: skip
"""A call, its error and the text."""


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_do_not_fit_are_refused(case: str, table: Table, array: Array) -> None:
    """No kernel is launched, and the error names the argument."""
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call(table, array)


def test_an_index_that_is_not_current_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that the index lacks would never serve, and one that the module lacks would fail at its first call."""
    monkeypatch.setitem(
        tables.KERNELS, "bags", "bag_sums bag_maxima bag_sums_backward bag_dots bag_maxima_backward flicker"
    )
    tables.loaded.cache_clear()
    with pytest.raises(
        tables.StaleKernelIndex, match=r"not current: 'flicker' is in only one of it and .*kernels\.bags"
    ):
        tables.kernel("bag_sums", None)
    tables.loaded.cache_clear()


def test_a_missing_index_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout has no index before ``make index``."""
    monkeypatch.delitem(sys.modules, "candelabra_clike.tables")
    monkeypatch.setitem(sys.modules, "candelabra_clike._index", None)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "candelabra_clike._index.tables")
    with pytest.raises(ImportError, match="candelabra_clike/_index, is missing: in a checkout run `make index`"):
        importlib.import_module("candelabra_clike.tables")


@pytest.mark.parametrize("folder", ["kernels", "expressions"])
def test_the_index_has_every_module_and_its_keys(folder: str) -> None:
    """Each module is loaded, which compares its tables with the index."""
    package = importlib.import_module(f"candelabra_clike.{folder}")
    modules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    assert modules == set(getattr(tables, folder.upper()))
    for module in modules:
        tables.loaded(folder, module)


# -- values that kernels refuse ---------------------------------------------------------------------------------------
@pytest.fixture
def two_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a second reason for a refusal in addition to division by zero."""
    monkeypatch.setitem(REASONS, "NEGATIVE_SHIFT", (RuntimeError, "expected a shift count >= 0"))


@pytest.mark.usefixtures("two_reasons")
@pytest.mark.parametrize(
    ("operands", "error", "text"),
    [
        ((1, 0), ZeroDivisionError, r"^opencl:0: 'shifted' failed: ZeroDivisionError: integer division or modulo by"),
        ((1, -3), RuntimeError, r"^opencl:0: 'shifted' failed: expected a shift count >= 0$"),
    ],
)
def test_an_expression_names_the_reason_of_a_refusal(
    operands: tuple[int, int], error: type[Exception], text: str
) -> None:
    """The next synchronisation raises the error of the reason, with the device and the operator."""
    a, b = loops.operands((cd.int32, cd.int32))
    value = refuse(b == 0, "DIVISION_BY_ZERO", refuse(b < 0, "NEGATIVE_SHIFT", a << (b & 7)))
    kernel = Elementwise("shifted_int32", value, (cd.int32, cd.int32), cd.int32, operator="shifted")
    x, y = (cd.tensor([n], dtype=cd.int32, device="opencl") for n in operands)
    kernel(x._payload, y._payload)
    with pytest.raises(error, match=text):
        cd.accelerator.synchronize("opencl")
    kernel(x._payload, x._payload)
    cd.accelerator.synchronize("opencl")


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_an_integer_division_by_zero_names_device_and_operator(name: str) -> None:
    """The error is raised after the call, so its text names the device and the operator."""
    x, zero = (cd.tensor(values, device="opencl") for values in ([1, 2], [1, 0]))
    with pytest.raises(ZeroDivisionError, match=f"^opencl:0: '{name}' failed: ZeroDivisionError: integer division or"):
        getattr(cd, name)(x, zero).tolist()

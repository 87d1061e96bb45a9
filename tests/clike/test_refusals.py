"""What kernels refuse when they are called past the core, which checks arguments first.

The core turns such an error into the operator's own words. Whoever calls the kernels himself sees these.
"""

import types
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.library import open_device
from candelabra_clike import StridedArray, expressions, kernels
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_opencl.backend import OpenCLBackend

Array = Callable[..., StridedArray]
Table = dict[str, Any]


@pytest.fixture(scope="module")
def array() -> Array:
    """Makes arrays of shapes on the first OpenCL device."""
    backend = open_device(cd.device("opencl", 0)).backend
    assert isinstance(backend, OpenCLBackend)
    engine = backend.engine(0)
    return lambda *shape, d=cd.float32: engine.empty(shape, d)


@pytest.fixture(scope="module")
def table(array: Array) -> Table:
    """Every kernel by its operator."""
    return dict(kernels.table(lambda index: array().engine))


REFUSED: dict[str, tuple[Callable[[Table, Array], object], type[Exception], str]] = {
    "cat": (lambda t, a: t["cat"]([a(2, 3), a(2, 4)], 0), ValueError, "the tensors do not fit together"),
    "mean": (lambda t, a: t["mean"](a(3), None, False, cd.int64), ValueError, "means have floating dtypes"),
    "nansum": (lambda t, a: t["nansum"](a(3), None, False, cd.complex64), TypeError, "nansum: no sums in"),
    "nanmean": (lambda t, a: t["nanmean"](a(3), None, False, cd.int64), TypeError, "nanmean: no means in"),
    "softmax": (lambda t, a: t["softmax"](a(3, d=cd.int64), 0), TypeError, r"no kernel for candelabra\.int64"),
    "topk": (lambda t, a: t["topk"](a(3), 4, 0, True, True), ValueError, "there are not so many elements"),
    "searchsorted": (
        lambda t, a: t["sorted_place"](a(2, 3), a(3, 3), False), ValueError, "the rows do not fit",
    ),
    "gather": (
        lambda t, a: t["gather"](a(2, 3), 0, a(2, 4, d=cd.int64)), ValueError, "the index is larger than the array, or",
    ),
    "index_select": (
        lambda t, a: t["index_select"](a(2), 0, a(2, 2, d=cd.int64)), ValueError, "the index must be a vector, of one",
    ),
    "embedding": (
        lambda t, a: t["embedding"](a(2), a(2, d=cd.int64), -1, False), ValueError, "the weight must be a matrix",
    ),
    "gather from nothing": (
        lambda t, a: t["gather"](a(0), 0, a(2, d=cd.int64)), IndexError, "a dim has no elements to be picked",
    ),
    "scatter": (
        lambda t, a: t["scatter_src"](a(4), 0, a(3, d=cd.int64), a(2)), ValueError, "is larger than the source",
    ),
    "scatter to nothing": (
        lambda t, a: t["scatter_src"](a(0), 0, a(2, d=cd.int64), a(2)), IndexError, "no elements to be written to",
    ),
    "index_add": (
        lambda t, a: t["index_add"](a(4), 0, a(3, d=cd.int64), a(2)), ValueError, "the source does not fit",
    ),
    "index_put": (
        lambda t, a: t["index_put"](a(4), [a(3, d=cd.int64)], a(2, 3), False), ValueError, "the values do not fit",
    ),
    "matmul": (lambda t, a: t["matmul"](a(2, 3), a(2, 3)), RuntimeError, r"shapes \(2, 3\) and \(2, 3\) do not fit"),
    "convolution": (
        lambda t, a: t["conv"](a(1, 2, 5), a(1, 3, 3), None, (1,), (0,), (1,), 1), RuntimeError,
        r"shapes \(1, 2, 5\) and \(1, 3, 3\) do not fit",
    ),
    "convolution with a large kernel": (
        lambda t, a: t["conv"](a(1, 2, 5), a(1, 2, 6), None, (1,), (0,), (1,), 1), RuntimeError,
        r"the kernel \(1, 2, 6\) is larger than \(1, 2, 5\)",
    ),
    "gradient of a convolution's input": (
        lambda t, a: t["conv_input"](a(1, 2, 3), a(1, 2, 3), (1, 2, 5), (1,), (0,), (1,), 1), RuntimeError,
        r"shapes \(1, 2, 3\), \(1, 2, 3\) and \(1, 2, 5\) do not fit",
    ),
    "gradient of a convolution's weight": (
        lambda t, a: t["conv_weight"](a(1, 2, 5), a(1, 2, 3), (1, 2, 3), (1,), (0,), (1,), 1), RuntimeError,
        r"shapes \(1, 2, 5\), \(1, 2, 3\) and \(1, 2, 3\) do not fit",
    ),
    "normalize": (
        lambda t, a: t["normalize"](a(3), a(2, 3), None, (0,), 1e-5), RuntimeError,
        r"normalize: weight and bias are larger than \(3,\)",
    ),
    "tril": (lambda t, a: t["tril"](a(3), 0), ValueError, "a triangle takes two dims"),
    "argmax": (
        lambda t, a: t["argmax"](a(0), None, False), IndexError, "argmax_float32: of no elements there is no extreme",
    ),
    "amax": (
        lambda t, a: t["amax"](a(3, 0), (1,), False), IndexError, "amax_float32: of no elements there is no extreme",
    ),
    "amin of nothing for no result": (
        lambda t, a: t["amin"](a(0, 0), (1,), False), IndexError, "amin_float32: of no elements there is no extreme",
    ),
    "view_as_complex": (
        lambda t, a: t["view_as_complex"](a(3)), ValueError, "view_as_complex: expected pairs of float32",
    ),
    "view_as_complex of a part": (
        lambda t, a: t["view_as_complex"](a(9).restrided((2, 2), (3, 1), 0)), ValueError,
        r"view_as_complex: pairs have to begin at even places, got strides \(3, 1\)",
    ),
    "an expression": (
        lambda t, a: t["bitwise_and"](a(3), a(3)), TypeError, "bitwise_and: there is no expression for",
    ),
    "power": (
        lambda t, a: t["pow"](a(3, d=cd.int64), -1), RuntimeError, "Integers to negative integer powers",
    ),
    "a step in integers": (
        lambda t, a: t["sgd_step_"]([a(3, d=cd.int64)], [a(3, d=cd.int64)], 0.1, 0.0, False), TypeError,
        "there is no fused step for",
    ),
    "a step with another's gradient": (
        lambda t, a: t["sgd_step_"]([a(3), a(3)], [a(3), a(4)], 0.1, 0.0, False), RuntimeError, "shapes differ",
    ),
    "losses": (
        lambda t, a: t["class_losses"](a(2, 3), a(3, d=cd.int64), -100), RuntimeError,
        r"targets of shape \(3,\) where \(2,\) is expected",
    ),
    "shapes": (lambda t, a: broadcast([(2,), (3,)]), RuntimeError, r"shapes \(2,\), \(3,\) do not broadcast"),
    "a result": (
        lambda t, a: Elementwise("copy", "{a}", (cd.float32,), cd.float32)(a(2, 3), out=a(3)), RuntimeError,
        r"copy: a result of shape \(2, 3\) does not fit into \(3,\)",
    ),
}  # fmt: skip
"""A call, its error and the words."""


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_do_not_fit_are_refused(case: str, table: Table, array: Array) -> None:
    """Nothing is launched on them: each kernel says what it cannot do."""
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call(table, array)


@pytest.fixture
def second_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two modules of one content wherever modules are looked for."""
    one = types.SimpleNamespace(KERNELS={"twin": print}, EXPRESSIONS={"twin": "{a}"})
    for package in (kernels, expressions):
        infos = [types.SimpleNamespace(name="first"), types.SimpleNamespace(name="second")]
        monkeypatch.setattr(package, "iter_modules", lambda *_, infos=infos: infos)
        monkeypatch.setattr(package, "import_module", lambda name: one)


@pytest.mark.usefixtures("second_of_all")
def test_what_is_there_twice_is_refused() -> None:
    """A kernel or an expression in two modules would hide one of them."""
    with pytest.raises(TypeError, match="kernel 'twin' is in first and in second: one of them has to go"):
        kernels.table(lambda index: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="expressions: 'twin' is there twice, the second time in second"):
        expressions._joined()

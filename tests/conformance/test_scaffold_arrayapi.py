"""The package that ``candelabra new-backend --arrayapi`` writes, over NumPy as a namespace with immutable arrays."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._cli.main import main
from candelabra.dtypes import ALL, float32, float64, int64
from candelabra.errors import FallbackWarning, OutOfMemoryError
from candelabra.library import plugins
from candelabra_conformance.causes import declined
from candelabra_conformance.model import FLUSHED
from candelabra_conformance.report import read_json, tally
from candelabra_conformance.running import Options, run
from candelabra_conformance.running.sources import changed_since
from candelabra_conformance.scaffold import InvalidName, write, write_backend

from tests.conformance.generated import installed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a package and return its folder."""
    return write_backend("quartz", tmp_path_factory.mktemp("vendor"), namespace="numpy")


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[Any]:
    """Install the generated backend in this process, and return its module."""
    with installed(folder) as made:
        yield sys.modules[type(made).__module__]


@pytest.fixture(autouse=True)
def _fallbacks_are_expected() -> Iterator[None]:
    """Silence the warnings of fallbacks, such as those of the random operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield


def test_the_package_is_complete(folder: Path) -> None:
    """It has the files of its kind and requires the general kernels, and no placeholder is left."""
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert files == {path.replace("acme", "quartz") for path in write.OVER_NAMESPACE.values()}
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    names = [requirement.partition(">=")[0] for requirement in project["dependencies"]]
    assert names == ["candelabra", "candelabra-arrayapi", "numpy"]
    for path in folder.rglob("*"):
        text = path.read_text() if path.is_file() and path.suffix != ".pyc" else ""
        assert "@namespace@" not in text
        assert "acme" not in text.replace('"add": acme.add', "")


def test_the_namespace_is_imported_and_its_distribution_required(tmp_path: Path) -> None:
    """The distribution that contains the module is required, or one of the module's name if it is not installed."""
    made = write_backend("quartz", tmp_path, namespace="unheard_of.numpy")
    text = (made / "src/candelabra_quartz/kernels.py").read_text()
    assert "import unheard_of.numpy as xp" in text
    assert "unheard_of" in tomllib.loads((made / "pyproject.toml").read_text())["project"]["dependencies"]


@pytest.mark.parametrize("namespace", ["jax-numpy", "", "jax..numpy", "3d", "lambda.xp"])
def test_a_namespace_that_cannot_be_a_module_is_refused(namespace: str, tmp_path: Path) -> None:
    """The error says what it has to be, and nothing is written."""
    with pytest.raises(InvalidName, match="cannot be a namespace: it has to be the name of a module, such as jax"):
        write_backend("quartz", tmp_path, namespace=namespace)
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_either_kind(tmp_path: Path) -> None:
    """--arrayapi takes NumPy as a placeholder, --namespace implies it, and without both the package is strided."""
    for name, options, words in [
        ("one", ["--arrayapi"], "import numpy as xp"),
        ("two", ["--namespace", "jax.numpy"], "import jax.numpy as xp"),
        ("three", [], "bytearray"),
    ]:
        assert write.main([name, "--directory", str(tmp_path), *options]) == 0
        texts = [path.read_text() for path in (tmp_path / f"candelabra-{name}").rglob("*.py")]
        assert any(words in text for text in texts)


def test_every_dtype_that_numpy_has_goes_there_and_back(backend: Any) -> None:
    """The device stores all dtypes but bfloat16, which needs another package, also if that one is imported."""
    assert "ml_dtypes" in sys.modules
    assert {d.name for d in ALL} - {d.name for d in backend.DTYPES} == {"bfloat16"}
    for d in backend.DTYPES:
        values = cd.tensor([[0, 1, 1], [1, 0, 1]]).to(d)
        assert values.to("quartz:0").t().cpu().tolist() == values.t().tolist()


def test_writes_change_views_and_gradients_are_right(backend: Any) -> None:
    """An in-place write replaces the array of the base, of which views are computed again."""
    x = cd.arange(6.0, device="quartz").reshape(2, 3)
    part = x[:, 1:]
    part.mul_(10)
    assert x.tolist() == [[0.0, 10.0, 20.0], [3.0, 40.0, 50.0]]
    w = cd.ones(3, device="quartz", requires_grad=True)
    (x @ w)[0].backward()
    assert w.grad is not None
    assert w.grad.tolist() == [0.0, 10.0, 20.0]


def test_views_that_change_the_dtype_preserve_bits(backend: Any) -> None:
    """Complex numbers as pairs and back, and bytes as another dtype."""
    z = cd.tensor([1 + 2j, complex("inf-nanj")], device="quartz")
    assert repr(cd.view_as_complex(cd.view_as_real(z)).tolist()) == repr(z.tolist())
    assert cd.tensor([1.0], device="quartz").view(cd.int32).tolist() == [0x3F800000]
    with pytest.raises(RuntimeError, match="must have a last dimension of size 2"):
        cd.view_as_complex(cd.zeros(3, device="quartz"))


def test_no_room_is_the_typed_error(backend: Any) -> None:
    """More bytes than the machine can address raise an error with the shape."""
    with pytest.raises(
        OutOfMemoryError, match=r"quartz is out of memory: tried to allocate \[1125899906842624, 4096\]"
    ):
        cd.empty(2**50, 4096, device="quartz:0")


def test_errors_in_kernels_are_listed_and_not_hidden(backend: Any) -> None:
    """A TypeError in the vendor's own kernel declines the call, and the report has its text; the others stay native."""
    kernels = importlib.import_module("candelabra_quartz.kernels")

    class Faulty(type(backend.QuartzBackend())):  # type: ignore[misc]
        name = "faulty"

    kernels.OWN["tanh"] = lambda x: len(3)
    remove = plugins.add_backend(Faulty())
    try:
        patterns = ("tanh/value/float32/contiguous", "sin/value/float32/contiguous")
        done = run("faulty:0", Options(level=1, operators=("tanh", "sin"), patterns=patterns))
    finally:
        kernels.OWN.clear()
        remove()
    assert {r.case.operator: r.route for r in done.results} == {"tanh": "fallback", "sin": "native"}
    assert declined(done.results) == ["tanh in float32: TypeError: object of type 'int' has no len()"]
    assert [kernel.state for kernel in done.next_kernels] == ["declines"]


def test_own_kernels_are_adapted_in_each_dtype(backend: Any) -> None:
    """What ``adapted`` does for all kernels holds for the function that ``for_dtype`` returns, too."""
    adapted = importlib.import_module("candelabra_quartz.kernels").adapted

    def kernel(x: Any) -> Any:
        raise AssertionError("called without a dtype")

    kernel.for_dtype = {float32: lambda x: [x, x], float64: lambda x: len(3)}.get  # type: ignore[attr-defined]
    made = adapted(kernel)
    assert made.for_dtype(float32)(1) == (1, 1)
    assert made.for_dtype(float64)(1) is NotImplemented
    assert made.for_dtype(int64) is None


def test_a_family_of_each_kind_conforms(backend: Any) -> None:
    """Values, in-place writes and gradients of a few operators pass as generated."""
    operators = ("add", "sum", "index_put", "sort", "diagonal", "view_as_complex")
    patterns = ("*/value/float32/contiguous", "*/inplace/float32/*", "*/gradient/float64/contiguous")
    done = run("quartz:0", Options(level=2, operators=operators, patterns=patterns))
    assert done.green, [(r.case.id, r.message) for r in done.results if r.verdict == "failed"]
    assert {r.route for r in done.results if r.case.property == "value"} == {"native"}


QUILL = '''
"""A library whose arrays have lists as shapes, and operators only for what it computes itself."""

import operator
import types
from typing import Any

import numpy as np


class Tensor:
    __hash__ = None

    def __init__(self, numbers): self.numbers = np.asarray(numbers)

    shape = property(lambda self: list(self.numbers.shape))
    dtype = property(lambda self: self.numbers.dtype)

    def __array__(self, dtype=None, copy=None): return np.asarray(self.numbers, dtype)
    def __getitem__(self, index): return Tensor(self.numbers[index])


def numbers(value):
    if type(value) in (list, tuple):
        return type(value)(map(numbers, value))
    return value.numbers if isinstance(value, Tensor) else value


def tensors(value):
    if isinstance(value, np.ndarray | np.generic):
        return Tensor(value)
    return tuple(map(tensors, value)) if isinstance(value, list | tuple) else value


def lifted(function):
    def run(*arguments, **options):
        assert not any(type(each).__name__ == "Array" for each in arguments), "the library knows only its own arrays"
        return tensors(function(*map(numbers, arguments), **{name: numbers(v) for name, v in options.items()}))

    return run


for name in "add sub mul truediv floordiv mod pow and or xor eq ne lt le gt ge neg abs invert matmul".split():
    setattr(Tensor, f"__{name}__", lifted(getattr(operator, f"__{name}__")))
for name in "add sub mul truediv floordiv mod pow and or xor".split():
    forward = getattr(operator, f"__{name}__")
    setattr(Tensor, f"__r{name}__", lifted(lambda x, y, forward=forward: forward(y, x)))


def __getattr__(name):
    found = getattr(np, name)
    if name in ("linalg", "fft"):
        made = types.ModuleType(name)
        made.__dict__.update({key: lifted(f) for key, f in vars(found).items() if callable(f)})
        return made
    return lifted(found) if callable(found) and not isinstance(found, type) else found
'''


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Install a package around a library whose arrays the core cannot read, and return its backend."""
    directory = tmp_path_factory.mktemp("wrapped")
    (directory / "quill.py").write_text(QUILL)
    sys.path.insert(0, str(directory))
    try:
        with installed(write_backend("basalt", directory, namespace="quill", wrapped=True)) as made:
            yield made
    finally:
        sys.path.remove(str(directory))
        del sys.modules["quill"]


def test_foreign_arrays_compute_in_the_class_of_a_wrapped_package(wrapped: Any) -> None:
    """Views, index arrays, in-place writes, gradients and a factorization work, with kernels of the device."""
    x = cd.arange(6.0, device="basalt").reshape(2, 3)
    assert type(x._payload).__name__ == "Array"
    assert type(x._payload.held).__module__ == "quill"
    x[:, 1:].mul_(10)
    assert (1 - x[[1, -1]]).tolist() == [[-2.0, -39.0, -49.0]] * 2
    weight = cd.ones(3, device="basalt", requires_grad=True)
    (x @ weight)[0].backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [0.0, 10.0, 20.0]
    assert cd.linalg.qr(cd.eye(2, device="basalt"))[1].abs().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    operators = ("add", "sum", "index_put", "sort", "diagonal", "view_as_complex", "scatter_add", "max_pool", "svd")
    patterns = ("*/value/float32/contiguous", "*/errors/*", "*/gradient/float64/contiguous")
    done = run("basalt:0", Options(level=2, operators=operators, patterns=patterns))
    assert done.green, [(r.case.id, r.message) for r in done.results if r.verdict == "failed"]
    assert declined(done.results) == []


def test_kernels_use_only_what_the_class_defines(wrapped: Any) -> None:
    """An Array has no ``__len__``, ``__index__``, ``__float__`` or ``__setitem__``, as the page says."""
    cls = sys.modules["candelabra_basalt.namespace"].Array
    for name in ("__len__", "__index__", "__float__", "__iter__", "__setitem__", "__lshift__", "__rmatmul__"):
        assert not hasattr(cls, name)
    assert wrapped.devices()[0].name == "arrays of candelabra_basalt.namespace"
    with pytest.raises(AttributeError, match="__wrapped__"):
        sys.modules["candelabra_basalt.namespace"].__wrapped__  # noqa: B018


def test_a_wrapped_package_lists_its_module(tmp_path: Path) -> None:
    """The command writes the module, the files that compute import it, and the README has a row for it."""
    assert write.main(["one", "--directory", str(tmp_path), "--wrapped"]) == 0
    folder = tmp_path / "candelabra-one"
    assert "import numpy as library" in (folder / "src/candelabra_one/namespace.py").read_text()
    for name in ("kernels.py", "backend.py"):
        assert "import candelabra_one.namespace as xp" in (folder / "src/candelabra_one" / name).read_text()
    assert "| `src/candelabra_one/namespace.py` |" in (folder / "README.md").read_text()


def test_bfloat16_is_carried_by_three_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit that docs/your-array-library.md describes stores, copies and computes bfloat16."""
    (tmp_path / "quillpen.py").write_text("from numpy import *\nfrom ml_dtypes import bfloat16\n\nisdtype = None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = write_backend("gneiss", tmp_path, namespace="quillpen")
    file = folder / "src/candelabra_gneiss/backend.py"
    text = file.read_text().replace("import numpy as np\n", "import ml_dtypes\nimport numpy as np\n")
    file.write_text(text.replace("HOST_LACKS: set[dtype] = {bfloat16}", "HOST_LACKS: set[dtype] = set()"))
    with installed(folder):
        x = cd.tensor([1.5, -2.0, 3e38], dtype=cd.bfloat16, device="gneiss")
        assert (x + 1).cpu().tolist() == [2.5, -1.0, x.tolist()[2]]
        assert x.view(cd.int16).view(cd.bfloat16).tolist() == x.tolist()


@pytest.mark.parametrize("error", [NotImplementedError, ValueError])
def test_a_declined_wrong_call_raises_the_error_that_is_due(backend: Any, error: type[Exception]) -> None:
    """A kernel that declines wrong shapes or an index out of bounds hides nothing: the reference device names them."""
    kernels = importlib.import_module("candelabra_quartz.kernels")

    def refuse(*arguments: Any) -> Any:
        raise error("wrong")

    kernels.OWN.update(dict.fromkeys(("matmul", "cat", "index_select"), refuse))
    declining = type("Declining", (type(backend.QuartzBackend()),), {"name": "declining"})
    remove = plugins.add_backend(declining())
    try:
        x = cd.zeros(2, 3, device="declining")
        with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"):
            x @ x
        with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
            cd.cat([x, cd.zeros(3, 4, device="declining")])
        if error is NotImplementedError:
            with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 2"):
                x.index_select(0, cd.tensor([9], device="declining"))
    finally:
        kernels.OWN.clear()
        remove()


def test_flushed_subnormal_numbers_are_recognized(backend: Any) -> None:
    """The report asks for ``subnormals=False``, with which the cases pass and no excused element is an error in ULP."""
    kernels = importlib.import_module("candelabra_quartz.kernels")

    def flushed(x: Any) -> Any:
        return x if x.dtype.kind != "f" else np.where(abs(x) < np.finfo(x.dtype).tiny, np.copysign(0 * x, x), x)

    def flushing(function: Any) -> Any:
        return lambda *operands: flushed(np.asarray(function(*map(flushed, operands))))

    for name, function in {"div": np.divide, "gt": np.greater, "ceil": np.ceil, "log": np.log}.items():
        kernels.OWN[name] = flushing(function)
    runs = {}
    try:
        for name, subnormals in (("silt", True), ("clay", False)):
            capabilities = replace(backend.QuartzBackend.capabilities, subnormals=subnormals)
            made = type(name, (backend.QuartzBackend,), {"name": name, "capabilities": capabilities})
            remove = plugins.add_backend(made())
            options = Options(level=2, operators=tuple(kernels.OWN), patterns=("*/special/float32/*",))
            runs[name] = run(f"{name}:0", options)
            remove()
    finally:
        kernels.OWN.clear()
    assert [FLUSHED in r.message for r in runs["silt"].results] == [True] * 4
    assert tally.flushed_text(runs["silt"]).startswith("4 cases would pass if numbers below the smallest normal one")
    assert runs["clay"].green
    assert max(r.ulp for r in runs["clay"].results if r.ulp is not None) < 4
    assert tally.flushed_text(runs["clay"]) == ""


def test_a_wrong_result_is_no_flushed_subnormal_number(backend: Any) -> None:
    """An operator that is wrong for other numbers, too, has no such remark."""
    kernels = importlib.import_module("candelabra_quartz.kernels")
    kernels.OWN["ceil"] = np.floor
    remove = plugins.add_backend(type("loam", (backend.QuartzBackend,), {"name": "loam"})())
    try:
        done = run("loam:0", Options(level=2, operators=("ceil",), patterns=("*/special/float32/*",)))
    finally:
        kernels.OWN.clear()
        remove()
    assert [(r.verdict, FLUSHED in r.message) for r in done.results] == [("failed", False)]


def test_a_resumed_report_that_is_older_than_the_package_is_warned_of(
    backend: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The warning names the changed module; the results are taken over, and help says so."""
    file = tmp_path / "first.json"
    command = ["conformance", "--device", "quartz", "--case", "sin/value/float32/contiguous", "--jobs", "1"]
    source = Path(backend.__file__)
    os.utime(source, (0, 0))
    for path in source.parent.glob("*.py"):
        os.utime(path, (0, 0))
    assert main([*command, "--json", str(file)]) == 0
    assert main([*command, "--resume", str(file)]) == 0
    assert "warning" not in capsys.readouterr().err
    later = datetime.now(UTC).timestamp() + 60
    os.utime(source, (later, later))
    assert main([*command, "--resume", str(file)]) == 0
    assert f"warning: {source} was changed after the run of {file} began" in capsys.readouterr().err
    assert changed_since(replace(read_json(file), started="at noon")) is None
    assert changed_since(replace(read_json(file), started="2000-01-01T00:00:00")) == source
    with pytest.raises(SystemExit):
        main(["conformance", "--help"])
    assert "passed and failed ones" in " ".join(capsys.readouterr().out.split())

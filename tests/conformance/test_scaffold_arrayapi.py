"""The package that ``candelabra new-backend --arrayapi`` writes, over NumPy as a namespace with immutable arrays."""

from __future__ import annotations

import importlib
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra.dtypes import ALL, float32, float64, int64
from candelabra.errors import FallbackWarning, OutOfMemoryError
from candelabra.library import plugins
from candelabra_conformance.causes import declined
from candelabra_conformance.running import Options, run
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

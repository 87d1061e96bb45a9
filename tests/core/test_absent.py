"""Modules that PyTorch programs import and that do nothing, or say what is missing."""

from __future__ import annotations

import importlib
import os
import typing
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra import _absent


@pytest.fixture(autouse=True)
def _nothing_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test sees the warnings that a process gives once."""
    monkeypatch.setattr(_absent, "_said", set())


def double(x: int) -> int:
    """Return twice the argument."""
    return 2 * x


@pytest.mark.parametrize("name", ["script", "trace", "trace_module", "freeze", "optimize_for_inference"])
def test_functions_of_torchscript_return_their_argument_and_say_so_once(name: str) -> None:
    """The first call warns."""
    function = getattr(cd.jit, name)
    with pytest.warns(UserWarning, match=rf"candelabra\.jit\.{name} has no effect"):
        assert function(double) is double
    assert function(double) is double


def test_decorators_of_torchscript() -> None:
    """Marks return the function without a warning, and queries answer False."""
    for mark in (cd.jit.export, cd.jit.unused, cd.jit.script_method, cd.jit.script_if_tracing, cd.jit.interface):
        assert mark(double) is double
    assert cd.jit.ignore(double) is double
    assert cd.jit.ignore(drop=True)(double) is double
    assert cd.jit.annotate(int, 3) == 3
    assert cd.jit.isinstance([1], list)
    assert not cd.jit.is_scripting()
    assert not cd.jit.is_tracing()


def test_a_script_module_is_a_module() -> None:
    """Programs derive from it; other modules are no instances of it."""

    class Scale(cd.jit.ScriptModule):
        """A module written for TorchScript."""

        @cd.jit.script_method
        def forward(self, x: cd.Tensor) -> cd.Tensor:
            return x * 2

    assert isinstance(Scale(), cd.nn.Module)
    assert Scale()(cd.ones(2)).tolist() == [2, 2]
    assert not isinstance(cd.nn.Linear(1, 1), cd.jit.ScriptModule)
    with pytest.raises(AttributeError, match=r"module 'candelabra\.jit' has no attribute 'scripted'"):
        cd.jit.scripted  # noqa: B018


def test_hints_of_torchscript_are_those_of_typing() -> None:
    """Model files import them from ``jit.annotations``."""
    module = importlib.import_module("candelabra.jit.annotations")
    hints = ["Any", "Dict", "List", "Optional", "Tuple", "Union"]
    assert dir(module) == sorted([*hints, "BroadcastingList1", "BroadcastingList2", "BroadcastingList3"])
    assert module.BroadcastingList2[int] == typing.List[int]  # noqa: UP006 - the name of the hint
    for name in hints:
        assert getattr(module, name) is getattr(typing, name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("jit.save", "TorchScript is not supported; save the state_dict"),
        ("jit.load", "TorchScript is not supported"),
        ("onnx.export", "export to ONNX is not supported yet"),
        ("onnx.dynamo_export", "export to ONNX is not supported yet"),
        ("hub.load", "downloads and runs no code from repositories"),
        ("hub.load_state_dict_from_url", "load its weights from a file with candelabra.load"),
    ],
)
def test_missing_features_say_so(name: str, text: str) -> None:
    """The error names the function and the reason."""
    module, _, short = name.partition(".")
    function = getattr(importlib.import_module(f"candelabra.{module}"), short)
    with pytest.raises(NotImplementedError, match=rf"candelabra\.{module}\.{short}\(\): .*{text}"):
        function(1, key=2)


def test_queries_of_absent_features_answer_no() -> None:
    """What programs ask before they use a feature."""
    assert not cd.onnx.is_in_onnx_export()


def test_the_older_name_of_downloads() -> None:
    """``utils.model_zoo.load_url`` is the function of the hub."""
    assert cd.utils.model_zoo.load_url is cd.hub.load_state_dict_from_url


def test_folder_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the cache, or where the program sets it."""
    monkeypatch.setattr(cd.hub, "_directory", [])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cd.hub.get_dir() == os.path.join(str(tmp_path), "candelabra", "hub")
    cd.hub.set_dir(tmp_path)
    assert cd.hub.get_dir() == str(tmp_path)
    assert cd.hub._get_torch_home() == os.path.dirname(tmp_path)


def test_versions_and_configuration() -> None:
    """Programs print them."""
    assert cd.version.__version__ == cd.__version__
    assert cd.version.cuda is None
    assert cd.version.hip is None
    with pytest.raises(AttributeError, match=r"module 'candelabra\.version' has no attribute 'nonsense'"):
        _ = cd.version.nonsense
    assert "device type 'cpu'" in cd.__config__.show()
    assert "get_num_threads" in cd.__config__.parallel_info()


def test_modules_of_names() -> None:
    """`functional` has functions of the package, `types` types for hints and `isinstance`."""
    assert cd.functional.einsum is cd.einsum
    assert isinstance(1.5, cd.types.Number)
    assert cd.types.Tensor is cd.Tensor
    assert type(cd.utils.dlpack.to_dlpack(cd.ones(2))).__name__ == "PyCapsule"
    assert cd.utils.dlpack.from_dlpack(cd.ones(2)).tolist() == [1.0, 1.0]
    for module in (cd.functional, cd.utils, cd.multiprocessing):
        with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'nonsense'"):
            _ = module.nonsense


def test_imports_of_submodules() -> None:
    """The statements that programs have at their head."""
    statements = """
from candelabra.autograd import Variable
import candelabra.utils.data as data
from candelabra.utils.checkpoint import checkpoint, checkpoint_sequential
import candelabra.backends.cudnn as cudnn
from candelabra.backends import mps
from candelabra.cuda.amp import GradScaler, autocast
from candelabra.cpu.amp.grad_scaler import OptState
import candelabra.distributed as dist
import candelabra.multiprocessing as mp
import candelabra.cuda
"""
    scope: dict[str, Any] = {}
    exec(statements, scope)  # noqa: S102 - the statements are the subject
    assert scope["cudnn"] is cd.backends.cudnn
    assert scope["candelabra"].cuda is cd.cuda
    for name in ("candelabra.cuda.nonsense", "candelabra.nonsense", "candelabra.backends.nonsense"):
        with pytest.raises(ModuleNotFoundError, match=f"No module named '{name}'"):
            importlib.import_module(name)


def test_names_for_own_downloads() -> None:
    """Programs that fetch their weights themselves take the pattern of hashes and ``urlparse`` from the hub."""
    found = cd.hub.HASH_REGEX.search("resnet18-f37072fd.pth")
    assert found is not None
    assert found.group(1) == "f37072fd"
    assert cd.hub.urlparse("https://example.org/weights/a.pth").path == "/weights/a.pth"


def test_names_that_programs_of_torchscript_import() -> None:
    """A category of warnings, a pair of value and type, and marks of overloads."""
    assert issubclass(cd.jit.TracerWarning, Warning)
    assert cd.jit.TracerWarning.ignore_lib_warnings() is None
    assert cd.jit.Attribute(3, int) == (3, int)
    assert cd.jit._overload(double) is double
    assert cd.jit._overload_method(double) is double


def test_many_tensors_as_one() -> None:
    """Programs flatten gradients for one all-reduce, get views of the parts, and group tensors by dtype and size."""
    from candelabra._utils import _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors

    tensors = [cd.arange(6.0).view(3, 2).t(), cd.tensor(7.0), cd.ones(0, 2)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 2, 4, 1, 3, 5, 7]
    parts = _unflatten_dense_tensors(flat, tensors)
    assert [part.tolist() for part in parts] == [t.tolist() for t in tensors]
    flat.zero_()
    assert not parts[0].any()
    sizes = [(5, cd.float32), (2, cd.float32), (1, cd.float32), (5, cd.float64), (0, cd.float64), (3, cd.float32)]
    groups = _take_tensors([cd.zeros(n, dtype=d) for n, d in sizes], 22)
    assert [[len(t) for t in group] for group in groups] == [[5], [5], [2, 1], [3], [0]]


def test_names_of_the_extension_module() -> None:
    """Programs read the state of tracing and set switches of TorchScript."""
    assert cd._C._get_tracing_state() is None
    assert cd._C._log_api_usage_once("event") is None
    assert cd._C._jit_set_profiling_mode(False) is None
    assert cd._C._jit_override_can_fuse_on_cpu(True) is None
    assert cd._C._LinAlgError is cd.linalg.LinAlgError
    assert "_C" not in dir(cd)
    with pytest.raises(AttributeError, match=r"module 'candelabra\._C' has no attribute 'nothing'"):
        _ = cd._C.nothing
    cd._assert(True, "fine")
    with pytest.raises(AssertionError, match="it is wrong"):
        cd._assert(False, "it is wrong")


@pytest.mark.parametrize("name", ["anomaly_mode", "grad_mode", "profiler", "variable"])
def test_submodules_of_autograd(name: str) -> None:
    """PyTorch's submodules of autograd can be imported by their full names, and are its attributes."""
    module = importlib.import_module(f"candelabra.autograd.{name}")
    assert getattr(cd.autograd, name) is module
    public = module.__all__
    assert public
    known = (cd, cd.autograd, cd.profiler)
    assert all(any(getattr(owner, each, None) is getattr(module, each) for owner in known) for each in public)

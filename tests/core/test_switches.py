"""Switches that programs read and set: `backends`, threads, precision, determinism."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace

import candelabra as cd
import pytest
from candelabra._switches import switches
from candelabra.backend import follow_num_threads
from candelabra.backends._libraries import LIBRARIES

from tests.lantern import LanternBackend


@pytest.fixture(autouse=True)
def _switches_return() -> Iterator[None]:
    """Restore the settings after each test."""
    before = dict(vars(switches))
    yield
    vars(switches).update(before)
    cd.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_libraries_are_not_available_and_keep_their_switches(name: str) -> None:
    """A library can be imported, is not available, and remembers what a program sets."""
    module = importlib.import_module(f"candelabra.backends.{name}")
    assert module is getattr(cd.backends, name)
    assert module.is_available() is False
    assert module.version() is None
    assert set(LIBRARIES[name]) <= set(dir(module))
    for switch, value in LIBRARIES[name].items():
        assert getattr(module, switch) == value
        with module.flags(**{switch: 5}):
            assert getattr(module, switch) == 5
        assert getattr(module, switch) == value
    with module.verbose(1) as log:
        assert log.enable == 1


def test_switches_of_cudnn() -> None:
    """What programs do with cuDNN: set switches, also those that PyTorch does not have, and read them."""
    cudnn = cd.backends.cudnn
    before = cudnn.set_flags(True, True)
    assert before == (True, False)
    assert cudnn.benchmark is True
    cudnn.set_flags(*before)
    cudnn.fastest = True
    assert cudnn.fastest is True
    assert cudnn.is_acceptable(cd.ones(1)) is False
    with pytest.raises(AttributeError, match=r"module 'candelabra\.backends\.cudnn' has no attribute 'nonsense'"):
        _ = cudnn.nonsense
    with pytest.raises(AttributeError, match=r"module 'candelabra\.backends' has no attribute 'nonsense'"):
        _ = cd.backends.nonsense


def test_other_switches() -> None:
    """The fast path of attention, and the library that orders `einsum`."""
    assert cd.backends.mha.get_fastpath_enabled() is True
    cd.backends.mha.set_fastpath_enabled(False)
    assert cd.backends.mha.get_fastpath_enabled() is False
    cd.backends.mha.set_fastpath_enabled(True)
    assert cd.backends.opt_einsum.get_opt_einsum() is None


@pytest.mark.usefixtures("host_alone")
def test_switches_of_device_types() -> None:
    """`backends.<device type>` says whether the type is there, and keeps the switches of attention and products."""
    from candelabra.backends import cuda, mps

    assert mps.is_available() is False
    assert mps.is_built() is False
    assert cd.backends.cpu.is_available() is True
    assert cd.backends.cpu.get_cpu_capability()
    assert cuda.preferred_linalg_library("magma") == cuda.preferred_blas_library() == "default"
    for kind in ("flash", "math", "mem_efficient", "cudnn"):
        assert getattr(cuda, f"{kind}_sdp_enabled")() is True
        getattr(cuda, f"enable_{kind}_sdp")(False)
        assert getattr(cuda, f"{kind}_sdp_enabled")() is False
        getattr(cuda, f"enable_{kind}_sdp")(True)
    with cuda.sdp_kernel(enable_math=False):
        assert not cuda.math_sdp_enabled()
        assert cuda.flash_sdp_enabled()
    assert cuda.math_sdp_enabled()
    assert cuda.matmul.allow_fp16_reduced_precision_reduction is True


def test_precision_of_products_is_one_setting() -> None:
    """`allow_tf32` and `set_float32_matmul_precision` are the same setting."""
    assert cd.get_float32_matmul_precision() == "highest"
    cd.backends.cuda.matmul.allow_tf32 = True
    assert cd.get_float32_matmul_precision() == "high"
    assert cd.backends.cudnn.allow_tf32 is True
    cd.set_float32_matmul_precision("highest")
    assert cd.backends.cuda.matmul.allow_tf32 is False
    with pytest.raises(ValueError, match="expects one of highest, high, medium, got 'low'"):
        cd.set_float32_matmul_precision("low")


def test_numbers_of_threads() -> None:
    """They are the processors' number until they are set; only positive integers are accepted."""
    assert cd.get_num_threads() >= 1
    assert cd.get_num_interop_threads() >= 1
    cd.set_num_threads(3)
    cd.set_num_interop_threads(2)
    assert (cd.get_num_threads(), cd.get_num_interop_threads()) == (3, 2)
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        cd.set_num_threads(0)
    with pytest.raises(TypeError, match="set_num_interop_threads expects an int, but got float"):
        cd.set_num_interop_threads(1.5)
    assert cd.set_flush_denormal(True) is False


def test_thread_pools_follow_the_number_of_threads() -> None:
    """A function that follows gets the number at once and with every change, until it is removed."""
    numbers: list[int] = []
    cd.set_num_threads(5)
    remove = follow_num_threads(numbers.append)
    cd.set_num_threads(3)
    with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
        cd.set_num_threads(0)
    remove()
    cd.set_num_threads(2)
    assert numbers == [5, 3]


def test_nondeterministic_operators_are_refused(lantern: LanternBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that the backend names in its capabilities raises or warns while determinism is asked for."""
    limited = replace(lantern.capabilities, nondeterministic=frozenset({"scatter_add"}))
    x = cd.ones(2, device="lantern:1")
    monkeypatch.setattr(type(x._instance), "capabilities", property(lambda instance: limited), raising=False)
    index = cd.zeros(2, dtype=cd.int64, device="lantern:1")
    cd.use_deterministic_algorithms(True)
    assert cd.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="scatter_add does not have a deterministic implementation on lantern:1"):
        x.scatter_add(0, index, x)
    assert (x + x).tolist() == [2.0, 2.0]
    cd.use_deterministic_algorithms(True, warn_only=True)
    assert cd.is_deterministic_algorithms_warn_only_enabled()
    with pytest.warns(UserWarning, match="scatter_add does not have a deterministic implementation"):
        assert x.scatter_add(0, index, x).tolist() == [3.0, 1.0]
    cd.use_deterministic_algorithms(False)
    assert x.scatter_add(0, index, x).tolist() == [3.0, 1.0]


def test_debug_modes_of_determinism() -> None:
    """The modes are numbers or words; anything else is an error."""
    for mode, number in (("default", 0), ("warn", 1), ("error", 2), (1, 1)):
        cd.set_deterministic_debug_mode(mode)
        assert cd.get_deterministic_debug_mode() == number
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        cd.set_deterministic_debug_mode("always")
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not int"):
        cd.use_deterministic_algorithms(1)

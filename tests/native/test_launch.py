"""Launches of compiled kernels: arguments, errors, and who holds what while a kernel runs."""

from __future__ import annotations

import array
import ctypes
import gc
import importlib.util
import re
import struct
import sys
import sysconfig
import threading
import weakref
from pathlib import Path
from typing import Any

import candelabra_native.launch
import ml_dtypes
import numpy as np
import pytest
from candelabra_native.launch import kernel
from candelabra_native.launch.build import build

from tests.native.compiled import function, launch, run

NUMBERS = {
    "i": (-(2**31), -1, 0, 2**31 - 1, True, np.int8(-3)),
    "I": (0, 1, 2**32 - 1, np.uint16(7)),
    "q": (-(2**63), -1, 0, 2**63 - 1, np.int64(-5)),
    "Q": (0, 2**64 - 1, np.uint64(2**63)),
    "f": (0.0, -1.5, 0.1, 3, float("inf"), -float("inf"), 1e-46, np.float32(0.3), 3.4028235e38),
    "d": (0.0, -1.5, 0.1, 2**53, float("inf"), 1e-320, np.float64(0.3)),
}


@pytest.mark.parametrize("letter", NUMBERS)
def test_numbers_arrive_as_struct_packs_them(letter: str) -> None:
    """Every type of number has the bits that `struct` gives it, in the low bytes of its slot."""
    store = launch("store", "b" + letter)
    slot = np.zeros(1, np.uint64)
    size = struct.calcsize(letter)
    for number in NUMBERS[letter]:
        store(1, slot, number)
        assert slot.tobytes()[:size] == struct.pack("<" + letter, number)


def test_nan_arrives() -> None:
    """A float that is not a number is passed on."""
    slot = np.zeros(1, np.uint64)
    launch("store", "bf")(1, slot, float("nan"))
    assert np.isnan(slot.view(np.float32)[0])


@pytest.mark.parametrize(
    ("letter", "number", "message"),
    [
        ("i", 2**31, r"argument 1 \('i'\): 2147483648 is out of the range of int32"),
        ("i", -(2**31) - 1, "-2147483649 is out of the range of int32"),
        ("I", -1, r"argument 1 \('I'\): -1 is out of the range of uint32"),
        ("I", 2**32, "4294967296 is out of the range of uint32"),
        ("q", 2**63, "9223372036854775808 is out of the range of int64"),
        ("Q", -1, "-1 is out of the range of uint64"),
        ("Q", 2**64, "18446744073709551616 is out of the range of uint64"),
        ("f", 3.5e38, r"3.5e\+38 is out of the range of float32"),
        ("d", 10**400, "int too large to convert to float"),
    ],
)
def test_numbers_out_of_range(letter: str, number: float, message: str) -> None:
    """A number that its type does not hold raises, and the error names kernel, argument, number and type."""
    with pytest.raises(OverflowError, match=message) as caught:
        launch("store", "b" + letter)(1, np.zeros(1, np.uint64), number)
    assert str(caught.value).startswith("kernel store: argument 1 (")


@pytest.mark.parametrize(
    ("letter", "argument", "message"),
    [
        ("i", 1.0, "'float' object cannot be interpreted as an integer"),
        ("I", 1.0, "'float' object cannot be interpreted as an integer"),
        ("Q", "1", "'str' object cannot be interpreted as an integer"),
        ("q", None, "'NoneType' object cannot be interpreted as an integer"),
        ("f", "1", "must be real number, not str"),
        ("b", [1.0], "a bytes-like object is required, not 'list'"),
        ("b", None, "a bytes-like object is required, not 'NoneType'"),
    ],
)
def test_arguments_of_another_type(letter: str, argument: object, message: str) -> None:
    """An argument of another type raises, and the error names kernel and argument."""
    with pytest.raises(TypeError, match=message) as caught:
        launch("store", "b" + letter)(1, np.zeros(1, np.uint64), argument)
    assert str(caught.value).startswith(f"kernel store: argument 1 ('{letter}'): ")


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2), (1, 2, 3, 4)])
def test_wrong_number_of_arguments(arguments: tuple[int, ...]) -> None:
    """A launch takes the count and one argument per parameter, and says how many it got."""
    got = max(len(arguments) - 1, 0)
    with pytest.raises(TypeError, match=f"kernel store takes the count of work-items and 2 arguments, got {got}"):
        launch("store", "QQ")(*arguments)
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        launch("store", "QQ")(1, 2, x=3)


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        (-1, OverflowError, "kernel nothing: the count of work-items: -1 is out of the range of sizes"),
        (2**63, OverflowError, "9223372036854775808 is out of the range of sizes"),
        (1.0, TypeError, "the count of work-items: 'float' object cannot be interpreted as an integer"),
    ],
)
def test_counts(count: Any, error: type[Exception], message: str) -> None:
    """The count is an int from 0 to 2**63 - 1."""
    with pytest.raises(error, match=message):
        launch("nothing", "")(count)


@pytest.mark.parametrize(
    ("address", "types", "error", "message"),
    [
        (0, "b", ValueError, "kernel example has the address 0"),
        (-1, "b", OverflowError, "can't convert negative int to unsigned"),
        (1, "bxb", ValueError, "kernel example: parameter 1 has the unknown type 'x'; expected one of biIqQfd"),
        (1, "b" * 513, ValueError, "kernel example has 513 parameters; at most 512 are supported"),
        ("1", "b", TypeError, "must be int, not str"),
    ],
)
def test_kernels_are_checked(address: Any, types: str, error: type[Exception], message: str) -> None:
    """Addresses and types that cannot be right are refused when the launch is made."""
    with pytest.raises(error, match=message):
        kernel(address, types, "example")


def test_a_launch_knows_its_kernel() -> None:
    """Its name is the kernel's, and its `__self__` has address and types."""
    made = kernel(function("store"), "bQ", "add_f32")
    assert made.__name__ == "add_f32"
    described: Any = made.__self__  # type: ignore[attr-defined]
    assert (described.name, described.types, described.address) == ("add_f32", "bQ", function("store"))
    with pytest.raises(TypeError, match=r"cannot create .*Kernel' instances"):
        type(described)()


def test_launches_count_references_to_none() -> None:
    """A launch returns None with a reference, also if the module was compiled with the headers of a newer Python."""
    done = launch("nothing", "")
    before = sys.getrefcount(None)
    results = [done(1) for _ in range(10_000)]
    assert sys.version_info >= (3, 12) or sys.getrefcount(None) - before > 9_000
    assert set(results) == {None}
    for source in Path(candelabra_native.launch.__file__).parent.glob("*.c"):
        assert "Py_RETURN_" not in source.read_text(encoding="utf-8").replace("Py_RETURN_NONE of the headers", "")


def test_a_launch_is_freed() -> None:
    """A launch without references is freed, and its kernel with it."""
    before = len([o for o in gc.get_objects() if type(o).__name__ == "builtin_function_or_method"])
    for _ in range(100):
        launch("store", "bQ")
    after = len([o for o in gc.get_objects() if type(o).__name__ == "builtin_function_or_method"])
    assert after - before < 10


def _read_only() -> np.ndarray:
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    return frozen


LAYOUTS = {
    "contiguous": np.arange(6.0),
    "read-only": _read_only(),
    "transposed": np.zeros((3, 4)).T,
    "strided": np.arange(20.0)[3::2],
    "reversed": np.arange(20.0)[::-1],
    "expanded": np.broadcast_to(np.float64(3), (4, 5)),
    "without dims": np.array(3.0),
    "bfloat16": np.ones(3, ml_dtypes.bfloat16),
    "float16": np.ones(3, np.float16),
    "complex": np.ones(3, np.complex64),
    "fields": np.zeros(3, [("a", "i4"), ("b", "f8")])["b"],
    "other byte order": np.ones(3, ">f4"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_arrays_of_any_layout_and_dtype(name: str) -> None:
    """The address of an array's first element is passed, whatever its layout and dtype."""
    slot = np.zeros(1, np.uint64)
    x = LAYOUTS[name]
    launch("store", "bb")(1, slot, x)
    assert int(slot[0]) == x.__array_interface__["data"][0]


def test_other_objects_with_buffers() -> None:
    """Bytes, bytearrays, arrays of the standard library, memoryviews and ctypes have addresses too."""
    slot = array.array("Q", [0])
    held = ctypes.create_string_buffer(8)
    launch("store", "bb")(1, slot, held)
    assert slot[0] == ctypes.addressof(held)
    for other in (b"12", bytearray(b"12"), memoryview(b"12")):
        slot[0] = 0
        launch("store", "bb")(1, memoryview(slot), other)
        assert slot[0]


def test_empty_arrays() -> None:
    """An array without elements is an argument like others; a kernel without work-items does not run."""
    seen = np.zeros(3, np.uint64)
    launch("store", "bb")(1, seen, np.empty((0, 3)))
    seen[:] = 0
    launch("ranges", "b")(0, seen)
    assert seen.tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="kernel ranges: argument 0"):
        launch("ranges", "b")(0, "no buffer")


def test_buffers_are_released() -> None:
    """After a launch, and after a launch that raises, no array is held any more."""
    grows = bytearray(8)
    x = np.ones(3)
    gone = weakref.ref(x)
    references = sys.getrefcount(grows)
    launch("nothing", "bb")(1, grows, x)
    with pytest.raises(TypeError, match=r"kernel nothing: argument 2 \('b'\)"):
        launch("nothing", "bbb")(1, grows, x, 3)
    grows.append(1)  # raises BufferError while a launch holds the buffer
    assert sys.getrefcount(grows) == references
    del x
    assert gone() is None


def test_buffers_are_held_while_a_kernel_runs() -> None:
    """What a running kernel writes to cannot be moved by another thread."""
    flags = bytearray(16)
    view = np.frombuffer(flags, np.uint64)
    thread = threading.Thread(target=launch("hold", "b"), args=(1, flags))
    thread.start()
    while not view[0]:
        pass
    del view
    with pytest.raises(BufferError, match="cannot be re-sized"):
        flags.append(1)
    flags[8] = 1
    thread.join()
    flags.append(1)


def test_the_interpreter_goes_on_while_a_kernel_runs() -> None:
    """A kernel runs without the interpreter lock: this thread sees it start, and stops it."""
    flags = np.zeros(2, np.uint64)
    thread = threading.Thread(target=launch("hold", "b"), args=(1, flags))
    thread.start()
    while not flags[0]:
        pass
    assert thread.is_alive()
    flags[1] = 1
    thread.join()


CRASHES = {"null": (0, 11), "division": (1, 8), "instruction": (2, 4), "sent": (3, 7)}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_names_the_kernel(crash: str, threads: int) -> None:
    """The name is written to stderr, from whichever thread, and the process ends with the signal."""
    how, number = CRASHES[crash]
    done = run(f"cl.set_num_threads({threads})\nlaunch('crash', 'Q')(32, {how})", check=False)
    assert done.stderr == "candelabra: crash in kernel crash\n"
    assert done.returncode == -number


@pytest.mark.parametrize("first", ["faulthandler", "candelabra"])
def test_a_crash_reaches_other_handlers(first: str) -> None:
    """Python's faulthandler prints its traceback too, whether it was enabled before or after the first kernel."""
    lines = ["__import__('faulthandler').enable()", "f = launch('crash', 'Q')"]
    done = run("\n".join(lines if first == "faulthandler" else lines[::-1]) + "\nf(1, 0)", check=False)
    assert done.stderr.count("candelabra: crash in kernel crash\n") == 1
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 1
    assert 'File "<string>", line' in done.stderr
    assert done.returncode == -11


def test_a_crash_elsewhere_names_no_kernel() -> None:
    """A fault outside a kernel ends the process as if no kernel had run."""
    done = run("launch('nothing', '')(3)\nimport ctypes\nctypes.string_at(8)", check=False)
    assert (done.stderr, done.returncode) == ("", -11)


def test_a_handler_in_python_is_called() -> None:
    """A handler of the program for such a signal still runs."""
    done = run(
        "import signal\n"
        "signal.signal(signal.SIGBUS, lambda *a: print('handled'))\n"
        "launch('nothing', '')(3)\n"
        "os.kill(os.getpid(), signal.SIGBUS)\n"
        "print('went on')"
    )
    assert (done.stdout, done.stderr) == ("handled\nwent on\n", "")


def test_the_build_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Missing headers, a missing compiler, another system and the compiler's errors are reported."""
    with monkeypatch.context() as patch:
        patch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
        with pytest.raises(RuntimeError, match=f"needs Python's headers, but there is no Python.h in {tmp_path}"):
            build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(RuntimeError, match="needs zig's compiler: pip install ziglang"):
            build(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        with pytest.raises(RuntimeError, match="built for Linux only, and this is win32"):
            build(tmp_path)
    with pytest.raises(RuntimeError, match=r"the compiler failed on candelabra_native.launch:\n(.*\n)*.*no-such-opt"):
        build(tmp_path, None, "--no-such-option")


def test_the_module_needs_an_old_c_library_only(tmp_path: Path) -> None:
    """It needs no symbol of glibc that is newer than 2.17, and no loader of its own: musl can load it too."""
    content = build(tmp_path / "new" / "folder").read_bytes()
    versions = {tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", content)}
    assert versions
    assert max(versions) <= (2, 17)
    assert b"ld-linux" not in content


PLATFORMS = {
    "aarch64-linux-gnu.2.17": (b"\x7fELF", b"\xb7\x00"),
    "aarch64-linux-musl": (b"\x7fELF", b"\xb7\x00"),
    "x86_64-linux-musl": (b"\x7fELF", b"\x3e\x00"),
    "aarch64-macos": (b"\xcf\xfa\xed\xfe", None),
}


@pytest.mark.thorough
@pytest.mark.parametrize("target", PLATFORMS)
def test_the_module_compiles_for_other_platforms(target: str, tmp_path: Path) -> None:
    """The file has the format and the processor of the target."""
    content = build(tmp_path, target).read_bytes()
    magic, machine = PLATFORMS[target]
    assert content.startswith(magic)
    assert machine is None or content[18:20] == machine

"""From sources to programs: the cache on disk, compiler errors and warnings, and progress messages."""

import io
import logging
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.errors import BackendError, FallbackWarning, UnsupportedDType, UnsupportedOperator
from candelabra_clike import OPENCL, Source
from candelabra_clike.cache import ProgramCache, write_atomically
from candelabra_clike.source import number, reads, writes
from candelabra_opencl import compiling
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.engine import OpenCLEngine

DOUBLED = Source("doubled", (writes("out", "i32"), reads("a", "i32")), "out[GLOBAL_ID] = 2 * a[GLOBAL_ID];")


def caching_engine(folder: Path) -> OpenCLEngine:
    """Return a separate engine whose programs are cached in a folder, whatever the driver caches itself."""
    engine = OpenCLBackend("caching_engine").engine(0)
    engine.builder.cache = ProgramCache(folder)  # type: ignore[misc]
    return engine


def run(engine: OpenCLEngine) -> list[int]:
    """Double four numbers by a kernel that the engine has not compiled yet."""
    values = memoryview(bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]))
    source, out = engine.allocate(16), engine.allocate(16)
    engine.write(source, 0, values)
    engine.compile(DOUBLED)(4, out, source)
    return list(memoryview(bytes(engine.read(out, 0, 16))).cast("i"))


def entries(folder: Path) -> list[Path]:
    """Return the files of a cache."""
    return sorted(path for path in folder.glob("**/*") if path.is_file())


def test_a_cached_program_is_not_built_again(tmp_path: Path) -> None:
    """The second engine, as another process would, loads the first one's program from disk."""
    first, second = caching_engine(tmp_path), caching_engine(tmp_path)
    assert run(first) == [2, 4, 6, 8]
    assert (first.builder.built, len(entries(tmp_path))) == (1, 1)
    assert run(second) == [2, 4, 6, 8]
    assert second.builder.built == 0


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "of another format"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    """A damaged file does not affect the kernel, and the next process finds a complete entry again."""
    run(caching_engine(tmp_path))
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(
        {
            "cut": whole[:-7],
            "changed": whole[:-1] + bytes([whole[-1] ^ 1]),
            "empty": b"",
            "of another format": whole.replace(b" 1\n", b" 0\n", 1),
        }[damage]
    )
    engine = caching_engine(tmp_path)
    assert run(engine) == [2, 4, 6, 8]
    assert engine.builder.built == 1
    assert entry.read_bytes()[:100] == whole[:100] or len(entry.read_bytes()) > 100
    after = caching_engine(tmp_path)
    run(after)
    assert after.builder.built == 0


def test_an_entry_that_the_driver_refuses_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A binary that an updated driver refuses costs a build, and the program continues."""
    run(caching_engine(tmp_path))
    engine = caching_engine(tmp_path)
    built = engine.builder._build

    def refusing(program: Any, options: str) -> Any:
        if program.kind() == compiling.cl.program_kind.BINARY:
            raise compiling.cl.RuntimeError("clBuildProgram failed: INVALID_BINARY")
        return built(program, options)

    monkeypatch.setattr(engine.builder, "_build", refusing)
    with caplog.at_level(logging.DEBUG, "candelabra.opencl"):
        assert run(engine) == [2, 4, 6, 8]
    assert engine.builder.built == 1
    assert "cannot be used and is built again: clBuildProgram failed: INVALID_BINARY" in caplog.text


def test_the_key_is_of_all_that_a_program_depends_on(engine: OpenCLEngine) -> None:
    """Another text, option, device, driver or platform gives another key; the key's parts are separated."""
    compiler = engine.builder
    assert compiler.key("text", "options") == compiler.key("text", "options")
    assert len({compiler.key("a", "b"), compiler.key("ab", ""), compiler.key("", "ab"), compiler.key("b", "a")}) == 4
    parts = ["text", "options", "device", "version", "driver", "platform", "its version"]
    changed = [[*parts[:i], "other", *parts[i + 1 :]] for i in range(len(parts))]
    assert len({ProgramCache.key(*each) for each in [parts, *changed]}) == len(parts) + 1


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    """Computation works without the cache."""
    (tmp_path / "file").write_text("not a folder")
    engine = caching_engine(tmp_path / "file")
    assert run(engine) == [2, 4, 6, 8]
    assert engine.builder.cache is not None
    assert engine.builder.cache.read("0" * 64) is None


def test_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write leaves the old file and no other."""
    place = tmp_path / "folder" / "file"
    write_atomically(place, b"first")

    def failing(source: str, destination: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="the disk is full"):
        write_atomically(place, b"second")
    assert place.read_bytes() == b"first"
    assert entries(tmp_path) == [place]


def test_one_cache_for_each_driver(engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Drivers with their own cache use it; `CANDELABRA_CACHE=0` disables the cache for the others too."""

    class Platform:
        name = "Portable Computing Language"

    class Device:
        platform = Platform()

    device = Device()
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    assert compiling.program_cache(device) is None
    device.platform.name = "Another"
    kept = compiling.program_cache(device)
    assert kept is not None
    assert kept.folder == tmp_path / "opencl" / "programs"
    monkeypatch.setenv("CANDELABRA_CACHE", "0")
    assert compiling.program_cache(device) is None


def test_options_follow_source_and_device(engine: OpenCLEngine) -> None:
    """Correct rounding is requested if the device supports it; kernels with contraction lack the option against it."""
    options = engine.builder.options(DOUBLED)
    assert set(OPENCL.options) <= set(options)
    assert set(OPENCL.rounding).issubset(options) == engine.traits.exact_division


def test_pocl_reads_no_header(engine: OpenCLEngine) -> None:
    """PoCL's programs declare what they use, since it preprocesses each program; other drivers have faster ways."""
    on_pocl = engine.builder.driver.startswith(compiling.POCL)
    assert set(OPENCL.declaring).issubset(engine.builder.options(DOUBLED)) == on_pocl


def test_a_program_that_calls_another_function_is_built_with_the_header(
    engine: OpenCLEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """Kernels from elsewhere may call any function of OpenCL C."""
    source = Source("counted", (writes("out", "i32"), number("n", "u32")), "out[0] = popcount(n);")
    out = engine.allocate(4)
    with caplog.at_level(logging.DEBUG, "candelabra.opencl"):
        engine.compile(source)(1, out, 0b10111)
    assert int.from_bytes(engine.read(out, 0, 4), "little") == 4
    assert ("built again with the driver's header" in caplog.text) == engine.builder.driver.startswith(compiling.POCL)


TYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32")


@pytest.mark.parametrize("type", ["i32", "i64", "u64", "f32"])
def test_conversions_of_vectors_are_those_of_the_header(type: str, rng: np.random.Generator) -> None:
    """They have the same bits: of integers that wrap, of large ones that are rounded, and of fractions."""
    stores = [
        f"STORE_X8({to}, (GLOBAL {to}*)(out + {64 * i}), AS_{to.upper()}X8(LOAD_X8({type}, a)));"
        for i, to in enumerate(TYPES)
    ]
    source = Source(f"converted_{type}", (writes("out", "u8"), reads("a", type)), "\n".join(stores), group=1)
    if type == "f32":
        values = rng.uniform(0, 100, 8).astype(np.float32)
    else:
        values = rng.integers(0, 2**62, 8, np.int64).astype(f"{type[0]}{int(type[1:]) // 8}")
    found = []
    for declaring in (OPENCL.declaring, ()):
        engine = OpenCLBackend("converting").engine(0)
        engine.builder.dialect = replace(engine.builder.dialect, declaring=declaring)  # type: ignore[misc]
        out, a = engine.allocate(64 * len(TYPES)), engine.allocate(64)
        engine.write(out, 0, memoryview(bytes(64 * len(TYPES))))
        engine.write(a, 0, memoryview(values.tobytes()))
        engine.compile(source)(1, out, a)
        found.append(bytes(engine.read(out, 0, 64 * len(TYPES))))
    assert found[0] == found[1]
    assert any(found[0])


def test_a_failed_build_is_reported_with_the_drivers_output(engine: OpenCLEngine) -> None:
    """The error names device, driver, kernel and options, and has the compiler's output and advice."""
    source = Source("broken", (writes("out", "i32"),), "out[0] = nonsense;")
    driver = re.escape(engine.builder.driver)
    with pytest.raises(BackendError, match=rf"opencl:0: the driver \({driver}\) cannot build 'broken' with") as caught:
        engine.compile(source)
    assert "nonsense" in str(caught.value)
    assert "CANDELABRA_OPENCL_DEVICES selects one" in str(caught.value)


def test_compiler_warnings_are_only_logged(engine: OpenCLEngine, caplog: pytest.LogCaptureFixture) -> None:
    """A compiler's warning is not a Python warning; it is logged at the level DEBUG."""
    source = Source("talkative", (writes("out", "i32"),), "int unused; out[0] = 1;\n#warning look here\n")
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG, "candelabra.opencl"):
        warnings.simplefilter("error")
        engine.compile(source)
    assert "opencl:0: " in caplog.text


class _Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_first_run_says_what_it_does(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    """A message appears on a terminal, once, after the first seconds of building; never in a file."""
    stream = _Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(compiling.sys, "stderr", stream)
    monkeypatch.setattr(compiling, "SILENT_SECONDS", 0.0)
    engine = OpenCLBackend("slow").engine(0)
    engine.builder.cache = None  # An earlier run may have cached them.
    for name in ("first", "second"):
        engine.compile(Source(name, (writes("out", "i32"),), f"out[0] = {len(name)};"))
    told = f"candelabra: compiling kernels for slow:0 ({engine.builder.driver}); later runs will reuse them\n"
    assert stream.getvalue() == (told if terminal else "")


def test_short_builds_are_not_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short build prints no message."""
    monkeypatch.setattr(compiling.sys, "stderr", _Terminal())
    monkeypatch.setattr(compiling, "SILENT_SECONDS", 1e9)
    OpenCLBackend("quick").engine(0).compile(Source("quick", (writes("out", "i32"),), "out[0] = 1;"))
    assert compiling.sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_float64_is_not_computed_on_a_device_without_it(single: cd.device) -> None:
    """The device stores and copies it; the reference device computes, and dispatch refuses if that is not allowed."""
    x = cd.tensor([1.0, 2.5], dtype=cd.float64).to(single)
    assert x.cpu().tolist() == [1.0, 2.5]
    with pytest.warns(FallbackWarning, match="operator 'add' has no kernel for float64 on 'single:0'"):
        assert (x + x).device == single
    assert (x + x).cpu().tolist() == [2.0, 5.0]
    with cd.fallback("error"), pytest.raises(UnsupportedOperator, match="'add' is not available on device 'single:0'"):
        x + x
    y = x.float()
    assert (y + y).cpu().tolist() == [2.0, 5.0]
    assert y.double().cpu().tolist() == [1.0, 2.5]
    assert cd.zeros(2, dtype=cd.complex128, device=single).cpu().tolist() == [0, 0]
    assert cd.arange(3, dtype=cd.float64, device=single).cpu().tolist() == [0, 1, 2]
    for draw in (cd.rand, cd.randn, lambda *size, **options: cd.empty(*size, **options).exponential_()):
        assert draw(3, dtype=cd.float64, device=single).cpu().isfinite().all()


def test_a_kernel_in_float64_says_so(single: cd.device) -> None:
    """The declaration of a source is used, also if its text does not contain double."""
    engine = OpenCLBackend("alone", float64=False).engine(0)
    source = Source("silent", (writes("out", "i32"), number("n")), "out[0] = 1;", float64=True)
    with pytest.raises(UnsupportedDType, match="alone:0 does not support float64, which 'silent' needs"):
        engine.compile(source)

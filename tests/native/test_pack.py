"""The pack: kernels that are compiled ahead of time, and how one is found."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
from candelabra.errors import BackendError
from candelabra_clike import Source
from candelabra_clike.processor import flags_in
from candelabra_clike.source import writes
from candelabra_native import compiling, finding, processor
from candelabra_native.compiling import TARGETS, compile_unit, kernel_name
from candelabra_native.finding import Missing, find
from candelabra_native.pack import __main__ as program
from candelabra_native.pack import libraries
from candelabra_native.pack.building import build, units
from candelabra_native.pack.calls import parse
from candelabra_native.pack.replaying import minimal, needed_sources

from tests.native import elf

CALLS = """
exp.T(T[64]) for f32, f64
tanh.f32(f32[3, 4][1, 3])
softmax.f32(f32[4, 1000], 1)
sum.f32(f32[64, 64], (0,), False, None)
matmul.f32(f32[64, 64], f32[64, 64])
conv.f32(f32[2, 3, 8, 8], f32[4, 3, 3, 3], None, (1, 1), (1, 1), (1, 1), 1)
sort.f32(f32[64, 64], 1, False, True)
random_normal.b((64,), 0, 1, f32, 0)
"""
MACHINES = {"x86_64_v3": 62, "x86_64_v4": 62, "aarch64": 183}
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the libraries that it loads are those of x86-64")
compiled = pytest.mark.skipif(compiling.compiler() is None, reason="no compiler of the clang family is installed")


def silent(done: int, total: int) -> None:
    """Show no progress."""


def numbered(count: int, name: str = "numbered", contract: bool = False) -> list[Source]:
    """Return small kernels, each another."""
    return [Source(name, (writes("out", "i32"),), f"out[GLOBAL_ID] = {i};", contract=contract) for i in range(count)]


BROKEN = Source("broken", (writes("out", "i32"),), "out[0] = nonsense;")


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let a test choose the processor level, which a process looks up once."""
    processor.level.cache_clear()
    processor.levels.cache_clear()
    yield monkeypatch
    processor.level.cache_clear()
    processor.levels.cache_clear()


# -- building ---------------------------------------------------------------------------------------------------------
@compiled
@pytest.mark.parametrize("level", TARGETS)
def test_a_library_exports_its_kernels_and_imports_nothing(level: str, tmp_path: Path) -> None:
    """It suits every C library: no kernel calls a function of one, whatever the processor it is compiled for."""
    sources = needed_sources(parse(CALLS), level)
    assert len(sources) >= 10
    built = build(sources, level, tmp_path / "kernels.so", tmp_path / "objects", silent, strict=True)
    library = elf.read(built.file)
    assert library.machine == MACHINES[level]
    assert library.imported == []
    assert library.needed == 0
    assert sorted(library.exported) == sorted({kernel_name(source) for source in sources})
    assert built.kernels == len(library.exported)


@compiled
def test_the_pack_of_this_checkout_imports_nothing() -> None:
    """The libraries that were built here, if any was, hold the same."""
    for level in libraries.built():
        library = elf.read(libraries.path(level))
        assert (library.imported, library.needed) == ([], 0)
        assert len(library.exported) > 100


def test_only_libraries_are_read(tmp_path: Path) -> None:
    """The reader of these tests refuses another file."""
    (tmp_path / "file").write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no ELF file"):
        elf.read(tmp_path / "file")


@compiled
def test_a_second_build_compiles_what_changed(tmp_path: Path) -> None:
    """One more kernel changes one object file; a kernel less leaves no file behind."""
    sources = numbered(60)
    folder = tmp_path / "objects"

    def built(chosen: list[Source]) -> tuple[int, int, int]:
        made = build(chosen, "x86_64_v3", tmp_path / "kernels.so", folder, silent)
        assert len(list(folder.rglob("*.o"))) == made.objects
        return made.kernels, made.objects, made.compiled

    kernels, objects, compiled = built(sources[:-1])
    assert (kernels, compiled) == (59, objects)
    assert built(sources[:-1]) == (59, objects, 0)
    kernels, objects, compiled = built(sources)
    assert kernels == 60
    assert 1 <= compiled <= 2
    assert built(sources[:5])[0] == 5


@compiled
def test_a_kernel_that_does_not_compile_is_left_out(tmp_path: Path) -> None:
    """The others of its unit are in the library. A release refuses instead."""
    target, folder = tmp_path / "kernels.so", tmp_path / "objects"
    for _ in range(2):
        built = build([*numbered(3), BROKEN], "x86_64_v3", target, folder, silent)
        assert built.kernels == len(elf.read(target).exported) == 3
        (error,) = built.refused
        assert "cannot build broken" in str(error)
        assert "nonsense" in str(error)
    with pytest.raises(BackendError, match=r"cannot build .*broken"):
        build([*numbered(3), BROKEN], "x86_64_v3", target, folder, silent, strict=True)


def test_units_have_one_preamble_and_the_same_options() -> None:
    """Kernels that may contract, or whose indices have 64 bits, are compiled by themselves."""
    wide = [Source(s.name, s.parameters, s.body, wide=True) for s in numbered(5)]
    made = units([*numbered(40), *numbered(5, contract=True), *wide, *numbered(40)])
    assert sum(map(len, made)) == 50
    assert all(len({(s.wide, s.contract) for s in part}) == 1 for part in made)
    assert max(map(len, made)) <= 24


def test_calls_that_add_no_kernel_are_dropped() -> None:
    """The remaining calls need the same kernels."""
    calls = parse("exp.f32(f32[64])\nexp.f32(f32[8, 8])\nexp.f32(f32[9])\nneg.f32(f32[64])\n")
    kept = minimal(calls, ["x86_64_v3", "x86_64_v4"])
    assert len(kept) == 2
    for level in ("x86_64_v3", "x86_64_v4"):
        assert set(needed_sources(kept, level)) == set(needed_sources(calls, level))


# -- the program ------------------------------------------------------------------------------------------------------
@compiled
def test_the_program_builds_a_library_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the progress, the number of kernels and the size."""
    (tmp_path / "list").write_text("exp.T(T[64]) for f32, f64\n")
    words = ["--list", str(tmp_path / "list"), "--level", "aarch64", "--to", str(tmp_path)]
    assert program.main([*words, "--objects", str(tmp_path / "objects"), "--required"]) == 0
    assert libraries.built(tmp_path) == ["aarch64"]
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("native: kernels for aarch64: 2, ")
    assert "of 2 files compiled" in shown[-1] or "of 1 files compiled" in shown[-1]


def test_without_a_compiler_numpy_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says so, and the program succeeds, except where the kernels are required."""
    monkeypatch.setattr(compiling, "compiler", lambda: None)
    words = ["--level", "x86_64_v3", "--to", str(tmp_path), "--objects", str(tmp_path)]
    assert program.main(words) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("native: NumPy serves, because the kernels cannot be compiled: no C compiler was found")
    assert program.main([*words, "--required"]) == 1


def test_without_a_level_numpy_serves(capsys: pytest.CaptureFixture[str], levels: pytest.MonkeyPatch) -> None:
    """An older processor, or another system, has no kernels."""
    levels.setenv("CANDELABRA_NATIVE_LEVEL", "0")
    assert program.main([]) == 0
    assert capsys.readouterr().out == "native: there are no kernels for this processor or system; NumPy serves\n"
    assert program.main(["--required"]) == 1


# -- finding ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def pack(tmp_path: Path, levels: pytest.MonkeyPatch) -> Path:
    """Return an empty folder in the place of the pack, on a processor of level 4 that must not compile."""
    levels.setattr(processor, "_machine_level", lambda: "x86_64_v4")
    levels.setenv("CANDELABRA_COMPILE", "0")
    levels.delenv("CANDELABRA_NATIVE_LEVEL", raising=False)
    levels.setattr(libraries, "path", lambda level: tmp_path / f"kernels_{level}.so")
    return tmp_path


@x86
@compiled
def test_a_kernel_is_found_in_the_pack_of_its_level_then_of_lower_ones(pack: Path) -> None:
    """A processor of level 4 runs the kernels of level 3 that are not compiled for its own."""
    first, second = numbered(2)
    compile_unit([first, second], "x86_64_v3", pack / "kernels_x86_64_v3.so")
    compile_unit([first], "x86_64_v4", pack / "kernels_x86_64_v4.so")
    found = {find(first), find(second)}
    assert find(first) == libraries.entry_point(pack / "kernels_x86_64_v4.so", kernel_name(first))
    assert find(second) == libraries.entry_point(pack / "kernels_x86_64_v3.so", kernel_name(second))
    assert len(found) == 2


def test_a_kernel_that_is_not_there_is_missing(pack: Path) -> None:
    """NumPy serves the call then."""
    with pytest.raises(Missing, match=r"^numbered$"):
        find(numbered(1)[0])


@x86
@compiled
def test_a_kernel_is_compiled_if_allowed_and_then_found_on_disk(
    pack: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is compiled once for all processes of the user."""
    monkeypatch.setenv("CANDELABRA_COMPILE", "1")
    monkeypatch.setattr(finding, "folder", lambda: tmp_path / "disk")
    monkeypatch.setattr(finding, "level", lambda: processor._lower(processor._machine_level())[-1])
    (source,) = numbered(1, "on_disk")
    address = find(source)
    assert [file.name for file in (tmp_path / "disk").rglob("*.so")] == [f"{kernel_name(source)}.so"]
    monkeypatch.setattr(compiling, "compile_unit", lambda *_: pytest.fail("it was compiled again"))
    assert find(source) == address


def test_compiling_is_allowed_by_the_variable_or_by_the_package_of_the_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variable decides if it is set."""
    monkeypatch.setattr(compiling, "compiler", lambda: ("clang",))
    for installed in (True, False):
        monkeypatch.setattr(finding.importlib.util, "find_spec", lambda name, installed=installed: installed or None)
        for setting, allowed in (("", installed), ("1", True), ("0", False)):
            monkeypatch.setenv("CANDELABRA_COMPILE", setting)
            assert finding.may_compile() is allowed
    monkeypatch.setenv("CANDELABRA_COMPILE", "1")
    monkeypatch.setattr(compiling, "compiler", lambda: None)
    assert not finding.may_compile()


# -- levels -----------------------------------------------------------------------------------------------------------
def test_a_lower_level_can_be_chosen(levels: pytest.MonkeyPatch) -> None:
    """The variable names it, or 0 for none; another level than those of the machine is refused."""
    levels.setattr(processor, "_machine_level", lambda: "x86_64_v4")
    for setting, expected in (("", ("x86_64_v4", "x86_64_v3")), ("x86_64_v3", ("x86_64_v3",)), ("0", ())):
        levels.setenv("CANDELABRA_NATIVE_LEVEL", setting)
        processor.level.cache_clear()
        processor.levels.cache_clear()
        assert processor.levels() == expected
    processor.level.cache_clear()
    levels.setenv("CANDELABRA_NATIVE_LEVEL", "aarch64")
    with pytest.raises(ValueError, match="this machine has no such level; it has x86_64_v4, x86_64_v3"):
        processor.level()


def test_levels_follow_from_the_features_of_the_processor() -> None:
    """A level needs all features of those below it."""
    third = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", "sse"}
    fourth = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    assert processor.level_of(third) == "x86_64_v3"
    assert processor.level_of(third | fourth) == "x86_64_v4"
    assert processor.level_of(third - {"fma"} | fourth) is None
    assert flags_in("processor : 0\nflags\t: sse avx\nflags\t: other\n") == {"sse", "avx"}
    assert flags_in("") == set()


@pytest.mark.parametrize(("words", "expected"), [([], ["x86_64_v4"]), (["--lower"], ["x86_64_v4", "x86_64_v3"])])
def test_the_program_builds_for_this_machine(words: list[str], expected: list[str], levels: pytest.MonkeyPatch) -> None:
    """With ``--lower``, also for the levels that it runs too; the extension module is compiled first."""
    done: list[str] = []
    levels.delenv("CANDELABRA_NATIVE_LEVEL", raising=False)
    levels.setattr(processor, "_machine_level", lambda: "x86_64_v4")
    levels.setattr(program, "extension", lambda folder: done.append(folder.name))
    levels.setattr(program, "kernels", lambda level, *_: done.append(level))
    assert program.main(words) == 0
    assert done == ["launch", *expected]

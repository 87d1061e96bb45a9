"""Calls whose kernels are not compiled: NumPy serves them, and they are planned once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import float32, float64
from candelabra.errors import BackendError
from candelabra_clike import Launch, Source, StridedArray
from candelabra_clike.kernels import table
from candelabra_clike.source import writes
from candelabra_native import engine as engine_module
from candelabra_native import finding, wrapping
from candelabra_native.arrays import Unsuitable, dense
from candelabra_native.engine import NativeEngine
from candelabra_native.finding import Missing
from candelabra_native.missing import MOST, MissingCalls
from candelabra_native.pack.replaying import DryEngine


def test_a_missing_kernel_is_looked_for_once_per_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's kernel serves; a call with another layout or option looks again, one with another float does not."""
    planned: list[Any] = []

    def kernel(*arguments: Any) -> Any:
        planned.append(arguments)
        raise Missing("add")

    call = wrapping.wrapped("add", "add", kernel, lambda *arguments: "the owner's result", float64, 0)
    x = np.ones((4, 8))
    for arguments in [(x, 2.5), (x, 2.5), (x, 3.5), (x, x), (x, x), (x.T, 2.5), (x, 2), (x, 2)]:
        assert call(*arguments) == "the owner's result"
    assert len(planned) == 4


def test_arrays_lists_and_options_distinguish_calls() -> None:
    """Arrays count by shape, strides and dtype."""
    calls, x = MissingCalls(), np.ones((4, 8))
    calls.note([x, x], (1, 2), None, "none", 0.5)
    assert calls.has([x + 1, x], (1, 2), None, "none", 1.5)
    for other in (
        ([x, x.T], (1, 2), None, "none", 0.5),
        ([x, x.astype(np.float32)], (1, 2), None, "none", 0.5),
        ([x, x], (1, 3), None, "none", 0.5),
        ([x, x], (1, 2), None, "tanh", 0.5),
        ([x, x], (1, 2), None, "none", 1),
    ):
        assert not calls.has(*other)


def test_arguments_without_a_hash_are_not_remembered() -> None:
    """Such a call is planned each time."""
    calls = MissingCalls()
    calls.note(np.ones(3), {})
    assert not calls
    assert not calls.has(np.ones(3), {})


def test_the_memory_of_missing_calls_is_bounded() -> None:
    """A program with ever new shapes does not fill the memory."""
    calls = MissingCalls()
    for size in range(MOST + 1):
        calls.note(size)
    assert len(calls) == 1


LEVEL = "x86_64_v3"


class Selective(DryEngine):
    """A processor without the kernels that have a word in their names. It counts launches."""

    def __init__(self, without: str) -> None:
        super().__init__(LEVEL)
        self.without = without
        self.launches = 0

    def compile(self, source: Source) -> Launch:
        if self.without in source.name:
            raise Missing(source.name)

        def launch(count: Any, /, *arguments: Any) -> None:
            self.launches += 1

        return launch


def test_a_step_over_many_parameters_is_all_or_nothing() -> None:
    """If a kernel for one of the widths is missing, no parameter has moved yet, so that NumPy takes the whole step."""
    step = table(lambda index: pytest.fail("a step takes its engine from its arrays"))["sgd_step_"].for_dtype(float32)
    names = source_names(step, 300)
    assert len(names) > 1
    for missing in names:
        engine = Selective(missing)
        with pytest.raises(Missing):
            step(*rows(engine, 300), 0.1, 0, False)
        assert engine.launches == 0
    engine = Selective("another kernel")
    step(*rows(engine, 300), 0.1, 0, False)
    assert engine.launches >= len(names)


def rows(engine: DryEngine, count: int) -> tuple[list[StridedArray], list[StridedArray]]:
    """Return parameters and gradients."""
    parameters, gradients = ([engine.empty((8,), float32) for _ in range(count)] for _ in range(2))
    return parameters, gradients


def source_names(step: Any, count: int) -> set[str]:
    """Return the names of the kernels that a step over ``count`` parameters needs."""
    engine = DryEngine(LEVEL)
    step(*rows(engine, count), 0.1, 0, False)
    return {source.name for source in engine.sources}


def test_rows_that_are_not_contiguous_are_left_to_the_owner() -> None:
    """A second kernel would have to copy the result back."""
    x = np.ones((4, 8), np.float32)
    assert dense(x, None).contiguous
    with pytest.raises(Unsuitable):
        dense(x.T, None)


def test_missing_kernels_are_searched_again_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is missing stays so until the engine forgets it, for example when compiling has been allowed."""
    engine, source = NativeEngine(), Source("never_compiled", (), "")
    monkeypatch.setattr(engine_module, "find", lambda source: (_ for _ in ()).throw(Missing(source.name)))
    with pytest.raises(Missing, match="never_compiled"):
        engine.compile(source)
    monkeypatch.setattr(engine_module, "find", lambda source: 1)
    with pytest.raises(Missing, match="never_compiled"):
        engine.compile(source)
    engine.forget_missing()
    assert engine.compile(source).__name__ == "never_compiled"


def test_kept_kernels_are_those_of_one_compiler_and_level(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another compiler, another level of the processor or another source has files of its own."""
    places = []

    def compile_unit(sources: list[Source], level: str, to: Path) -> Path:
        places.append(to)
        raise BackendError("nothing is compiled here")

    monkeypatch.setattr(finding, "cache_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(finding.compiling, "compile_unit", compile_unit)
    monkeypatch.setattr(finding, "may_compile", lambda: True)
    monkeypatch.delenv(finding.VARIABLE, raising=False)
    first, second = (Source(f"put_{i}", (writes("out", "i32"),), f"out[GLOBAL_ID] = {i};") for i in (101, 102))
    for version, level, source in (("a", "x", first), ("b", "x", first), ("a", "y", first), ("a", "x", second)):
        monkeypatch.setattr(finding.compiling, "version", lambda version=version: version)
        monkeypatch.setattr(finding, "level", lambda level=level: level)
        with pytest.raises(BackendError, match="nothing is compiled here"):
            finding.find(source)
    assert len(set(places)) == 4
    assert [place.parent.name for place in places] == ["x", "x", "y", "x"]

"""All kernels compile with NVRTC for three GPU generations; no GPU is needed for that.

The tests compile the kernels that the operators' samples launch, so new kernels are included automatically. No
kernel depends on the generation, so here each is compiled for one; ``tools/cuda_kernels.py`` compiles for all of
them, with the options of a GPU's code, and takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, plugins
from candelabra_clike import CUDA
from candelabra_clike.kernels import table
from candelabra_clike.source import units
from candelabra_conformance.context import Context
from candelabra_cuda.compiling import QUICKLY, compile_program, options

from tests.sampling import one_in, shuffled_position

GENERATIONS = ("80", "90", "100")
DTYPES = ("float32", "bfloat16", "int64", "complex64", "bool")


def recorded(tools: Callable[[str], ModuleType], *choice: Any) -> Any:
    """Return an engine that recorded the kernels that the choice needs; see ``needed`` in tools/cuda_needed.py."""
    backend = tools("cuda_recording").RecordingBackend()
    remove = plugins.add_backend(backend)
    try:
        tools("cuda_needed").needed(backend, *choice)
    finally:
        remove()
    return backend.recorder


def two_dtypes(context: Context, op: Operator[..., Any]) -> Iterator[tuple[str, dtype, str]]:
    """Choose values of an operator: contiguous in its first dtype, and for a quarter of the operators transposed in
    another one, which varies.
    """
    able = [d for name in DTYPES for d in context.dtypes(op) if d.name == name]
    yield from (("value", d, "contiguous") for d in able[:1])
    position = shuffled_position(op.name)
    if position % 4 == 0:
        others = able[1:] or able
        yield from (("value", d, "transposed") for d in others[position // 4 % max(len(others), 1) :][:1])


@pytest.fixture(scope="module")
def recorder(tools: Callable[[str], ModuleType]) -> Any:
    """Return an engine that recorded the kernels of every operator on its samples in two dtypes."""
    return recorded(tools, sorted(OPERATORS), two_dtypes)


@pytest.fixture(scope="module")
def thorough_recorder(tools: Callable[[str], ModuleType]) -> Any:
    """Return an engine that recorded the kernels of every operator in one dtype of each kind, and of programs."""
    return recorded(tools, (), tools("cuda_needed").quick)


def check(sources: list[Any]) -> None:
    """Compile each unit of kernels to a CUBIN, alternating between the generations."""
    for i, (first, program) in enumerate(units(sources, CUDA, 200)):
        capability = GENERATIONS[i % len(GENERATIONS)]
        code = compile_program(first.name, program, (*options(first, capability), QUICKLY))
        assert code[:4] == b"\x7fELF"
        assert "__CUDA_ARCH__" not in program  # so the order is the same in all of them


def test_kernels_of_every_operator_compile(recorder: Any) -> None:
    """One in 32 of the kernels with each name prefix, and at least one of them, compile."""
    sample = one_in(32, {source.name for source in recorder.sources}, lambda name: name.partition("_")[0])
    check([source for source in recorder.sources if source.name in sample])


@pytest.mark.thorough
def test_every_kernel_compiles(thorough_recorder: Any) -> None:
    """Every layout and dtype of the operators' samples is compiled."""
    assert len(thorough_recorder.sources) > 2000
    check(thorough_recorder.sources)


def test_every_operator_with_kernels_is_among_them(recorder: Any) -> None:
    """Kernels of an operator whose samples launch none would not be checked."""
    own = {name for name in table(lambda index: recorder) if name in OPERATORS and not OPERATORS[name].view}
    assert own - recorder.launched == set()


def test_steps_of_many_parameters_are_among_them(recorder: Any) -> None:
    """Optimisers launch these kernels without an operator."""
    names = {source.name for source in recorder.sources}
    assert {"sgd_41_float32", "momentum_30_float32", "adam_23_float32", "adam_largest_19_float32"} <= names


def test_no_kernel_adds_in_an_order_of_chance(recorder: Any) -> None:
    """Repeated runs give equal results: no result is accumulated by atomic operations."""
    assert [source.name for source in recorder.sources if "ATOMIC_ADD" in source.body] == []


def test_the_tool_compiles_for_all_generations(tools: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The tool prints the number of compiled kernels, and exits with 1 if one does not compile."""
    assert tools("cuda_kernels").main(["--operator", "trunc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["sm_80", "sm_90", "sm_100"]
    assert lines[0].endswith("0 failed")
    assert tools("cuda_kernels").main(["--operator", "trunc", "--capability", "10"]) == 1
    assert "gpu-architecture" in capsys.readouterr().err

"""The kernels that a GPU would be given compile with NVRTC, for three generations; no GPU is needed for that.

What is compiled is what the operators' own samples ask for, so a new kernel is among it by itself. No kernel asks which
generation it is compiled for, so here each is compiled for one; ``tools/cuda_kernels.py`` does it for all of them, with
the options that a GPU's code gets, and takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from candelabra.library import OPERATORS, plugins
from candelabra_clike import CUDA
from candelabra_clike.kernels import table
from candelabra_clike.source import units
from candelabra_cuda.compiling import QUICKLY, compile_program, options

from tests.sampling import one_in

GENERATIONS = ("80", "90", "100")


@pytest.fixture(scope="module")
def recorder(tools: Callable[[str], ModuleType]) -> Any:
    """The engine that was asked for the kernels of every operator, on its samples in one dtype of each kind."""
    backend = tools("cuda_recording").RecordingBackend()
    remove = plugins.add_backend(backend)
    try:
        tools("cuda_needed").needed(backend, chosen=tools("cuda_needed").quick)
    finally:
        remove()
    return backend.recorder


def check(sources: list[Any]) -> None:
    """NVRTC makes a CUBIN of each unit of kernels, the units for the generations in turn."""
    for i, (first, program) in enumerate(units(sources, CUDA, 200)):
        capability = GENERATIONS[i % len(GENERATIONS)]
        code = compile_program(first.name, program, (*options(first, capability), QUICKLY))
        assert code[:4] == b"\x7fELF"
        assert "__CUDA_ARCH__" not in program  # so it is the same for all of them


def test_kernels_of_every_operator_compile(recorder: Any) -> None:
    """A quarter of the kernels whose names begin alike, and at least one of them."""
    sample = one_in(4, {source.name for source in recorder.sources}, lambda name: name.partition("_")[0])
    check([source for source in recorder.sources if source.name in sample])


@pytest.mark.thorough
def test_every_kernel_compiles(recorder: Any) -> None:
    """In every layout and dtype that the operators' samples ask for."""
    assert len(recorder.sources) > 2000
    check(recorder.sources)


def test_every_operator_with_kernels_is_among_them(recorder: Any) -> None:
    """An operator whose samples launch nothing would leave its kernels unchecked."""
    own = {name for name in table(lambda index: recorder) if name in OPERATORS and not OPERATORS[name].view}
    assert own - recorder.launched == set()


def test_steps_of_many_parameters_are_among_them(recorder: Any) -> None:
    """They are what optimisers launch, not operators."""
    names = {source.name for source in recorder.sources}
    assert {"sgd_41_float32", "momentum_30_float32", "adam_23_float32", "adam_largest_19_float32"} <= names


def test_no_kernel_adds_in_an_order_of_chance(recorder: Any) -> None:
    """What one run computes, the next one does too: no result is added up by atomic operations."""
    assert [source.name for source in recorder.sources if "ATOMIC_ADD" in source.body] == []


def test_the_tool_compiles_for_all_generations(tools: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It says how many kernels became machine code, and 1 where one does not."""
    assert tools("cuda_kernels").main(["--operator", "trunc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["sm_80", "sm_90", "sm_100"]
    assert lines[0].endswith("0 failed")
    assert tools("cuda_kernels").main(["--operator", "trunc", "--capability", "10"]) == 1
    assert "gpu-architecture" in capsys.readouterr().err

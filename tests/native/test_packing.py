"""Weights of convolutions that compiled functions pack before their graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra._cli.main import main
from candelabra.dtypes import dtype
from candelabra.graph import runner, trace, with_packed_operands
from candelabra_clike import Source
from candelabra_clike.recording import RecordingEngine
from candelabra_clike.templates.matmul.packing import panel_packing
from candelabra_native.finding import Missing

from tests import packed_programs as programs
from tests.fused_programs import numbers
from tests.packed_programs import graph_of

CPU = cd.device("cpu")
CONVOLUTION = programs.conv(2, padding=1)


@pytest.mark.parametrize("name", programs.CASES)
def test_convolutions(name: str) -> None:
    """Convolutions of all geometries have the bits of eager calls, whatever has written the weight."""
    programs.check(name, cd.float32, CPU)


@pytest.mark.parametrize("d", [cd.float64, cd.float16, cd.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["2d", "transposed, strides"])
def test_dtypes(name: str, d: dtype) -> None:
    """Filters of half types are packed as float32, in which they are multiplied."""
    programs.check(name, d, CPU)


@pytest.mark.parametrize("d", [cd.complex64, cd.int32], ids=str)
def test_other_dtypes_are_not_packed(d: dtype) -> None:
    """The kernels of complex numbers and integers decline."""
    x, w = numbers((2, 3, 6, 6), d, CPU, 1), numbers((4, 3, 3, 3), d, CPU, 2)
    compiled = cd.compile(lambda x: CONVOLUTION(x, w, None))
    assert (compiled(x) == CONVOLUTION(x, w, None)).all()
    assert not graph_of(compiled).prepared


@pytest.mark.parametrize(("x", "w"), [((0, 3, 6, 6), (4, 3, 3, 3)), ((2, 0, 6, 6), (4, 0, 3, 3))], ids=str)
def test_nothing_is_packed_for_no_result(x: tuple[int, ...], w: tuple[int, ...]) -> None:
    """Convolutions without images or channels are called as before."""
    images, weight = cd.ones(x), cd.ones(w)
    compiled = cd.compile(lambda images: CONVOLUTION(images, weight, None))
    for _ in range(2):
        assert compiled(images).shape == CONVOLUTION(images, weight, None).shape
    assert not graph_of(compiled).prepared


def captured(w: cd.Tensor) -> tuple[cd.Tensor, Any]:
    """An input, and a compiled convolution with a weight."""
    return numbers((2, 3, 6, 6), cd.float32, CPU, 1), cd.compile(lambda x: CONVOLUTION(x, w, None))


def test_writes_by_numpy_are_seen() -> None:
    """Memory that NumPy shares is packed at each call."""
    w = numbers((4, 3, 3, 3), cd.float32, CPU, 2)
    x, compiled = captured(w)
    compiled(x)
    array = w.numpy()
    for i in range(3):
        array[i] *= 2
        assert (compiled(x) == CONVOLUTION(x, w, None)).all()


def test_weights_of_other_layouts() -> None:
    """Weights with strides, and at addresses that C does not take, are copied before they are packed."""
    strided = numbers((3, 4, 3, 3), cd.float32, CPU, 2).transpose(0, 1)
    flat = np.frombuffer(bytearray(4 * 108 + 1), np.uint8)[1:].view(np.float32).reshape(4, 3, 3, 3)
    flat[:] = strided.numpy()
    for w in (strided, cd.from_numpy(flat)):
        x, compiled = captured(w)
        for _ in range(2):
            assert (compiled(x) == CONVOLUTION(x, w, None)).all()
        assert len(graph_of(compiled).prepared) == 1


def test_inputs_of_other_layouts() -> None:
    """A graph whose input has other strides than the trace runs the same kernels one by one."""
    w = numbers((4, 3, 3, 3), cd.float32, CPU, 2)
    x = numbers((2, 3, 6, 6), cd.float32, CPU, 1)
    graph = trace(lambda x: (CONVOLUTION(x, w, None).relu(), CONVOLUTION(x, w, None).sigmoid()), x)
    packed = with_packed_operands(graph)
    assert [node.name for node in packed] == ["packed", "conv", "relu", "conv", "sigmoid"]
    other = x.transpose(2, 3).contiguous().transpose(2, 3)
    unaligned = np.frombuffer(bytearray(4 * x.numel() + 1), np.uint8)[1:].view(np.float32).reshape(x.shape)
    unaligned[:] = x.numpy()
    for array in (x._payload, other._payload, unaligned):
        first, _ = runner(packed)(array, w._payload)
        assert np.allclose(first, CONVOLUTION(x, w, None).relu().numpy(), atol=1e-5)


def test_a_step_packs_a_shared_weight_once() -> None:
    """Two applications of one weight in a training step share its packing, forward and backward."""
    layer = nn.Conv2d(4, 4, 3, padding=1)
    x = numbers((2, 4, 6, 6), cd.float32, CPU, 1)
    optimizer = cd.optim.SGD(layer.parameters(), lr=0.01)

    def step() -> cd.Tensor:
        optimizer.zero_grad()
        loss: cd.Tensor = layer(layer(layer(x))).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    eager = [step().item() for _ in range(2)]
    layer.load_state_dict({k: v.clone() for k, v in layer.state_dict().items()})
    compiled = cd.compile(step, fullgraph=True)
    start = {k: v.clone() for k, v in layer.state_dict().items()}
    expected = [step().item() for _ in range(4)]
    layer.load_state_dict(start)
    assert [compiled().item() for _ in range(4)] == pytest.approx(expected, rel=1e-5)
    names = [node.name for node in graph_of(compiled)]
    assert names.count("packed") == 2  # one layout for three convolutions, one for the gradients of two inputs
    assert not graph_of(compiled).prepared
    assert eager[0] > eager[1]


def test_weights_that_are_trained_are_not_kept() -> None:
    """A compiled module packs inside its kernels while its weight gets gradients, and keeps frozen weights packed."""
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    x = numbers((2, 3, 8, 8), cd.float32, CPU, 1)
    compiled = cd.compile(lambda x: layers(x))
    compiled(x).sum().backward()
    assert not graph_of(compiled).prepared
    layers[0].requires_grad_(False)
    frozen = cd.compile(lambda x: layers(x))
    for _ in range(2):
        layers[1].weight.grad = None
        assert (frozen(x) == layers(x)).all()
        frozen(x).sum().backward()
    assert len(graph_of(frozen).prepared) == 1


def test_new_memory_is_packed() -> None:
    """Replaced data, moved or cast modules and loaded states are what the next call computes with."""
    layer = nn.Conv2d(3, 4, 3)
    x = numbers((2, 3, 8, 8), cd.float32, CPU, 1)
    compiled = cd.compile(lambda x: layer(x))
    with cd.no_grad():
        for _ in range(3):
            layer.weight.data = cd.randn(4, 3, 3, 3)
            assert (compiled(x) == layer(x)).all()
        layer.load_state_dict(nn.Conv2d(3, 4, 3).state_dict())
        assert (compiled(x) == layer(x)).all()
        layer.weight = nn.Parameter(cd.ones(4, 3, 3, 3))
        assert (compiled(x) == layer(x)).all()
        layer.double().float()
        layer.weight.mul_(0.5)
        assert (compiled(x) == layer(x)).all()


def test_packing_without_its_kernel_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel that packs is not compiled, and must not be, convolutions stay as they are."""
    compile = RecordingEngine.compile

    def without_panels(self: RecordingEngine, source: Source) -> Any:
        if source.name.startswith("panels"):
            raise Missing(source.name)
        return compile(self, source)

    w = numbers((4, 3, 3, 3), cd.float32, CPU, 2)
    x, compiled = captured(w)
    monkeypatch.setattr(RecordingEngine, "compile", without_panels)
    panel_packing.cache_clear()
    try:
        assert (compiled(x) == CONVOLUTION(x, w, None)).all()
    finally:
        panel_packing.cache_clear()
    assert not graph_of(compiled).prepared


PROGRAM = """
import candelabra as cd
from candelabra import nn

layer = nn.Conv2d(3, 20, 3)
predict = cd.compile(lambda x: layer(x).relu())
with cd.no_grad():
    predict(cd.ones(1, 3, 8, 8))
"""


def test_packed_weights_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``candelabra explain --graph`` shows packing before the nodes that run at each call."""
    (tmp_path / "program.py").write_text(PROGRAM)
    assert main(["explain", "--graph", str(tmp_path / "program.py")]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith("graph("))
    assert lines[first].startswith("graph(a0: float32[1, 3, 8, 8], c0: float32[20, 3, 3, 3], c1: float32[20])")
    assert lines[first + 1].startswith("p0: float32[")
    assert "= packed(c0, <panels of " in lines[first + 1]
    assert lines[first + 1].endswith("# program.py:6, once for each version")
    assert ", p0)" in lines[first + 2] or ", [p0])" in lines[first + 2]

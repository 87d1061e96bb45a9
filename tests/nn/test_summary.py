"""The table of a model's layers: shapes, counts, memory, shared modules, several inputs, the state of the model."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv(x)).relu() + x


class Net(nn.Module):
    """A block at two places, a module that is not called, and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        block = Block(8)
        self.body = nn.Sequential(block, Block(8), block)
        self.unused = nn.Linear(2, 2)
        self.head = nn.Linear(8, 10)
        self.head.bias.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(self.stem(x)).mean((2, 3)))


def test_the_table_shows_the_tree_with_shapes_counts_and_memory() -> None:
    """repr is a table of the tree; the last lines are the totals."""
    lines = repr(nn.summary(Net(), (2, 3, 32, 32))).splitlines()
    assert lines[0].split() == ["Layer", "Output", "shape", "Parameters", "Trainable", "Output", "(MB)"]
    labels = [line[: lines[0].index("Output shape")].rstrip() for line in lines[2:-3]]
    assert labels == [
        "Net", "├─ stem: Conv2d", "├─ body: Sequential", "│  ├─ 0: Block", "│  │  ├─ conv: Conv2d",
        "│  │  └─ norm: BatchNorm2d", "│  ├─ 1: Block", "│  │  ├─ conv: Conv2d", "│  │  └─ norm: BatchNorm2d",
        "│  └─ 2: Block (shared)", "├─ unused: Linear", "└─ head: Linear",
    ]  # fmt: skip
    assert lines[3].split()[3:] == ["[2,", "8,", "30,", "30]", "224", "224", "0.06"]
    assert lines[12].split()[3:] == ["–", "6", "6", "–"]
    assert lines[-2] == "Parameters: 1,520 (trainable 1,510, frozen 10)"
    assert lines[-1] == "Memory in MB: input 0.02, activations 0.40, parameters and buffers 0.01, together 0.43"


def test_numbers_are_those_of_the_model() -> None:
    """Rows count each parameter once; bytes are elements times their size, buffers included."""
    model = Net()
    found = nn.summary(model, cd.ones(2, 3, 32, 32))
    assert sum(row.parameters for row in found.rows) == sum(p.numel() for p in model.parameters())
    assert found.total_parameters == 1520
    assert found.trainable_parameters == 1510
    assert found.input_bytes == 2 * 3 * 32 * 32 * 4
    plane = 2 * 8 * 30 * 30 * 4
    assert found.activation_bytes == 7 * plane + 2 * 10 * 4
    assert found.parameter_bytes == 1520 * 4 + 2 * (8 + 8) * 4 + 2 * 8
    assert found.total_bytes == found.input_bytes + found.activation_bytes + found.parameter_bytes


def test_depth_limits_the_rows_and_adds_up_what_they_hide() -> None:
    """A row at the last level counts the parameters of all modules below it."""
    rows = nn.summary(Net(), (2, 3, 32, 32), depth=1).rows
    assert [(r.name, r.parameters) for r in rows] == [
        ("", 0), ("stem", 224), ("body", 1200), ("unused", 6), ("head", 90),
    ]  # fmt: skip
    [whole] = nn.summary(Net(), (2, 3, 32, 32), depth=0).rows
    assert whole.parameters == 1520


def test_the_model_is_as_before() -> None:
    """Statistics, modes, hooks and the generator are unchanged, also if the call fails."""
    model = Net()
    model.body[1].eval()
    before = cd.get_rng_state().tolist()
    nn.summary(model, (2, 3, 32, 32))
    with pytest.raises(RuntimeError, match="to have 3 channels, but got 4 channels"):
        nn.summary(model, (2, 4, 32, 32))
    assert cd.get_rng_state().tolist() == before
    assert model.training
    assert model.body[0].training
    assert not model.body[1].training
    assert model.body[0].norm.running_mean.abs().sum().item() == 0
    assert not any(module._forward_hooks for module in model.modules())


def test_a_model_on_meta_is_summarized_without_memory() -> None:
    """Shapes become tensors on the parameters' device; on meta a huge model has a table."""
    with cd.device("meta"):
        model = nn.Sequential(nn.Linear(100_000, 100_000), nn.ReLU())
    found = nn.summary(model, (4, 100_000))
    assert found.total_parameters == 10_000_100_000
    assert found.rows[1].shapes == ((4, 100_000),)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.mix = nn.Linear(4, 4)
        self.mix.weight = nn.Parameter(cd.ones(4, 4))

    def forward(self, index: Any, x: Any, scale: float = 1.0) -> Any:
        y = self.table(index) + self.mix(x) * scale
        return {"y": y, "more": (y, [y.sum(), y, y])}


def test_several_inputs_and_outputs() -> None:
    """Shapes with a dtype each, tensors, and keywords give the same table; outputs may be nested."""
    model = Pair()
    found = nn.summary(model, [(3,), (3, 4)], dtype=[cd.int64, cd.float32])
    assert found.rows[0].shapes == ((3, 4), (3, 4), (), (3, 4), (3, 4))
    assert "[3, 4], [3, 4], …" in repr(found)
    index, x = cd.zeros(3, dtype=cd.int64), cd.ones(3, 4)
    assert nn.summary(model, (index, x, 2.0)).rows == found.rows
    assert nn.summary(model, {"index": index, "x": x}).rows == found.rows
    assert nn.summary(model, input_size=[(3,), (3, 4)], dtype=(cd.int64, cd.float32)).rows == found.rows


def test_a_module_called_twice_counts_both_outputs() -> None:
    """Activations are those of every call; a shared place shows its own call."""
    layer = nn.Linear(4, 4)
    found = nn.summary(nn.Sequential(layer, layer), (2, 4))
    assert found.activation_bytes == 2 * 2 * 4 * 4
    assert [row.shared for row in found.rows] == [False, False, True]
    assert [row.parameters for row in found.rows] == [0, 20, 0]


def test_a_model_without_parameters_uses_the_defaults() -> None:
    """The dtype is the default one, and nothing has parameters."""
    found = nn.summary(nn.Flatten(), input_size=(2, 3, 4))
    assert found.rows[0].shapes == ((2, 12),)
    assert found.input_bytes == 24 * 4
    assert "Parameters: 0 (trainable 0, frozen 0)" in repr(found)


@pytest.mark.parametrize(
    ("args", "options", "error", "text"),
    [
        ((), {}, ValueError, "requires either an input or an input_size"),
        (((2, 3),), {"input_size": (2, 3)}, ValueError, "requires either an input or an input_size"),
        ((), {"input_size": "2x3"}, TypeError, "input_size must be a shape or a sequence of shapes, not '2x3'"),
        (((2, 3),), {"depth": -1}, ValueError, "depth must not be negative, but it is -1"),
        (([(2, 3), (2, 3)],), {"dtype": [cd.float32]}, ValueError, "2 shapes, but 1 dtypes"),
    ],
)
def test_summary_refuses(args: Any, options: dict[str, Any], error: Any, text: str) -> None:
    """Inputs that are missing or contradict each other raise."""
    with pytest.raises(error, match=text):
        nn.summary(nn.Linear(3, 3), *args, **options)

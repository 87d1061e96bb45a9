"""The check of the tensors that operators' bodies create, and of the values that they read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import operator_bodies

CREATES = "names the real device: create like the operand"
READS = "reads values: move it to check="


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("def body(input):\n    return zeros(3, device=input.device)\n", CREATES),
        ("def body(input):\n    return full((2,), 0, device=input._instance)\n", CREATES),
        ("@operator(rule)\ndef body(input):\n    return input * input.max().item()\n", READS),
        ("@operator(rule)\ndef body(input):\n    return select(input, index.tolist())\n", READS),
        ("body.vjp(input=lambda g, input: g * input.sum().item())\n", READS),
        ("body.scattered(lambda g, index: put(g, index.tolist()))\n", READS),
    ],
)
def test_what_a_transform_would_lose_is_named_with_its_line(source: str, text: str) -> None:
    """A tensor created on an operand's device, and values that a body or a derivative reads, are faults."""
    (found,) = operator_bodies.findings(source, "module.py")
    assert found.startswith(f"module.py:{source.count(chr(10))}: ")
    assert text in found


@pytest.mark.parametrize(
    "source",
    [
        "def body(input):\n    return new_full(input, (3,), 0)\n",
        "def new_grid(input):\n    return zeros(3, device=input.device)\n",
        "def body(self):\n    return zeros(3, device=self.device)\n",
        "def body(input, device):\n    return zeros(3, device=as_device(device).device)\n",
        "@operator(rule, data_dependent=True)\ndef body(input):\n    return zeros(input.sum().item())\n",
        "def helper(input):\n    return input.item()\n",
    ],
)
def test_allowed_code_is_not_reported(source: str) -> None:
    """Creation like an operand or on a requested device is allowed, and reading if the record declares it."""
    assert list(operator_bodies.findings(source, "module.py")) == []


def test_the_operators_of_this_repository_keep_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """The command reports nothing."""
    assert operator_bodies.main() == 0
    assert capsys.readouterr().out == ""

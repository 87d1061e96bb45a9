"""The command `candelabra` with public names: the details of one name, and the list of all."""

import re

import pytest
from candelabra._cli.main import main

from tests.lantern import LanternBackend

Output = pytest.CaptureFixture[str]


def test_explain_of_an_overload_set(lantern: LanternBackend, capsys: Output) -> None:
    """Each signature is listed with its operator, and with the steps for a device; an unknown device is an error."""
    assert main(["explain", "max"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "max is an overload set: the first of its members that a call fits serves it"
    assert [line.strip() for line in lines[2::2]] == ["operator amax", "operator maximum", "operator max_dim"]
    assert lines[1].startswith("  max(input: Tensor, *, out=None) -> Tensor")
    assert main(["explain", "max", "--device", "lantern"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.endswith(" on lantern:0, float32")] == [
        f"{name} on lantern:0, float32" for name in ("amax", "maximum", "max_dim")
    ]
    assert main(["explain", "max", "--device", "nonsense"]) == 1
    assert "no backend is installed for device type 'nonsense'" in capsys.readouterr().err


def test_explain_of_a_public_callable(capsys: Output) -> None:
    """The output has its kind, its signature and the operators that it calls; a property has no signature."""
    assert main(["explain", "zeros_like"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("zeros_like is a public callable: it has no kernel of its own, what it calls has\n")
    assert "\n  zeros_like(input: Tensor, *, dtype" in out
    assert "\n  it names full\n" in out
    assert "candelabra.explain('zeros_like', ...) shows how those of a call are served" in out
    assert main(["explain", "Tensor.__array_interface__"]) == 0
    assert "\n  Tensor.__array_interface__\n" in capsys.readouterr().out
    assert main(["explain", "is_tensor"]) == 0
    assert "\n  it names no operator\n" in capsys.readouterr().out


def test_ops_lists_the_public_names(capsys: Output) -> None:
    """Each name has its kind, aliases and methods too, followed by a count of each kind."""
    assert main(["ops", "--public"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["arccos"] == ["operator", "acos"]
    assert rows["max"] == ["overload", "set", "amax,", "maximum,", "max_dim"]
    assert rows["from_numpy"] == ["callable"]
    assert rows["Tensor.tolist"] == ["callable"]
    assert len(lines) > 500
    counts = re.fullmatch(r"(\d+) public names: (\d+) callables, (\d+) operators, (\d+) overload sets", lines[-1])
    assert counts is not None
    total, *parts = map(int, counts.groups())
    assert total == sum(parts) == len(lines) - 2

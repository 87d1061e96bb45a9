"""``candelabra explain --graph``: the compiled functions of a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from candelabra._cli.main import main

PROGRAM = """
import warnings
import candelabra as cd

@cd.compile
def scaled(x):
    return x * 2 + 1

@cd.compile
def branching(x):
    return x if x.sum() > 0 else -x

w = cd.ones(3, requires_grad=True)
loss = cd.compile(lambda x: (x * w).sum())
for _ in range(2):
    scaled(cd.ones(3))
    loss(cd.ones(3)).backward()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    branching(cd.ones(3))
"""


def test_graphs_of_a_program(tmp_path: Path, capsys: Any) -> None:
    """Each compiled function is shown with its graphs, and with the line that broke it."""
    (tmp_path / "program.py").write_text(PROGRAM)
    assert main(["explain", "--graph", str(tmp_path / "program.py")]) == 0
    text = capsys.readouterr().out
    assert "scaled (program.py:5): 1 program\n" in text
    assert "2 operators, 2 kernels and views, 4.58e-05 MiB read and written" in text
    assert "v0: float32[3] = mul(a0, 2)  # program.py:7" in text
    assert "branching (program.py:9): 0 programs\n  other calls run in segments: the value of a tensor is read" in text
    assert text.count("graph(a0: float32[3]") >= 2


def test_programs_without_compiled_functions(tmp_path: Path, capsys: Any) -> None:
    """A program that compiles nothing, or that does not exist, is an error."""
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert main(["explain", "--graph", str(tmp_path / "empty.py")]) == 1
    assert "compiles no function that still exists at its end" in capsys.readouterr().err
    assert main(["explain", "--graph", str(tmp_path / "missing.py")]) == 1
    assert "missing.py" in capsys.readouterr().err


@pytest.mark.usefixtures("lantern")
def test_fused_groups(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a device has fused is shown as one kernel, with the bytes that it moves."""
    from candelabra.graph import fuse, runner
    from candelabra.library import open_device

    def compile(graph: Any) -> Any:
        return runner(fuse(graph, lambda node: node.name in ("mul", "add")))

    monkeypatch.setattr(open_device("lantern").backend, "compile", compile, raising=False)
    (tmp_path / "program.py").write_text(
        "import candelabra as cd\nf = cd.compile(lambda x: x * 2 + 1)\nf(cd.ones(1 << 18, device='lantern'))\n"
    )
    assert main(["explain", "--graph", str(tmp_path / "program.py")]) == 0
    text = capsys.readouterr().out
    assert "2 operators, 1 kernels and views, 4 MiB read and written by single kernels, 2 MiB by 1 fused ones" in text
    assert "= mul+add(a0)" in text

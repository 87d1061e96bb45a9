"""Operators of plugins without a device: declared at the first use of an unknown name, once, each plugin for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

GOOD = """
from candelabra.backend import hookimpl

@hookimpl
def candelabra_operators():
    print("called")
    from candelabra import Tensor
    from candelabra.library import operator, pointwise, public

    @operator(pointwise)
    def doubled(input: "Tensor") -> "Tensor":
        "Return twice the input."
        return input + input

    @public
    def is_doubled(input: "Tensor", other: "Tensor") -> "bool":
        "Return whether one is twice the other."
        return bool((input == other + other).all())
"""
BAD = """
from candelabra.backend import hookimpl

@hookimpl
def candelabra_operators():
    from candelabra import Tensor
    from candelabra.library import operator, pointwise

    @operator(pointwise)
    def tripled(input: "Tensor") -> "Tensor":
        "Return three times the input."
        return input * 3

    raise LookupError("the table of constants is missing")
"""


def run(program: str, folder: Path, **plugins: str) -> str:
    """Run a program in a process in which these plugins without a device are installed, and return its output."""
    for name, text in plugins.items():
        (folder / f"{name}_plugin.py").write_text(text)
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[candelabra.plugins]\n{name} = {name}_plugin\n")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_unknown_name_declares_the_operators_once(tmp_path: Path) -> None:
    """Records, public callables, methods and in-place forms exist then; known names call no plugin."""
    program = """
import candelabra as cd
assert cd.add(cd.ones(2), 1).tolist() == [2.0, 2.0]
print("known")
assert cd.doubled(cd.ones(2)).tolist() == [2.0, 2.0]
assert cd.is_doubled(cd.ones(2).doubled(), cd.ones(2))
assert cd.ones(2).doubled_().tolist() == [2.0, 2.0]
assert not hasattr(cd, "quadrupled")
assert "doubled" in dir(cd)
"""
    assert run(program, tmp_path, good=GOOD) == "known\ncalled\n"


def test_listing_and_explaining_know_them_without_a_tensor(tmp_path: Path) -> None:
    """The registry, and ``explain`` in Python, declare them too."""
    program = """
import candelabra as cd
from candelabra.library import OPERATORS, entry_named
assert entry_named("doubled").name == "doubled"
assert "doubled" in list(OPERATORS) and OPERATORS.get("quadrupled") is None
assert cd.explain("doubled", cd.ones(2)).route == "composite"
"""
    assert run(program, tmp_path, good=GOOD) == "called\n"


def test_a_plugin_that_raises_is_reported_and_undone(tmp_path: Path) -> None:
    """A warning names the plugin and the reason, and the operators of other plugins exist."""
    program = """
import warnings
import candelabra as cd
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert cd.doubled(cd.ones(1)).item() == 2.0
    assert not hasattr(cd, "tripled") and not hasattr(cd.Tensor, "tripled")
for warning in caught:
    print(warning.category.__name__, warning.message)
"""
    shown = run(program, tmp_path, good=GOOD, bad=BAD)
    reason = "LookupError: the table of constants is missing"
    assert f"RuntimeWarning plugin 'bad' (bad_plugin) failed to declare its operators: {reason}" in shown
    assert shown.count("Warning") == 1

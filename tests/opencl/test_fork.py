"""A device in a forked process, which is Linux's default for worker processes."""

import subprocess
import sys

import pytest

HEAD = """
import multiprocessing, os, sys
import candelabra as cd

def use(make):
    try:
        return f"{make().sum().item()}"
    except RuntimeError as error:
        return str(error)

def child(make):
    pid = os.fork()
    if not pid:
        print(use(make), flush=True)
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
USES = {
    "a new tensor": "lambda: cd.ones(3, device='opencl:0')",
    "a kernel that has run": "lambda: x + 1",
    "a read": "lambda: x.cpu()",
    "a copy": "lambda: x[1:].contiguous()",
    "a write in place": "lambda: x.mul_(2)",
}
REFUSED = (
    "opencl:0 cannot be used in a forked process: the driver's threads exist only in the process that it was forked"
)


def run(program: str) -> list[str]:
    """Return the lines that a program prints. A child that hangs ends it with an error."""
    command = [sys.executable, "-W", "error", "-c", HEAD + program]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()


def test_a_device_that_the_parent_uses_raises_in_a_child() -> None:
    """Every use raises and says what to do, the child ends as usual, and the parent goes on."""
    children = "".join(f"child({use})\n" for use in USES.values())
    lines = run(
        f"x = cd.arange(4.0, device='opencl:0')\nassert (x + 1).sum().item() == 10\n{children}print(use(lambda: x))"
    )
    assert len(lines) == len(USES) + 1
    for line in lines[:-1]:
        assert line.startswith(REFUSED)
        assert "Start worker processes with multiprocessing's method 'spawn', or use the device only in the" in line
    assert lines[-1] == "6.0"


@pytest.mark.parametrize("before", ["", "x = cd.ones(3)\n"], ids=["nothing", "the host"])
def test_a_device_that_the_parent_has_not_used_works_in_a_child(before: str) -> None:
    """The child loads the driver for itself."""
    assert run(f"{before}child(lambda: cd.ones(3, device='opencl:0') + 1)") == ["6.0"]


def test_a_loaded_driver_is_enough_to_raise() -> None:
    """The driver starts its threads when its devices are listed."""
    (line,) = run(
        "assert cd.library.plugins.backend('opencl')[0].devices()\nchild(lambda: cd.ones(3, device='opencl:0'))"
    )
    assert line.startswith(REFUSED)

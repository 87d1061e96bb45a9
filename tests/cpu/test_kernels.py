"""The CPU's kernel table, which is collected from the package's modules."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import candelabra as cd
import pytest
from candelabra.library import OPERATORS
from candelabra_cpu import elementwise, kernels, lapack


def module(name: str, **kernels: Any) -> ModuleType:
    """Return a module with a kernel table."""
    made = ModuleType(name)
    made.KERNELS = kernels  # type: ignore[attr-defined]
    return made


def test_every_module_with_kernels_is_joined() -> None:
    """The table contains the functions of all modules' tables."""
    table = kernels.table()
    assert all(table[name] is kernel for name, kernel in elementwise.KERNELS.items())
    assert all(table[name] is kernel for name, kernel in lapack.KERNELS.items())


def test_modules_without_kernels_are_passed_over() -> None:
    """A module without KERNELS adds nothing."""
    assert kernels.merge_kernels([ModuleType("plain"), module("some", add=min)]) == {"add": min}


def test_a_kernel_in_two_modules_is_an_error_that_names_both() -> None:
    """No module overrides another's kernel silently."""
    with pytest.raises(TypeError, match="kernel 'add' is defined in both first and second: remove one"):
        kernels.merge_kernels([module("first", add=min), module("second", add=max)])


def test_the_table_is_made_without_scipy() -> None:
    """SciPy has the longest import time, and is imported by the first kernel that needs it."""
    code = "import sys, candelabra as cd; cd.ones(1); sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", kernels.ARITHMETIC)
def test_bfloat16_combined_with_a_python_number_stays_bfloat16(name: str) -> None:
    """NumPy promotes to float32; the payload's dtype must be the tensor's, whichever operand is the number."""
    x = cd.tensor([3.0, 5.0], dtype=cd.bfloat16)
    record = OPERATORS[name]
    calls = [(x, 1.25), (x, x)] if name == "fmod" else [(x, 1.25), (1.25, x), (x, x)]
    for args in calls:
        assert record.function(*args)._payload.dtype.name == "bfloat16", args

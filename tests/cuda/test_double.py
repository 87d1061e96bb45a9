"""The double of CuPy has only names that CuPy has, otherwise tests with it would be worthless."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

OWN = {
    "cuda.runtime": {"devices", "driver", "version", "device", "failing", "copies", "recorded"},
    "cuda.driver": {"launches"},
    "RawModule": {"made"},
    "cuda.Stream": {"current", "count", "capturing", "queue", "forbid"},
    "cuda.Event": {"made"},
    "cuda.MemoryPool": {"capacity", "free"},
}
"""The public names of the doubles that exist only for the tests, by the name that they replace."""


def missing(double: Any, real: Any, prefix: str = "") -> list[str]:
    """Return the public names of a double that the real object lacks, including nested namespaces."""
    found = []
    for name in vars(double) if not isinstance(double, type) else dir(double):
        path = f"{prefix}.{name}".lstrip(".")
        if name.startswith("_") or name in OWN.get(prefix, set()):
            continue
        if not hasattr(real, name):
            found.append(path)
        elif path in ("cuda", "cuda.memory", "cuda.device") or path in OWN:
            below = getattr(double, name)
            found += missing(below, getattr(real, name), path)
            if path in ("cuda.runtime", "cuda.driver"):
                found += missing(type(below), getattr(real, name), path)
    return found


def test_every_name_of_the_double_is_one_of_cupy(doubles: ModuleType) -> None:
    """Functions of the runtime and the driver, streams, events, pools, and names of the module exist in CuPy."""
    cupy = pytest.importorskip("cupy")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # nor a deprecated name
        assert missing(doubles.double(), cupy) == []


def test_a_name_that_cupy_lacks_is_found(doubles: ModuleType) -> None:
    """The check detects such a name."""
    cupy = pytest.importorskip("cupy")
    made = doubles.double()
    made.cuda.nonsense = 1
    made.cuda.runtime.nonsense = 1
    assert missing(made, cupy) == ["cuda.runtime.nonsense", "cuda.nonsense"]

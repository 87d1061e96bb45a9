"""What kernels need of a namespace: the declared names are those that they use, and missing ones are reported once."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import candelabra_arrayapi
import numpy as np
import pytest
from candelabra.library import OPERATORS, plugins
from candelabra_arrayapi import MissingFunctionsWarning, missing_functions, requirements
from candelabra_arrayapi.requirements import names, needs, snapshot
from candelabra_conformance.running import Options, run

from tests.arrayapi.recording import DTYPES, RecordingBackend

PAGE = Path(__file__).parents[2] / "docs" / "your-array-library.md"

RARE = {
    ("gather", "empty"), ("unfold", "zeros"), ("diagonal", "zeros"), ("as_strided", "zeros"),  # of empty arrays
    ("index", "asarray"),  # without an index array
    ("max_pool", "iinfo"), ("max_pool_values", "iinfo"),  # of integers
    ("sum", "astype"), ("prod", "astype"), ("sum_pool", "astype"), ("sum_pool_adjoint", "astype"),  # of half types
    ("max_pool", "int64"), ("fft_r2c", "complex64"),  # constants, which are read when the table is made
}  # fmt: skip
"""Names that no value case of the suite uses."""


def without(*lacking: str) -> SimpleNamespace:
    """Return NumPy's namespace without some of its names."""
    xp = snapshot(np, DTYPES)
    xp.__name__ = "partial"
    for name in lacking:
        extension, _, function = name.rpartition(".")
        delattr(getattr(xp, extension) if extension else xp, function)
    return xp


def recorded(dtypes: tuple[str, ...], layouts: tuple[str, ...]) -> dict[str, set[str]]:
    """Return the names that each kernel uses in the value cases of these dtypes."""
    backend = RecordingBackend()
    remove = plugins.add_backend(backend)
    try:
        patterns = tuple(f"*/value/{d}/{layout}" for d in dtypes for layout in layouts)
        chosen = tuple(name for name in candelabra_arrayapi.kernels(np, DTYPES, strided=False) if name in OPERATORS)
        done = run("notebook:0", Options(level=3, operators=chosen, patterns=patterns))
    finally:
        remove()
    assert [(r.case.id, r.message) for r in done.results if r.verdict == "failed"] == []
    return backend.used


def test_kernels_use_no_name_that_they_do_not_declare() -> None:
    """A kernel that uses another name of the namespace would fail where the namespace lacks it."""
    used = recorded(("float32",), ("contiguous",))
    assert len(used) > 100
    assert {name: found - needs(name) for name, found in used.items() if found - needs(name)} == {}


@pytest.mark.thorough
def test_kernels_use_each_name_that_they_declare() -> None:
    """A namespace that lacks a name loses no kernel without need."""
    used = recorded(("float32", "float64", "complex64", "int64", "uint8", "bool"), ("contiguous", "0-d"))
    unused = {(operator, name) for operator, found in used.items() for name in needs(operator) - found}
    assert unused <= RARE, "declared, and not used"


@pytest.mark.parametrize("lacking", ["take", "searchsorted", "exp", "linalg.eig", "fft.rfftn", "where"])
def test_operators_whose_functions_are_missing_have_no_kernel(lacking: str) -> None:
    """All others have one, and one warning names the function and the operators."""
    with pytest.warns(
        MissingFunctionsWarning, match=f"'partial' lacks {re.escape(lacking)}. These operators"
    ) as caught:
        table = candelabra_arrayapi.kernels(without(lacking), DTYPES, strided=False)
    whole = candelabra_arrayapi.kernels(np, DTYPES, strided=False)
    lost = {name for name in whole if lacking in needs(name)}
    assert lost
    assert set(table) == set(whole) - lost
    assert len(caught) == 1
    assert all(name in str(caught[0].message) for name in lost)


def test_names_that_are_known_to_be_missing_are_not_reported() -> None:
    """The vendor has read the warning once; other missing names are reported still."""
    xp = without("hypot", "nextafter")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        candelabra_arrayapi.kernels(xp, DTYPES, missing=("hypot", "nextafter"))
    with pytest.warns(MissingFunctionsWarning, match=r"lacks nextafter\. .* serves them: nextafter\. Add"):
        candelabra_arrayapi.kernels(xp, DTYPES, missing=("hypot",))


def test_a_namespace_without_extensions_has_all_other_kernels() -> None:
    """``linalg`` and ``fft`` are optional in the standard."""
    xp = without()
    del xp.linalg, xp.fft
    lost = missing_functions(xp)
    assert {name.partition("_")[0] for name in lost} == {"linalg", "fft"}
    assert set(lost) == set(missing_functions(xp, list(requirements.NEEDS)))


def test_isdtype_is_supplied() -> None:
    """Older libraries lack it; the dtypes that the backend declares replace it."""
    xp = without("isdtype")
    assert missing_functions(xp) == {}
    isdtype = snapshot(xp, DTYPES).isdtype
    for held in DTYPES.values():
        for kind in ("bool", "integral", "real floating", "complex floating", ("bool", "integral")):
            assert isdtype(held, kind) == np.isdtype(held, kind)
    assert not isdtype(np.dtype("V2"), "integral")


def test_additions_to_rows_need_no_sorting_if_the_library_can_accumulate() -> None:
    """With ``accumulate``, index_add and scatter_add have kernels without argsort and searchsorted."""

    def accumulate(x: Any, index: Any, values: Any) -> Any:
        out = x.copy()
        np.add.at(out, index, values)
        return out

    xp = without("argsort", "searchsorted")
    with pytest.warns(MissingFunctionsWarning):
        table = candelabra_arrayapi.kernels(xp, DTYPES, accumulate=accumulate)
    assert {"index_add", "scatter_add"} <= set(table)
    assert not {"index_put", "scatter_src", "sort"} & set(table)
    added = table["index_add"](np.zeros(2), 0, np.array([1, 1, 0]), np.array([1.0, 2.0, 4.0]))
    assert added.tolist() == [4.0, 3.0]


def test_int64_is_required() -> None:
    """Indices have this dtype."""
    dtypes = {d: held for d, held in DTYPES.items() if d.name != "int64"}
    with pytest.raises(ValueError, match=r"kernels\(\) needs int64 among the dtypes"):
        candelabra_arrayapi.kernels(np, dtypes)


# -- the page ---------------------------------------------------------------------------------------------------------
def rows() -> str:
    """Return the page's table: each name that kernels use, with the operators that need it."""
    operators: dict[str, list[str]] = defaultdict(list)
    for operator in [*requirements.NEEDS, "other views"]:
        for name in needs(operator):
            operators[name].append(operator)
    ordered = sorted(names(), key=lambda name: (-len(operators[name]), name))
    lines = ["| name | operators | needed by |", "|---|---|---|"]
    for name in (name for name in ordered if len(operators[name]) > 1):
        found = sorted(operators[name])
        shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
        lines.append(f"| `{name}` | {len(found)} | {shown} |")
    alone = ", ".join(f"`{name}`" for name in ordered if len(operators[name]) == 1)
    return "\n".join(lines) + f"\n\nOne operator each: {alone}.\n"


def test_the_page_lists_what_kernels_need() -> None:
    """The table of docs/your-array-library.md is the declared one."""
    assert rows() in PAGE.read_text()

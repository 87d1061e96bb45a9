"""The index walker: coordinates and offsets from a flat index, in one module."""

import re
from pathlib import Path

import candelabra_clike
from candelabra_clike.language.kernels import KernelBuilder
from candelabra_clike.templates.index_walker import (
    advance,
    advance_variables,
    coordinate_variables,
    coordinates,
    declare_coordinates,
    flat_index,
    moves,
    outer_coordinates,
    row_offsets,
)

DIVIDING = re.compile(r"/=\s*\w+\{\w+\}|assign\((\w+), \1 // ")
"""A division that leaves the rest of a flat index, by the size of a dim, as text and as a typed statement."""


def test_the_outermost_coordinate_is_what_remains() -> None:
    """Its size is no divisor, unless the flat index counts more than these dims."""
    assert coordinates("i", 2, "n", lambda d, p: f"x{d} = {p};") == ["x1 = i % n1;", "i /= n1;", "x0 = i;"]
    assert declare_coordinates("q", "i", 2, "n") == "INDEX q1 = i % n1;\ni /= n1;\nINDEX q0 = i % n0;\ni /= n0;\n"
    assert coordinates("i", 0, "n", lambda d, p: "") == []


def test_offsets_move_by_the_strides_of_a_coordinate() -> None:
    """A single dim needs no division."""
    assert moves("i % n0", {"a": "s", "b": "t"}) == "{ const INDEX p = i % n0; a += p * s; b += p * t; }"
    assert row_offsets(("a",), 1) == "INDEX a_row = a_at;\na_row += (row) * a_s0;\n"


def test_coordinates_advance_with_carry() -> None:
    """The statement after the last element stands within all carries."""
    assert advance("q", 2, "n", "++image;") == "if (++q1 == n1) { q1 = 0; if (++q0 == n0) { q0 = 0; ++image; } }"
    assert advance("q", 3, "n", first=2) == "if (++q2 == n2) { q2 = 0;  }"


def test_variables_advance_with_carry() -> None:
    """Those of a kernel as typed statements do, too. Dims without a size before them need no division."""
    k = KernelBuilder("rows", wide=False)
    sizes = k.numbers("n0", "n1")
    at = coordinate_variables(k, k.item, sizes)
    advance_variables(k, at, sizes)
    assert coordinate_variables(k, k.item, []) == []
    assert k.source().body.splitlines() == [
        "INDEX left = GLOBAL_ID;", "INDEX i1 = left % n1;", "left = left / n1;", "INDEX i0 = left;",
        "i1 = i1 + 1;", "if (i1 == n1) {", "i1 = 0;", "i0 = i0 + 1;", "if (i0 == n0) {", "i0 = 0;", "}", "}",
    ]  # fmt: skip


def test_the_coordinates_of_a_row_and_the_number_of_its_plane() -> None:
    """Together with a flat index they are those of the row, which the reverse computes."""
    k = KernelBuilder("rows", wide=False)
    sizes = k.per_dim("n", 2)
    plane, outer = outer_coordinates(k, "plane", k.item, sizes)
    k.let("row", flat_index([plane, *outer], [plane, *sizes]))
    assert k.source().body.splitlines() == [
        "INDEX plane = GLOBAL_ID;", "const INDEX o1 = plane % n1;", "plane = plane / n1;",
        "const INDEX o0 = plane % n0;", "plane = plane / n0;", "const INDEX row = (plane * n0 + o0) * n1 + o1;",
    ]  # fmt: skip


def test_no_other_module_divides_by_the_sizes_of_dims_in_a_loop() -> None:
    """Elsewhere an index is divided once, by the size of the last dim for example."""
    root = Path(candelabra_clike.__file__).parent
    dividing = [file.name for file in root.rglob("*.py") if DIVIDING.search(file.read_text("utf-8"))]
    assert dividing == ["index_walker.py"], "use coordinates() or each_coordinate()"

"""Random programs of views and in-place writes, compared with equivalent functional programs."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra.autograd import grad
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROWS, COLUMNS = 3, 4

VIEWS = ("row", "column", "part", "transpose", "flat", "self")
WRITES = ("mul", "add", "copy", "sin", "square", "assign")
STEP = st.tuples(st.sampled_from(VIEWS), st.integers(0, 2), st.sampled_from(WRITES), st.booleans())


def view_of(base: Any, kind: str, number: int) -> Any:
    """Return a view of a ROWS × COLUMNS tensor."""
    if kind == "row":
        return base[number]
    if kind == "column":
        return base[:, number]
    if kind == "part":
        return base[1:, number::2]
    if kind == "transpose":
        return base.t()[number]
    if kind == "flat":
        return base.view(-1)[number * 2 : number * 2 + 5]
    return base


def written(value: Any, write: str, w: Any) -> Any:
    """Return the values of the viewed elements after a write, as a new tensor."""
    if write == "mul":
        return value * w
    if write == "add":
        return value + w * w
    if write == "copy":
        return w.expand(value.shape) * 1.0
    if write == "sin":
        return value.sin()
    if write == "assign":
        return value * 0 + w
    return value * value


def write_in_place(view: Any, write: str, w: Any) -> None:
    """Do the same write in place."""
    if write == "mul":
        view.mul_(w)
    elif write == "add":
        view.add_(w * w)
    elif write == "copy":
        view.copy_(w)
    elif write == "sin":
        view.sin_()
    elif write == "assign":
        view[...] = w
    else:
        view.mul_(view)


def functional(base: Any, kind: str, number: int, write: str, w: Any) -> Any:
    """Return the base after one write, computed without in-place operators."""
    places = cd.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    chosen = view_of(places, kind, number).reshape(-1)
    new = written(view_of(base, kind, number), write, w).reshape(-1)
    flat = base.reshape(-1).clone()
    return flat.index_put((chosen,), new).reshape(ROWS, COLUMNS)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=1, max_size=5), st.sampled_from(VIEWS), st.booleans())
def test_programs_in_place_agree_with_functional_ones(steps: list[Any], watched: str, late: bool) -> None:
    """Values, first and second derivatives agree; an older view sees every later write."""
    x = cd.tensor([[0.1 * (i * COLUMNS + j + 1) for j in range(COLUMNS)] for i in range(ROWS)], dtype=cd.float64)
    x.requires_grad_()
    w = cd.tensor(0.7, dtype=cd.float64, requires_grad=True)
    base = x * 1.0 if not late else cd.ones(ROWS, COLUMNS, dtype=cd.float64)
    older = view_of(base, watched, 1)
    expected = base.clone()
    for kind, number, write, through_older in steps:
        view = older if through_older else view_of(base, kind, number)
        kind, number = (watched, 1) if through_older else (kind, number)
        expected = functional(expected, kind, number, write, w)
        write_in_place(view, write, w)
    assert base.tolist() == expected.tolist()
    got, want = (base * base).sum() + older.sum(), (expected * expected).sum() + view_of(expected, watched, 1).sum()
    assert got.requires_grad == want.requires_grad
    if not want.requires_grad:
        return
    firsts = [grad(v, (x, w), create_graph=True, materialize_grads=True) for v in (got, want)]
    for a, b in zip(*firsts, strict=True):
        assert close(a, b)
    totals = [first[0].sum() + first[1] for first in firsts]
    if totals[1].requires_grad:
        seconds = [grad(t, (x, w), materialize_grads=True) for t in totals]
        for a, b in zip(*seconds, strict=True):
            assert close(a, b)


def close(a: Any, b: Any) -> bool:
    """Assert that two tensors are equal up to rounding."""
    return bool(((a - b).abs() <= 1e-9 * (1 + b.abs())).all().item())

"""Samples of neighbouring integers beyond 2**24 and 2**53, of which a kernel that computes in floats sees only one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import special
from candelabra_conformance.samples.sample import HERE, Sample, sample
from candelabra_conformance.samples.special_values import neighbours

ORDER: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("sort", "argsort", "ordered", "median_dim", "nanmedian_dim", "mode", "argmax", "argmin"), (1,)),
    **dict.fromkeys(("max_dim", "min_dim", "cummax", "cummin"), (1,)),
    **dict.fromkeys(("amax", "amin", "sum", "nansum", "any", "all"), ((1,),)),
    **dict.fromkeys(("msort", "median_all", "aminmax", "unique", "unique_consecutive"), ()),
    "topk": (3, 1), "kthvalue": (2, 1), "cumsum": (1,), "cumprod": (1,), "diff": (), "flip": ((0,),),
}  # fmt: skip
"""The arguments after the tensor, by operator."""


def near(t: Maker) -> Array:
    """Return two rows of four neighbours around 2**24 and two around 2**53, as far as the dtype represents them.

    The largest of the first row and the smallest of the second are odd, and are ties with the element before them if
    they are rounded to a float.
    """
    around = [b + k for b in (1 << 24, 1 << 53) for k in (0, 1, -2, -1, 4, 3, 6, 5)]
    limit = np.iinfo(t.numpy).max
    return np.array([n for n in around if n <= limit], t.numpy)


def _exceeds_floats(t: Maker) -> bool:
    """Return whether the dtype has integers that float32 does not distinguish."""
    return t.is_integer and t.dtype.itemsize >= 4


@special(*ORDER)
def ordered(t: Maker) -> Iterator[Sample]:
    """Yield rows of neighbours, none of which is a tie."""
    if _exceeds_floats(t):
        rows = near(t).reshape(-1, 4)
        yield sample(rows, *ORDER[t.operator], gradient=False, note="neighbours")


@special("searchsorted", "bucketize", "sorted_place")
def searched(t: Maker) -> Iterator[Sample]:
    """Yield values between which only one integer lies, and a number."""
    if not _exceeds_floats(t):
        return
    row, values = np.sort(near(t)), near(t)
    for right in (False, True):
        if t.operator == "bucketize":
            yield sample(values, row, right=right, note="neighbours")
        elif t.operator == "searchsorted":
            yield sample(row, values, right=right, note="neighbours")
            yield sample(row, int(row[-1]), right=right, note="a number")
        else:
            yield sample(row, values, right, note="neighbours")


@special("isin")
def members(t: Maker) -> Iterator[Sample]:
    """Yield neighbours of members, few and many."""
    if _exceeds_floats(t):
        values = near(t)
        yield sample(values, values[1::2], note="few")
        yield sample(values, np.concatenate([values[1::2], np.arange(40).astype(t.numpy)]), note="many")
        yield sample(values, int(values[1]), note="a number")


@special("full")
def filled(t: Maker) -> Iterator[Sample]:
    """Yield numbers that no float represents."""
    if _exceeds_floats(t):
        for number in neighbours(t):
            yield sample((3,), int(number), dtype=t.dtype, device=HERE, note=f"{number}")


@special("full_like", "Tensor.fill_", "Tensor.new_full")
def filled_like(t: Maker) -> Iterator[Sample]:
    """Yield a number that no float represents."""
    if _exceeds_floats(t):
        size = ((2,),) if t.operator == "Tensor.new_full" else ()
        yield sample(t(3), *size, int(near(t)[-3]), note="a neighbour")


@special("masked_fill", "where")
def selected(t: Maker) -> Iterator[Sample]:
    """Yield numbers that no float represents."""
    if _exceeds_floats(t):
        mask, number = np.array([True, False, True]), int(near(t)[-3])
        yield sample(t(3), mask, number) if t.operator == "masked_fill" else sample(mask, t(3), number)


@special("clamp")
def limited(t: Maker) -> Iterator[Sample]:
    """Yield bounds that no float represents."""
    if _exceeds_floats(t):
        x = near(t)
        yield sample(x, int(x[1]), None, note="from below")
        yield sample(x, None, int(x[-3]), note="from above")


@special("scatter_value", "index_fill")
def scattered(t: Maker) -> Iterator[Sample]:
    """Yield a number that no float represents."""
    if _exceeds_floats(t):
        yield sample(t(4), 0, t.index(2, 0), int(near(t)[-3]))


@special("arange")
def ranges(t: Maker) -> Iterator[Sample]:
    """Yield a range across 2**24, and one across 2**53, with steps of 1."""
    if _exceeds_floats(t):
        for start in (int(n) - 3 for n in near(t)[1::8]):
            yield sample(start, 1, 7, dtype=t.dtype, device=HERE, note=f"from {start}")


@special("matmul")
def multiplied(t: Maker) -> Iterator[Sample]:
    """Yield products with neighbours, and sums of products that pass 2**53."""
    if _exceeds_floats(t):
        x = near(t)[-4:]
        yield sample(x.reshape(2, 2), np.array([[1, 0], [1, 1]], t.numpy), note="neighbours")
        yield sample(np.array([[3, 5]], t.numpy), x[:2].reshape(2, 1), note="multiples")


@special("scatter_add", "index_add")
def added(t: Maker) -> Iterator[Sample]:
    """Yield ones that are added to neighbours."""
    if _exceeds_floats(t):
        x = near(t)[-4:]
        yield sample(x, 0, t.index(0, 1, 1, 3), np.ones(4, t.numpy))


@special("scatter_extreme")
def extremes(t: Maker) -> Iterator[Sample]:
    """Yield neighbours of the old values."""
    if _exceeds_floats(t):
        x = near(t)[-4:]
        for reduce in ("amax", "amin"):
            yield sample(x, 0, t.index(0, 1, 1, 2), x[::-1].copy(), reduce, True, note=reduce)


@special("equal")
def equal_neighbours(t: Maker) -> Iterator[Sample]:
    """Yield neighbours, which are not equal."""
    if _exceeds_floats(t):
        x = near(t)[-4:]
        yield sample(x, x + x.dtype.type(1))
        yield sample(x, x.copy())


WINDOWS: Final[dict[str, Callable[[Array, Array], tuple[Any, ...]]]] = {
    **dict.fromkeys(("max_pool", "max_pool_values"), lambda x, one: (x, (2,), (2,), (0,), (1,), (x.shape[-1] // 2,))),
    "sum_pool": lambda x, one: (x, (1,), (1,), (0,), (1,), (x.shape[-1],)),
    "sum_pool_adjoint": lambda x, one: (x, x.shape, (1,), (1,), (0,), (1,)),
    "scatter_planes": lambda x, one: (x, np.arange(x.size)[::-1].reshape(x.shape).copy(), x.shape[-1], True),
    "conv": lambda x, one: (x, one, None, (1,), (0,), (1,), 1),
    "conv_input": lambda x, one: (x, one, x.shape, (1,), (0,), (1,), 1),
    "conv_weight": lambda x, one: (x, one, x.shape, (1,), (0,), (1,), 1),
}
"""The arguments of operators on windows whose results are neighbours, given neighbours and a one."""


@special(*WINDOWS)
def in_windows(t: Maker) -> Iterator[Sample]:
    """Yield neighbours of which each window has one, or two that are not equal."""
    if _exceeds_floats(t):
        x = near(t).reshape(1, 1, -1)
        yield sample(*WINDOWS[t.operator](x, np.ones((1, 1, 1), t.numpy)), gradient=False, note="neighbours")


@special("lcm")
def multiples(t: Maker) -> Iterator[Sample]:
    """Yield neighbours, each of which is its least multiple that is one of 1."""
    if _exceeds_floats(t):
        yield sample(near(t), np.ones_like(near(t)), note="of 1")

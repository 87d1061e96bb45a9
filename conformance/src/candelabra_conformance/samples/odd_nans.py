"""Samples of NaN with the sign bit, which a comparison of bits sorts first, and with every bit of the payload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import ALL, FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import special
from candelabra_conformance.samples.sample import Sample, sample
from candelabra_conformance.samples.special_values import odd_nans

ALONG: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("sort", "argsort", "ordered", "median_dim", "nanmedian_dim", "argmax", "argmin"), (1,)),
    **dict.fromkeys(("max_dim", "min_dim", "cummax", "cummin", "cumsum", "softmax", "log_softmax"), (1,)),
    **dict.fromkeys(("amax", "amin", "sum", "mean", "prod", "nansum", "nanmean", "any", "all", "logsumexp"), ((1,),)),
    **dict.fromkeys(("msort", "aminmax", "isnan", "nan_to_num", "count_nonzero"), ()),
    "topk": (2, 1), "kthvalue": (3, 1),
}  # fmt: skip
"""The arguments after the tensor, by operator."""


@special(*ALONG)
def among_numbers(t: Maker) -> Iterator[Sample]:
    """Yield both NaNs among infinities and numbers."""
    if not t.is_floating:
        return
    negative, full = odd_nans(t)
    rows = t.array([[1.0, 0.0, -np.inf, 2.0], [np.inf, 1.0, 0.0, -1.0], [-2.0, 3.0, 0.5, 1.0]])
    rows[0, 1], rows[1, 2], rows[1, 0] = negative, full, negative
    yield sample(rows, *ALONG[t.operator], gradient=False, note="NaN with other bits")


@special("cast")
def converted(t: Maker) -> Iterator[Sample]:
    """Yield NaNs whose payload does not fit into a narrower dtype: they stay NaN, and are True."""
    if t.is_floating:
        narrow = np.array([_least_payload(t)], f"u{t.numpy.itemsize}").view(t.numpy)
        values = np.concatenate([odd_nans(t), narrow, t.array([np.inf, 1.0])])
        for target in ALL:
            if target.category >= FLOATING or target.name == "bool":
                yield sample(values, dtype=target, note=f"NaN to {target.name}")


def _least_payload(t: Maker) -> int:
    """Return the bits of a quiet NaN with the last bit of the payload set."""
    bits = 8 * t.numpy.itemsize
    quiet = odd_nans(t)[:1].view(f"u{t.numpy.itemsize}")[0]
    return (int(quiet) & ((1 << (bits - 1)) - 1)) | 1


@special("equal", "isclose")
def never_equal(t: Maker) -> Iterator[Sample]:
    """Yield NaNs of equal bits, which are not equal."""
    if t.is_floating:
        values = np.concatenate([odd_nans(t), t.array([1.0])])
        yield sample(values, values.copy(), note="NaN with other bits")

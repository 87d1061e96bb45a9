"""Kernels written once, over any namespace of the Python Array API standard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra_arrayapi import fft, floating, indexing, linalg, network, pointwise, reductions, shaping, sorting, views
from candelabra_arrayapi.rows import Assign, written


def kernels(
    xp: Any,
    dtypes: Mapping[Any, Any],
    device: Callable[[int], Any] = lambda index: None,
    *,
    strided: bool = True,
    assign: Assign = written,
    accumulate: Assign | None = None,
) -> dict[str, Callable[..., Any]]:
    """The kernel table over ``xp``.

    ``dtypes`` maps the core's dtypes to the namespace's; ``device(index)`` is what its creation functions are given.
    ``strided=False`` adds kernels for views, which the core cannot make without strides. Arrays that never change give
    ``assign(x, index, values)``, an array that is ``x`` but for the values at ``[index]``; and, where there is such a
    function, ``accumulate``, which adds them instead, in order, also where the index names a place twice.
    """
    return {
        **pointwise.kernels(xp),
        **floating.kernels(xp),
        **reductions.kernels(xp, dtypes),
        **shaping.kernels(xp, dtypes, device),
        **network.kernels(xp),
        **linalg.kernels(xp, dtypes),
        **fft.kernels(xp),
        **indexing.kernels(xp, dtypes, assign, accumulate),
        **sorting.kernels(xp, dtypes),
        **({} if strided else views.kernels(xp, dtypes)),
    }

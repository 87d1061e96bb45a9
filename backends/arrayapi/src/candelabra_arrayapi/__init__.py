"""Kernels for any array library that follows the Python Array API standard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra_arrayapi import fft, floating, indexing, linalg, network, pointwise, reductions, shaping, sorting, views
from candelabra_arrayapi.rows import Assign, assign_in_place


def kernels(
    xp: Any,
    dtypes: Mapping[Any, Any],
    device: Callable[[int], Any] = lambda index: None,
    *,
    strided: bool = True,
    assign: Assign = assign_in_place,
    accumulate: Assign | None = None,
) -> dict[str, Callable[..., Any]]:
    """Return the kernel table ``{operator: kernel}`` over the namespace ``xp``.

    ``dtypes`` maps the dtypes of candelabra to those of the namespace. ``device(index)`` returns the object that the
    namespace's creation functions take as ``device=``. With ``strided=False`` the table contains kernels for views,
    which the core cannot create itself on arrays without strides.

    Immutable arrays need two more functions. ``assign(x, index, values)`` returns a copy of ``x`` with ``values`` at
    ``index``. ``accumulate(x, index, values)`` is optional: it returns a copy of ``x`` in which ``values`` are added at
    ``index``, in order; an index that occurs twice receives both values.
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

"""Kernels for any array library that follows the Python Array API standard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from candelabra_arrayapi import (
    fft,
    floating,
    indexing,
    linalg,
    network,
    pointwise,
    reductions,
    shaping,
    sorting,
    views,
)
from candelabra_arrayapi.requirements import MissingFunctionsWarning, missing_functions, snapshot, warn
from candelabra_arrayapi.rows import Assign, assign_by_search, assign_in_place

__all__ = ["Assign", "assign_by_search", "assign_in_place", "kernels", "missing_functions", "MissingFunctionsWarning"]


def kernels(
    xp: Any,
    dtypes: Mapping[Any, Any],
    device: Callable[[int], Any] = lambda index: None,
    *,
    strided: bool = True,
    assign: Assign = assign_in_place,
    accumulate: Assign | None = None,
    missing: Collection[str] = (),
) -> dict[str, Callable[..., Any]]:
    """Return the kernel table ``{operator: kernel}`` over the namespace ``xp``.

    ``dtypes`` maps the dtypes of candelabra to those of the namespace. ``int64`` must be among them, since indices have
    this dtype. ``device(index)`` returns the object that the namespace's creation functions take as ``device=``, or
    None if they have no such parameter. With ``strided=False`` the table contains kernels for views,
    which the core cannot create itself on arrays without strides.

    Immutable arrays need two more functions. ``assign(x, index, values)`` returns a copy of ``x`` with ``values`` at
    ``index``. ``accumulate(x, index, values)`` is optional: it returns a copy of ``x`` in which ``values`` are added at
    ``index``, in order; an index that occurs twice receives both values. :func:`assign_by_search` creates an ``assign``
    for a namespace without such a function. ``index`` has one of two forms:

    - A 1-d int64 array of n numbers of rows, each in [0, ``x.shape[0]``). ``x`` is a vector or a matrix, and ``values``
      has the shape ``(n, *x.shape[1:])``. The numbers are unique in ``assign`` and may repeat in ``accumulate``.
    - Only in ``assign``: a tuple of ints, slices and None, with ``...`` as its last element. The ints, starts and stops
      are in range and not negative, and steps are positive. ``values`` has the shape of ``x[index]``.

    Masks, tuples of index arrays and negative numbers do not occur: the kernels replace them. ``values`` is an array in
    the dtype of ``x``, never a scalar, and needs no broadcasting.

    An operator whose kernel needs a function that the namespace lacks is not in the table. One
    :class:`MissingFunctionsWarning` lists them, except those that need only functions in ``missing``.
    """
    if not any(d.name == "int64" for d in dtypes):
        raise ValueError("kernels() needs int64 among the dtypes: indices have this dtype")
    held = snapshot(xp, dtypes)
    table = _table(held, dtypes, device, strided, assign, accumulate)
    absent = missing_functions(xp, table, getattr(assign, "needs", ()), accumulate is not None)
    warn(xp, absent, missing)
    return {name: kernel for name, kernel in table.items() if name not in absent}


def _table(
    xp: Any,
    dtypes: Mapping[Any, Any],
    device: Callable[[int], Any],
    strided: bool,
    assign: Assign,
    accumulate: Assign | None,
) -> dict[str, Callable[..., Any]]:
    """Return the table of all kernels, also of those that cannot run."""
    return {
        **pointwise.kernels(xp),
        **floating.kernels(xp),
        **reductions.kernels(xp, dtypes),
        **shaping.kernels(xp, dtypes, device),
        **network.kernels(xp, dtypes),
        **linalg.kernels(xp, dtypes),
        **fft.kernels(xp),
        **indexing.kernels(xp, dtypes, assign, accumulate),
        **sorting.kernels(xp, dtypes),
        **({} if strided else views.kernels(xp, dtypes)),
    }

"""Kernels written once, over any namespace of the Python Array API standard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra_arrayapi import fft, floating, indexing, linalg, network, pointwise, reductions, shaping, sorting


def kernels(
    xp: Any, dtypes: Mapping[Any, Any], device: Callable[[int], Any] = lambda index: None
) -> dict[str, Callable[..., Any]]:
    """The kernel table over ``xp``.

    ``dtypes`` maps the core's dtypes to the namespace's; ``device(index)`` is what its creation functions are given.
    """
    return {
        **pointwise.kernels(xp),
        **floating.kernels(xp),
        **reductions.kernels(xp, dtypes),
        **shaping.kernels(xp, dtypes, device),
        **network.kernels(xp),
        **linalg.kernels(xp, dtypes),
        **fft.kernels(xp),
        **indexing.kernels(xp, dtypes),
        **sorting.kernels(xp, dtypes),
    }

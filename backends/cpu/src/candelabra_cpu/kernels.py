"""The CPU's kernel table: the Array API's kernels over NumPy, made quiet, and what NumPy and SciPy do better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra_arrayapi
import numpy as np

from candelabra_cpu.quiet import quiet, quiet1, quiet2, quiet_into

Kernel = Callable[..., Any]


def table() -> dict[str, Kernel]:
    """``{operator: kernel}``."""
    from candelabra_cpu import (
        arranging,
        complex_numbers,
        contractions,
        convolution,
        counts,
        creation,
        distances,
        elementwise,
        fft,
        gradients,
        indexing,
        linalg,
        network,
        pointwise,
        products,
        random,
        reductions,
        scans,
        scattering,
        searching,
        sorting,
        special,
        statistics,
        viewing,
    )
    from candelabra_cpu.backend import TO_NUMPY

    base = candelabra_arrayapi.kernels(np, TO_NUMPY)
    return {
        **{name: _quieted(kernel) for name, kernel in base.items()},
        **{
            name + "_": quiet_into(kernel)
            for name, kernel in base.items()
            if isinstance(kernel, np.ufunc) and _same_dtype(kernel)
        },
        **pointwise.KERNELS,
        **products.KERNELS,
        **special.KERNELS,
        **elementwise.KERNELS,
        **complex_numbers.KERNELS,
        **reductions.KERNELS,
        **scans.KERNELS,
        **searching.KERNELS,
        **statistics.KERNELS,
        **random.KERNELS,
        **counts.KERNELS,
        **viewing.KERNELS,
        **arranging.KERNELS,
        **creation.KERNELS,
        **distances.KERNELS,
        **fft.KERNELS,
        **gradients.KERNELS,
        **indexing.KERNELS,
        **scattering.KERNELS,
        **linalg.KERNELS,
        **sorting.KERNELS,
        **convolution.KERNELS,
        **contractions.KERNELS,
        **network.KERNELS,
    }


def _quieted(kernel: Kernel) -> Kernel:
    if isinstance(kernel, np.ufunc):
        return quiet1(kernel) if kernel.nin == 1 else quiet2(kernel)
    return quiet(kernel)


def _same_dtype(ufunc: np.ufunc) -> bool:
    return (
        any(t.split("->")[0] == "f" * ufunc.nin and t.split("->")[1] == "f" for t in ufunc.types)
        or "ii->i" in ufunc.types
    )

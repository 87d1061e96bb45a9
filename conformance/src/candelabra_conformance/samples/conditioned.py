"""Matrices for samples of linear algebra: far from singular, with well-separated eigenvalues and singular values.

A matrix has the diagonal 1, 2, 3, … and noise elsewhere whose norm is about 0.5 for every size. Its condition is about
n, which is suitable for single precision, and partial pivoting has no near ties.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.samples.maker import Maker

Array = np.ndarray[Any, Any]
NOISE: Final = 0.4
SQUARES: Final = ((3, 3), (2, 4, 4), (2, 1, 5, 5), (8, 8), (17, 17))
"""Ordinary shapes of square matrices, including batches."""
WIDE: Final = ((3, 5), (2, 3, 8))
TALL: Final = ((5, 3), (2, 8, 3))
NO_SQUARES: Final = ((0, 0), (3, 0, 0), (0, 3, 3))
NO_MATRICES: Final = (*NO_SQUARES, (0, 3), (3, 0), (2, 0, 3))
MANY: Final = 40
"""The number of rows of a large matrix."""


def factorizable(d: dtype) -> bool:
    """Return whether matrices of a dtype can be factorized."""
    return d.name in ("float32", "float64", "complex64", "complex128")


def wide(t: Maker) -> type[np.float64] | type[np.complex128]:
    """Return the dtype in which matrices are computed before they are rounded to the requested one."""
    return np.complex128 if t.is_complex else np.float64


def cast(t: Maker, x: Array) -> Array:
    """Cast to the requested dtype as far as possible, since samples for refused dtypes need numbers too."""
    if not t.is_complex and x.dtype.kind == "c":
        x = x.real
    return (np.abs(x) if t.dtype.name.startswith("u") else x).astype(t.numpy)


def matrix(t: Maker, *shape: int, shifted: bool = False) -> Array:
    """Return matrices of any shape. ``shifted`` rolls the rows by one, so that elimination has to pivot."""
    rows, columns = shape[-2:]
    noise = t(*shape, low=-1.0, high=1.0).astype(wide(t)) * (NOISE / max(rows, columns, 1) ** 0.5)
    ramp = np.zeros((rows, columns))
    np.fill_diagonal(ramp, 1.0 + np.arange(min(rows, columns)))
    whole = noise + ramp
    return cast(t, np.roll(whole, 1, -2) if shifted else whole)


def adjoint(x: Array) -> Array:
    """Return the conjugate transpose."""
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(t: Maker, *shape: int, positive: bool = True) -> Array:
    """Return Hermitian matrices, positive-definite or with eigenvalues of both signs."""
    whole = matrix(t, *shape).astype(wide(t))
    whole = (whole + adjoint(whole)) / 2
    if not positive:
        signs = np.where(np.arange(shape[-1]) % 2, -1.0, 1.0)
        whole = whole - np.diag(np.arange(1.0, shape[-1] + 1)) * (1 - signs)
    return cast(t, whole)


def half_read(t: Maker, whole: Array, lower: bool) -> Array:
    """Return the same matrices with other numbers in the triangle that must not be read."""
    other = t(*whole.shape, low=3.0, high=5.0)
    unread = np.tri(whole.shape[-1], k=-1, dtype=bool)
    return cast(t, np.where(unread.T if lower else unread, other, whole))


def singular(t: Maker) -> Array:
    """Return a matrix whose elimination has an exact zero in any precision: one row is twice another."""
    return t.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 1.0, 1.0]])

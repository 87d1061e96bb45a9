"""Faults of calls with four and five dims, of which ``vmap`` makes one by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks


@breaks("matmul", caught_by="matmul/value/* matmul/vmap/*")
def products_of_five_dims_use_the_first_matrix(right: Kernel, x: Any, y: Any) -> Any:
    """In a product of tensors with five dims or more, all examples have the second matrix of the first one."""
    return right(x, np.broadcast_to(y[:1], y.shape) if y.ndim >= 5 else y)


@breaks("softmax", caught_by="softmax/value/* softmax/vmap/*")
def softmax_over_dim_four_is_over_dim_three(right: Kernel, x: Any, dim: int) -> Any:
    """The softmax over dim 4 is taken over dim 3."""
    return right(x, min(dim, 3))


@breaks("sort", caught_by="sort/value/* sort/vmap/*")
def sort_of_four_dims_orders_all_as_the_first(right: Kernel, x: Any, dim: int, descending: bool, stable: bool) -> Any:
    """In a tensor with four dims, all elements along the first one are ordered as the first of them is."""
    values, indices = right(x, dim, descending, stable)
    if x.ndim < 4 or not dim:
        return values, indices
    same = np.broadcast_to(indices[:1], indices.shape)
    return np.take_along_axis(x, same, dim), same.copy()

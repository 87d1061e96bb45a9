"""Selection of rows of a table whose gradient is a sparse tensor: only the selected rows are stored."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, sparse_coo_tensor
from candelabra.autograd.function import Function
from candelabra.nn._operators import embedding as lookup


class SparseRows(Function):
    """``weight[indices]``. The gradient of ``weight`` is a sparse tensor, without the row ``padding_idx``."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
        """Select the rows."""
        ctx.save_for_backward(indices)
        ctx.shape, ctx.padding_idx = weight.shape, padding_idx
        out: Tensor = lookup.embedding(weight, indices, padding_idx, False)
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradient of the table: the gradient of each selected row, at its index."""
        (indices,), [g] = ctx.saved_tensors, grad_outputs
        positions, values = indices.reshape(-1).long(), g.reshape(-1, ctx.shape[1])
        if ctx.padding_idx >= 0:
            kept = positions != ctx.padding_idx
            positions, values = positions[kept], values[kept]
        return sparse_coo_tensor(positions.unsqueeze(0), values, ctx.shape), None, None

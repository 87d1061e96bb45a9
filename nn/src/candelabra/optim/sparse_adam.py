"""SparseAdam (Kingma and Ba, ICLR 2015, in its lazy form): only the rows that have a gradient are updated."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor
from candelabra.optim.batches import plain
from candelabra.optim.optimizer import Optimizer, ParamsT, check_one_element, check_options
from candelabra.optim.sparse_gradients import stored_elements

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, such as those of ``nn.Embedding(…, sparse=True)``.

    The moments and the parameter change only at the positions that the gradient stores; the bias correction counts all
    steps. Raises ``ValueError`` for options out of range and for sparse or complex parameters, and ``RuntimeError``
    in a step if a gradient is dense.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element(lr)
        check_options(
            lr=(lr > 0, "learning rate", lr),
            eps=(eps > 0, "epsilon value", eps),
            beta0=(0 <= betas[0] < 1, "beta parameter at index 0", betas[0]),
            beta1=(0 <= betas[1] < 1, "beta parameter at index 1", betas[1]),
        )
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            (i, j) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_sparse
        ]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        complex_ = [
            (i, j) for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_complex()
        ]
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        """Do one step of one group."""
        if not all(p.grad.is_sparse for p in parameters):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        group = plain(group)
        for p in parameters:
            kept = self.state[p]
            if not kept:
                kept.update(step=0, exp_avg=p.detach().new_zeros(p.shape), exp_avg_sq=p.detach().new_zeros(p.shape))
            kept["step"] += 1
            _move(p, -p.grad if group["maximize"] else p.grad, kept, group)


def _move(p: Tensor, g: Any, kept: dict[str, Any], group: dict[str, Any]) -> None:
    """Update a parameter and its moments at the positions of a sparse gradient."""
    beta1, beta2 = group["betas"]
    positions, values, (p, first, second) = stored_elements(g, p, kept["exp_avg"], kept["exp_avg_sq"])
    if not values.numel():
        return
    m = first[positions] * beta1 + values * (1 - beta1)
    v = second[positions] * beta2 + values * values * (1 - beta2)
    first.index_put_(positions, m)
    second.index_put_(positions, v)
    step = kept["step"]
    rate = group["lr"] * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    p.index_put_(positions, m / (v.sqrt() + group["eps"]) * -rate, accumulate=True)


def __dir__() -> list[str]:
    return sorted(__all__)

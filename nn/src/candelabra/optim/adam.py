"""Adam (Kingma & Ba, ICLR 2015)."""

from __future__ import annotations

from typing import Any, Final

from candelabra import Tensor, zeros_like
from candelabra.dtypes import ALL
from candelabra.library import Operator
from candelabra.nn._operators.steps import adam_step, amsgrad_step
from candelabra.optim.batches import Row, StepBatch
from candelabra.optim.functional_form import functional_form
from candelabra.optim.optimizer import ParamsT, check_fused, check_options, check_rate
from candelabra.optim.per_parameter import real
from candelabra.optim.rows import RowOptimizer
from candelabra.optim.scalars import number_in, scalar
from candelabra.optim.sparse_gradients import refuse_sparse

__all__ = ["Adam", "adam", "check_averages", "update_averages"]

COMPLEX: Final = sum(d.bit for d in ALL if d.is_complex)
"""The bits of a complex tensor's key. Testing them takes a tenth of the time of ``is_complex()``."""


class Adam(RowOptimizer):
    """Steps of ``lr`` times the mean of the gradient divided by the root of its mean square, both decaying averages.

    ``betas``: the decay rates of the averages; ``eps``: added to the root; ``weight_decay``: added to the
    gradient, times the parameter, or with ``decoupled_weight_decay`` subtracted from the parameter, times the rate;
    ``amsgrad``: divide by the largest mean square so far (Reddi et al., ICLR 2018); ``maximize``: ascend;
    ``differentiable``: record the step. If the device has a kernel for whole steps, one call updates many parameters,
    unless ``fused=False``. ``foreach`` and ``capturable`` are accepted for PyTorch's programs and change nothing.
    Complex parameters are updated as pairs of real ones. Raises ``ValueError`` for options out of range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_averages(lr, betas, eps, weight_decay)
        if foreach and not capturable:
            for name, value in (("lr", lr), ("betas[0]", betas[0])):
                if isinstance(value, Tensor):
                    raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        check_fused(fused, foreach, differentiable)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def operator(self, group: dict[str, Any]) -> Operator[..., Any]:
        """Return the record of the step of a group."""
        return amsgrad_step if group["amsgrad"] else adam_step

    def batches(self, group: dict[str, Any], parameters: list[Any]) -> list[StepBatch]:
        """Return the rows of the parameters of a group, apart for each number of steps."""
        refuse_sparse("Adam does not support sparse gradients, please consider SparseAdam instead", parameters)
        amsgrad, state, last = group["amsgrad"], self.state, None
        counted: dict[float, StepBatch] = {}
        for p in parameters:
            kept = state.get(p)
            if not kept or amsgrad:
                kept = self._state_of(p, amsgrad)
            row: Row = p, p._grad, kept["exp_avg"], kept["exp_avg_sq"]
            if amsgrad:
                row = *row, kept["max_exp_avg_sq"]
            if p._keys & COMPLEX:
                row = tuple(real(t) for t in row)
            if kept["step"] is not last:  # almost all parameters share the tensor
                last = kept["step"]
                number = number_in(last) + 1
                if number not in counted:
                    counted[number] = StepBatch([], [], {"step": number})
                batch = counted[number]
            batch.rows.append(row)
            batch.states.append(kept)
        return [*counted.values()]

    def _state_of(self, p: Any, amsgrad: bool) -> dict[str, Any]:
        kept = self.state[p]
        if not kept:
            kept.update(step=scalar(0.0), exp_avg=zeros_like(p), exp_avg_sq=zeros_like(p))
        if amsgrad and "max_exp_avg_sq" not in kept:
            kept["max_exp_avg_sq"] = kept["exp_avg_sq"].clone()
        return kept

    def arguments(self, group: dict[str, Any], batch: StepBatch) -> tuple[Any, ...]:
        """Return the operator's arguments after the rows."""
        return (
            batch.known["step"], group["lr"], *group["betas"], group["eps"], group["weight_decay"],
            group.get("decoupled_weight_decay", False), group["maximize"],
        )  # fmt: skip


def check_averages(lr: Any, betas: Any, eps: float, weight_decay: float) -> None:
    """Raise ``ValueError`` for options of Adam or one of its variants that are out of range."""
    check_rate(lr)
    check_options(
        eps=(eps >= 0, "epsilon value", eps),
        beta1=(0 <= betas[0] < 1, "beta parameter at index 0", betas[0]),
        beta2=(0 <= betas[1] < 1, "beta parameter at index 1", betas[1]),
        decay=(weight_decay >= 0, "weight_decay value", weight_decay),
    )
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError("betas must be either both floats or both Tensors")


def update_averages(
    g: Tensor, state: dict[str, Any], share: float, keep: float, share_of_square: float
) -> tuple[Tensor, Tensor]:
    """Update the decaying averages of a gradient and of its square. Return the mean and the root of the mean square.

    ``share`` is 1 - betas[0], ``keep`` betas[1], and ``share_of_square`` 1 - betas[1].
    """
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.lerp_(g, share)
    square.mul_(keep).addcmul_(g, g, value=share_of_square)
    return mean, square.sqrt()


adam = functional_form(
    Adam,
    {
        "grads": "grad",
        "exp_avgs": "exp_avg",
        "exp_avg_sqs": "exp_avg_sq",
        "max_exp_avg_sqs": "max_exp_avg_sq",
        "state_steps": "step",
    },
    "foreach capturable differentiable fused grad_scale found_inf has_complex decoupled_weight_decay",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)


def __dir__() -> list[str]:
    return sorted(__all__)

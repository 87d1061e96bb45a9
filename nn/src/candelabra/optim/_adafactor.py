"""Adafactor: Adam's second moment as a product of a row and a column (Shazeer & Stern, ICML 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, finfo, zeros_like
from candelabra.optim.optimizer import ParamsT, check_one_element
from candelabra.optim.per_parameter import PerParameter, check_limits

__all__ = ["Adafactor"]


class Adafactor(PerParameter):
    """Divides the gradient by a root mean square of which a matrix keeps only the means of its rows and columns.

    ``lr``: the largest relative rate; ``beta2_decay``: the exponent of the step in the weight of a new square;
    ``eps``: the least mean square (None: the dtype's epsilon) and the least size of a parameter; ``d``: steps with a
    larger root mean square are scaled down to it; ``weight_decay``: subtracted from the parameter, times the rate;
    ``maximize``: ascend. ``foreach`` is accepted for PyTorch's programs and changes nothing. Raises ``ValueError`` for
    options out of range, and ``RuntimeError`` for complex parameters.
    """

    takes_complex = False
    elementwise = False
    decays = False  # before move(): it follows after the size of the parameter has been measured

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element(lr)
        check_limits(
            ("Learning rate", lr, ">=", 0),
            ("beta2_decay", beta2_decay, "<=", 0),
            ("epsilon1", 0 if eps[0] is None else eps[0], ">=", 0),
            ("epsilon2", eps[1], ">=", 0),
            ("Clipping threshold d", d, ">=", 1),
            ("weight_decay", weight_decay, ">=", 0),
        )
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if p.ndim < 2:
            return {"variance": zeros_like(p)}
        return {
            "row_var": p.new_zeros((*p.shape[:-1], 1)),
            "col_var": p.new_zeros((*p.shape[:-2], 1, p.shape[-1])),
        }

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        lr, step = group["lr"], known["step"]
        weight, keep = step ** group["beta2_decay"], 1 - lr * group["weight_decay"]
        return weight, min(lr, 1 / step**0.5), keep, group["d"], tuple(group["eps"])

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        weight, limit, keep, d, limits = numbers
        least, smallest = limits
        least = finfo(p.dtype).eps if least is None else least
        rate = _root_mean_square(p).clamp(min=smallest) * limit
        p.mul_(keep)
        square = g * g
        if p.ndim < 2:
            mean_square = state["variance"].lerp_(square, weight)
        else:
            rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), weight)
            columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), weight)
            mean_square = rows @ columns / rows.mean(-2, keepdim=True).clamp(min=least)
        direction = g * mean_square.clamp(min=least * least).rsqrt()
        excess = (_root_mean_square(direction) / d).clamp(min=1.0)
        p.sub_(direction * (rate / excess))


def _root_mean_square(x: Tensor) -> Tensor:
    return (x * x).mean().sqrt()


def __dir__() -> list[str]:
    return sorted(__all__)

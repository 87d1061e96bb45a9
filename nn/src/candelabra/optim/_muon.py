"""Muon: momentum whose matrices are made orthogonal (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra import Tensor, bfloat16, zeros_like
from candelabra.optim.optimizer import ParamsT, check_one_element
from candelabra.optim.per_parameter import PerParameter, check_limits

__all__ = ["Muon"]


class Muon(PerParameter):
    """Steps along the orthogonal matrix that is nearest to the momentum. For the matrices of hidden layers.

    ``momentum``: the decay rate of the average of gradients; ``nesterov``: look ahead along it; ``weight_decay``:
    subtracted from the parameter, times the rate; ``ns_coefficients``, ``ns_steps``: the odd polynomial of degree 5
    that moves singular values to 1, and how often it is applied, in bfloat16; ``eps``: the least norm;
    ``adjust_lr_fn``: None or "original" scales the rate by the root of rows over columns if that is above 1,
    "match_rms_adamw" by a fifth of the root of the larger one (Liu et al., arXiv:2502.16982). Raises ``ValueError`` for
    options out of range and for parameters that are not matrices, and ``RuntimeError`` for complex ones.
    """

    decoupled_weight_decay = True
    takes_complex = False
    elementwise = False
    kept_numbers = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element(lr)
        check_limits(
            ("Learning rate", lr, ">=", 0), ("momentum", momentum, ">=", 0), ("weight decay", weight_decay, ">=", 0)
        )
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(p.shape)}"
                    )

    def start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(p)}

    def numbers(self, known: Mapping[str, float], group: dict[str, Any]) -> tuple[Any, ...]:
        momentum, matched = group["momentum"], group["adjust_lr_fn"] == "match_rms_adamw"
        iteration = tuple(group["ns_coefficients"]), group["ns_steps"], group["eps"]
        return 1 - momentum, momentum, bool(group["nesterov"]), matched, iteration, group["lr"]

    def move(self, p: Tensor, g: Tensor, state: dict[str, Any], *numbers: Any) -> None:
        share, momentum, nesterov, matched, iteration, lr = numbers
        mean = state["momentum_buffer"].lerp_(g, share)
        direction = _orthogonal(g.lerp(mean, momentum) if nesterov else mean, *iteration).to(p.dtype)
        rows, columns = p.shape
        scale = 0.2 * max(rows, columns) ** 0.5 if matched else max(1, rows / columns) ** 0.5
        p.sub_(direction if scale == 1 else direction * scale, alpha=lr)


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return ``u @ v.T`` of the singular value decomposition, about, by Newton and Schulz's iteration."""
    a, b, c = coefficients
    wide = matrix.shape[0] <= matrix.shape[1]
    x = (matrix if wide else matrix.T).to(bfloat16)
    x = x / x.norm().clamp(min=eps)  # so that no singular value is above 1
    for _ in range(steps):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.T


def __dir__() -> list[str]:
    return sorted(__all__)

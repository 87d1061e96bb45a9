"""L-BFGS: a quasi-Newton method with limited memory (Nocedal, Mathematics of Computation 35, 1980)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor, cat, enable_grad, no_grad
from candelabra.optim.line_search import Point, strong_wolfe
from candelabra.optim.optimizer import Optimizer, ParamsT, check_rate
from candelabra.optim.per_parameter import real

__all__ = ["LBFGS"]

State = dict[str, Any]


class LBFGS(Optimizer):
    """Steps along an approximation of the inverse Hessian times the gradient, from the last ``history_size`` steps.

    ``step(closure)`` iterates up to ``max_iter`` times or ``max_eval`` evaluations of the closure (5/4 of ``max_iter``
    if None), until the largest gradient is at most ``tolerance_grad``, or the change of the parameters or of the loss
    at most ``tolerance_change``. ``line_search_fn``: None, for steps of ``lr``, or "strong_wolfe". All parameters are
    one group. Raises ``ValueError`` for several groups, and ``RuntimeError`` for another line search.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:
        """Minimize the loss that ``closure`` computes with its gradient. Return the loss at the start."""
        (group,) = self.param_groups
        kept = self.state[group["params"][0]]  # of the first one, so that it follows it to its dtype and device

        def evaluate() -> Any:
            with enable_grad():
                return closure()

        kept.setdefault("func_evals", 0)
        kept.setdefault("n_iter", 0)
        first_loss = evaluate()
        kept["func_evals"] += 1
        with no_grad():
            gradient = self._gradient()
            if gradient.abs().max().item() > group["tolerance_grad"]:
                self._iterate(evaluate, group, kept, float(first_loss), gradient)
        return first_loss

    def _iterate(self, evaluate: Callable[[], Any], group: State, kept: State, loss: float, gradient: Tensor) -> None:
        lr = group["lr"].item() if isinstance(group["lr"], Tensor) else group["lr"]
        evaluations = 1
        for iteration in range(1, group["max_iter"] + 1):
            kept["n_iter"] += 1
            direction = _direction(kept, gradient, group["history_size"])
            kept["d"] = direction
            kept["prev_flat_grad"], kept["prev_loss"] = gradient, loss
            kept["t"] = t = min(1.0, 1.0 / gradient.abs().sum().item()) * lr if kept["n_iter"] == 1 else lr
            slope = gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is None:
                self._move(t, direction)
                if iteration < group["max_iter"]:  # the next call evaluates the loss after the last step
                    loss, gradient, used = float(evaluate()), self._gradient(), 1
            elif group["line_search_fn"] == "strong_wolfe":
                start = Point(0.0, loss, gradient, slope)
                point, used = self._search(evaluate, start, t, direction, group, group["max_eval"] - evaluations)
                kept["t"], loss, gradient = t, _, _ = point[:3]
                self._move(t, direction)
            else:
                raise RuntimeError("only 'strong_wolfe' is supported")
            evaluations += used
            kept["func_evals"] += used
            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or gradient.abs().max().item() <= group["tolerance_grad"]
                or (direction * t).abs().max().item() <= group["tolerance_change"]
                or abs(loss - kept["prev_loss"]) < group["tolerance_change"]
            ):
                break

    def _search(
        self, evaluate: Callable[[], Any], start: Point, t: float, direction: Tensor, group: State, trials: int
    ) -> tuple[Point, int]:
        parameters = group["params"]
        origin = [p.clone() for p in parameters]

        def point_at(t: float) -> Point:
            self._move(t, direction)
            loss, gradient = float(evaluate()), self._gradient()
            for p, value in zip(parameters, origin):
                p.copy_(value)
            return Point(t, loss, gradient, gradient.dot(direction).item())

        length = direction.abs().max().item()
        return strong_wolfe(point_at, start, t, length, group["tolerance_change"], trials)

    def _gradient(self) -> Tensor:
        """Return the gradients of all parameters as one vector; those without one count as zeros."""
        parts = []
        for p in self.param_groups[0]["params"]:
            gradient = p.new_zeros(p.shape) if p.grad is None else p.grad
            parts.append(real(gradient.to_dense()).reshape(-1))
        return cat(parts)

    def _move(self, t: float, direction: Tensor) -> None:
        """Add ``t * direction`` to the parameters."""
        offset = 0
        for p in self.param_groups[0]["params"]:
            view = real(p)
            view.add_(direction[offset : offset + view.numel()].view(view.shape), alpha=t)
            offset += view.numel()


def _direction(kept: State, gradient: Tensor, history_size: int) -> Tensor:
    """Return minus the approximate inverse Hessian times the gradient, after the last step has been added to it."""
    if kept["n_iter"] == 1:
        kept.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -gradient
    changes, steps, inverses = kept["old_dirs"], kept["old_stps"], kept["ro"]
    change = gradient - kept["prev_flat_grad"]
    step = kept["d"] * kept["t"]
    product = change.dot(step)
    if product.item() > 1e-10:
        if len(changes) == history_size:
            for history in (changes, steps, inverses):
                history.pop(0)
        changes.append(change)
        steps.append(step)
        inverses.append(1.0 / product)
        kept["H_diag"] = product / change.dot(change)
    # The recursion of two loops: algorithm 7.4 of Nocedal & Wright, 2006.
    shares = kept.setdefault("al", [None] * history_size)
    result: Tensor = -gradient
    for i in reversed(range(len(changes))):
        shares[i] = steps[i].dot(result) * inverses[i]
        result = result - changes[i] * shares[i]
    result = result * kept["H_diag"]
    for i in range(len(changes)):
        result = result + steps[i] * (shares[i] - changes[i].dot(result) * inverses[i])
    return result


def __dir__() -> list[str]:
    return sorted(__all__)

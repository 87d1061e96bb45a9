"""The cross entropy of a linear map's result, without all of that result in memory.

With ``p = softmax(x @ W.T + b)``, ``t`` the one-hot targets and ``g`` the gradient of the losses:

    d losses → scores:  s = (p - t) * g     one row for each target
    d losses → x, W, b: s @ W,  s.T @ x,  sum(s)

Scores have the size of the batch times the number of classes, which for a vocabulary is far more than the input. The
forward and the backward pass compute them for some rows at a time.
"""

from __future__ import annotations

from candelabra.library import by, operator, record, shape_of
from candelabra.nn._operators.classification import class_losses
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

linear, log_softmax = record("linear"), record("log_softmax")
NONE_IGNORED = -(2**63)


def _losses_shape(input: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, rows: int) -> tuple[int, ...]:
    x, w, t = shape_of(input), shape_of(weight), shape_of(target)
    if len(x) != 2 or len(w) != 2 or x[1] != w[1] or t != x[:1] or rows < 1:
        raise RuntimeError(
            f"linear_class_losses takes an input (N, E), a weight (C, E), targets (N,) and a positive number of rows, "
            f"got shapes {list(x)}, {list(w)}, {list(t)} and {rows} rows"
        )
    if bias is not None and shape_of(bias) != w[:1]:
        raise RuntimeError(f"linear_class_losses takes a bias of shape {[w[0]]}, got {list(shape_of(bias))}")
    return t


@operator(by(_losses_shape), accepts="real floating", method=False, public=False, out=False)
def linear_class_losses(input: Tensor, weight: Tensor, bias: Tensor | None, target: Index, rows: int) -> Tensor:
    """``-log_softmax(input @ weight.T + bias)[n, target[n]]`` for each n, ``rows`` rows at a time.

    input (N, E), weight (C, E), bias (C,), target (N,). Raises ``RuntimeError`` for a target that is not a class.
    """
    _losses_shape(input, weight, bias, target, rows)
    losses = []
    for start, count in _pieces(input.shape[0], rows):
        scores = linear.function(input.narrow(0, start, count), weight, bias)
        logs = log_softmax.function(scores, 1)
        losses.append(class_losses(logs, target.narrow(0, start, count), NONE_IGNORED).losses)
    return _joined(losses)


def _pieces(length: int, rows: int) -> list[tuple[int, int]]:
    """Return the start and length of pieces of a dim, at least one."""
    return [(start, min(rows, length - start)) for start in range(0, max(length, 1), rows)]


def _joined(pieces: list[Tensor]) -> Tensor:
    joined: Tensor = pieces[0] if len(pieces) == 1 else record("cat").function(pieces, 0)
    return joined


def _losses_vjp(
    needs: tuple[bool, bool, bool],
    g: Tensor,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    rows: int,
) -> tuple[Tensor | None, ...]:
    of_input: list[Tensor] = []
    of_weight: Tensor | None = None
    of_bias: Tensor | None = None
    for start, count in _pieces(input.shape[0], rows):
        x, slope = input.narrow(0, start, count), g.narrow(0, start, count).unsqueeze(1)
        probabilities = linear.function(x, weight, bias).softmax(1)
        chosen = target.narrow(0, start, count).unsqueeze(1)
        scores = (probabilities * slope).scatter_add(1, chosen, -slope)
        if needs[0]:
            of_input.append(scores @ weight)
        if needs[1]:
            part = scores.t() @ x
            of_weight = part if of_weight is None else of_weight + part
        if needs[2]:
            total = scores.sum(0)
            of_bias = total if of_bias is None else of_bias + total
    return _joined(of_input) if needs[0] else None, of_weight, of_bias


linear_class_losses.vjp(("input", "weight", "bias"), _losses_vjp)

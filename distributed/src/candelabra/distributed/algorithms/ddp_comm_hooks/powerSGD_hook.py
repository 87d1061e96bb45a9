"""PowerSGD: gradients of matrices travel as products of two thin matrices (Vogels, Karimireddy and Jaggi, 2019).

For a gradient M of n rows and m columns, and a random Q of m rows and r columns:

    P = average over ranks of M Q, with orthonormal columns;  Q = average over ranks of Mᵀ P;  M ≈ P Qᵀ

so r (n + m) numbers travel instead of n m. The rank's own error M - P Qᵀ is added to its gradient of the next step.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.distributed._grad_bucket import GradBucket
from candelabra.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged
from candelabra.futures import Future

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """Options, and what PowerSGD keeps between steps.

    Args:
        process_group: the ranks, by default all.
        matrix_approximation_rank: the number r of columns of P and Q.
        start_powerSGD_iter: the number of first steps with plain averages.
        min_compression_rate: matrices travel as they are unless they shrink by this factor.
        use_error_feedback: whether to add a step's error to the next gradient.
        warm_start: whether to begin with the Q of the step before, and not with random numbers.
        orthogonalization_epsilon, random_seed, compression_stats_logging_frequency, batch_tensors_with_same_shape: as
            in PyTorch; only the seed has an effect.

    Raises:
        ValueError: PowerSGD would begin at once, although error feedback or a warm start needs a step before.
    """

    def __init__(
        self,
        process_group: Any = None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.generator = cd.Generator().manual_seed(random_seed)  # the same Q on every rank
        self.iter = 0
        self.errors: dict[Tensor, Tensor] = {}
        self.factors: dict[Tensor, Tensor] = {}

    def compresses(self, gradient: Tensor) -> bool:
        """Return whether a gradient travels as two factors."""
        if gradient.ndim < 2:
            return False
        rows = gradient.shape[0]
        columns = gradient.numel() // max(rows, 1)
        factors = (rows + columns) * min(self.matrix_approximation_rank, rows, columns)
        return bool(factors * self.min_compression_rate < gradient.numel())


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients of matrices by their factors, and the others as they are."""
    if state.iter < state.start_powerSGD_iter:
        if bucket.is_last():
            state.iter += 1
        return averaged(bucket.buffer(), state.process_group)
    if bucket.is_last():
        state.iter += 1
    pairs = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
    matrices = [(p, g) for p, g in pairs if state.compresses(g)]
    plain = [g for _, g in pairs if not state.compresses(g)]
    with cd.no_grad():
        if plain:
            flat = averaged(cd.cat([g.reshape(-1) for g in plain]), state.process_group)
        _approximate(state, matrices)
        if plain:
            for gradient, part in zip(plain, flat.wait().split([g.numel() for g in plain]), strict=True):
                gradient.copy_(part.view(gradient.shape))
    done: Future[Tensor] = Future()
    done.set_result(bucket.buffer())
    return done


def _approximate(state: PowerSGDState, matrices: list[tuple[Tensor, Tensor]]) -> None:
    """Replace gradients by the average of their approximations."""
    inputs = []
    for parameter, gradient in matrices:
        m = gradient.reshape(gradient.shape[0], -1)
        inputs.append(m + state.errors[parameter] if parameter in state.errors else m.clone())
    qs = [_first_factor(state, parameter, m) for (parameter, _), m in zip(matrices, inputs, strict=True)]
    ps = _averages([m @ q for m, q in zip(inputs, qs, strict=True)], state.process_group)
    ps = [cd.linalg.qr(p)[0] for p in ps]
    qs = _averages([m.T @ p for m, p in zip(inputs, ps, strict=True)], state.process_group)
    for (parameter, gradient), m, p, q in zip(matrices, inputs, ps, qs, strict=True):
        approximation = p @ q.T
        if state.use_error_feedback:
            state.errors[parameter] = m - approximation
        if state.warm_start:
            state.factors[parameter] = q
        gradient.copy_(approximation.view(gradient.shape))


def _first_factor(state: PowerSGDState, parameter: Tensor, m: Tensor) -> Tensor:
    """Return Q with orthonormal columns: of the step before, or random."""
    known = state.factors.get(parameter)
    rank = min(state.matrix_approximation_rank, *m.shape)
    if known is None:
        known = cd.randn(m.shape[1], rank, generator=state.generator).to(m.device, m.dtype)
    return cd.linalg.qr(known)[0]


def _averages(tensors: list[Tensor], group: Any) -> list[Tensor]:
    """Return the averages of tensors of one dtype over the ranks, by one collective."""
    if not tensors:
        return []
    flat = cd.cat([tensor.reshape(-1) for tensor in tensors])
    dist.all_reduce(flat, dist.ReduceOp.AVG, group)
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]


def __dir__() -> list[str]:
    return sorted(__all__)

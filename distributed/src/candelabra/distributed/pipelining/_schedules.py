"""The order of forward and backward passes of microbatches on each stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed.pipelining._stage import LossFunction, PipelineStage

FORWARD: Final = "forward"
BACKWARD: Final = "backward"


class Schedule(ABC):
    """Divides a batch into microbatches, and runs one stage of the pipeline on them.

    Args:
        stage: the stage of this rank.
        n_microbatches: into how many parts along dim 0 a batch is divided.
        loss_fn: ``loss_fn(output, target)`` of a microbatch, for the last stage; None for evaluation only.
        scale_grads: whether losses are divided by the number of microbatches, so that gradients are those of the mean.

    Raises:
        ValueError: fewer than one microbatch; a batch that cannot be divided.
    """

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: LossFunction | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(f"{type(self).__name__}: n_microbatches must be at least 1, got {n_microbatches}")
        for name, given in (
            ("args_chunk_spec", args_chunk_spec),
            ("kwargs_chunk_spec", kwargs_chunk_spec),
            ("output_merge_spec", output_merge_spec),
        ):
            if given is not None:
                raise NotImplementedError(
                    f"{type(self).__name__}: {name} must be None: batches are divided along dim 0"
                )
        self._stage = stage
        self._count = n_microbatches
        self._loss_fn = loss_fn
        self._scale_grads = scale_grads

    @abstractmethod
    def order(self, stage: int, stages: int) -> Iterator[tuple[str, int]]:
        """Yield the passes of a stage and the numbers of their microbatches, for training."""

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Tensor] | None = None,
        return_outputs: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Train on one batch: compute outputs and losses, and add up gradients.

        The first stage is given the inputs, and the last one the targets. ``losses``: a list, which the last stage
        fills with the microbatches' losses. Returns the outputs on the last stage, and None on the others. Without a
        loss function, or without gradients, it only computes outputs.
        """
        if self._loss_fn is None or not cd.is_grad_enabled():
            return self.eval(*args, target=target, losses=losses, **kwargs)
        inputs, named, targets = self._chunks(args), self._named(kwargs), self._targets(target)
        outputs: dict[int, Any] = {}
        found: dict[int, Tensor] = {}
        for kind, chunk in self.order(self._stage.stage_index, self._stage.num_stages):
            if kind is FORWARD:
                output = self._stage.forward(chunk, inputs[chunk], named[chunk], keep=True)
                if self._stage.is_last:
                    outputs[chunk] = output.detach() if isinstance(output, Tensor) else output
                    found[chunk] = self._loss_fn(output, targets[chunk])
            else:
                loss = found.get(chunk)
                scaled = loss / self._count if loss is not None and self._scale_grads else loss
                self._stage.backward(chunk, scaled)
                if loss is not None:
                    found[chunk] = loss.detach()
        self._stage.finish()
        return self._results(outputs, found, losses if self._stage.is_last else None, return_outputs)

    def eval(self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, **kwargs: Any) -> Any:
        """Compute the outputs of one batch, and with targets its losses, without gradients."""
        inputs, named = self._chunks(args), self._named(kwargs)
        targets = None if target is None or self._loss_fn is None else self._targets(target)
        outputs, found = {}, {}
        with cd.no_grad():
            for chunk in range(self._count):
                output = self._stage.forward(chunk, inputs[chunk], named[chunk], keep=False)
                if self._stage.is_last:
                    outputs[chunk] = output
                    if targets is not None and self._loss_fn is not None:
                        found[chunk] = self._loss_fn(output, targets[chunk])
        self._stage.finish()
        return self._results(outputs, found, losses if self._stage.is_last else None, True)

    # -- microbatches -------------------------------------------------------------------------------------------------
    def _divided(self, value: Any) -> list[Any]:
        """Return the parts of a tensor; any other value for each microbatch."""
        if not isinstance(value, Tensor):
            return [value] * self._count
        rows = value.shape[0] if value.dim() else 0
        if rows < self._count or len(parts := value.tensor_split(self._count)) != self._count:
            raise ValueError(
                f"{type(self).__name__}: a batch of {rows} rows cannot be divided into {self._count} microbatches"
            )
        return list(parts)

    def _chunks(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        divided = [self._divided(value) for value in args]
        return [tuple(parts[chunk] for parts in divided) for chunk in range(self._count)]

    def _named(self, kwargs: dict[str, Any]) -> list[dict[str, Any]]:
        divided = {name: self._divided(value) for name, value in kwargs.items()}
        return [{name: parts[chunk] for name, parts in divided.items()} for chunk in range(self._count)]

    def _targets(self, target: Any) -> list[Any]:
        if not self._stage.is_last:
            return [None] * self._count
        if target is None:
            raise ValueError(f"{type(self).__name__}: the last stage needs target=, for the loss function")
        return self._divided(target)

    @staticmethod
    def _results(
        outputs: dict[int, Any], computed: dict[int, Tensor], losses: list[Tensor] | None, return_outputs: bool
    ) -> Any:
        if losses is not None:
            losses[:] = [computed[chunk] for chunk in sorted(computed)]
        if not outputs or not return_outputs:
            return None
        ordered = [outputs[chunk] for chunk in sorted(outputs)]
        if isinstance(ordered[0], tuple):
            return tuple(cd.cat(list(parts)) for parts in zip(*ordered, strict=True))
        return cd.cat(ordered)


class ScheduleGPipe(Schedule):
    """All forward passes, then all backward passes (Huang et al., 2019)."""

    def order(self, stage: int, stages: int) -> Iterator[tuple[str, int]]:
        yield from ((FORWARD, chunk) for chunk in range(self._count))
        yield from ((BACKWARD, chunk) for chunk in range(self._count))


class Schedule1F1B(Schedule):
    """One forward pass, one backward pass in turn, so that a stage keeps at most as many microbatches as stages follow.

    Narayanan et al., PipeDream, 2019. Raises ValueError if there are fewer microbatches than stages.
    """

    def __init__(self, stage: PipelineStage, n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stage, n_microbatches, *args, **kwargs)
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages "
                f"({stage.num_stages})."
            )

    def order(self, stage: int, stages: int) -> Iterator[tuple[str, int]]:
        ahead = stages - stage - 1
        for chunk in range(self._count + ahead):
            if chunk < self._count:
                yield FORWARD, chunk
            if chunk >= ahead:
                yield BACKWARD, chunk - ahead

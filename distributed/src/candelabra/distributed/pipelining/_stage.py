"""One stage of a pipeline: the module of this rank, and the tensors of the microbatches under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._process_group import resolved
from candelabra.distributed.pipelining._link import StageLink


class PipelineStage:
    """A part of a model on one rank of a group.

    Args:
        submodule: the module of this stage. The outputs of a stage, a tensor or a tuple of tensors, are the inputs of
            the next one.
        stage_index: the place of the stage, which is the rank of the group.
        num_stages: the number of stages, which is the number of ranks.
        device: where received tensors are created.
        input_args, output_args: not used: shapes travel with the tensors.
        group: the ranks of the pipeline, by default all.

    Raises:
        ValueError: the place or the number of stages does not fit the group.
    """

    def __init__(
        self,
        submodule: Any,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        group: Any = None,
        dw_builder: Any = None,
    ) -> None:
        ranks = resolved(group, "PipelineStage")
        if num_stages != ranks.size() or stage_index != ranks.rank():
            raise ValueError(
                f"PipelineStage: stage {stage_index} of {num_stages} must be on rank {stage_index} of a group of "
                f"{num_stages} ranks, but this is rank {ranks.rank()} of {ranks.size()}"
            )
        self.submod = submodule
        self.stage_index, self.num_stages, self.device, self.group = stage_index, num_stages, cd.device(device), ranks
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self._before = None if self.is_first else StageLink(stage_index - 1, ranks, self.device)
        self._after = None if self.is_last else StageLink(stage_index + 1, ranks, self.device)
        self._inputs: dict[int, list[Any]] = {}
        self._outputs: dict[int, tuple[Tensor, ...]] = {}

    def forward(self, chunk: int, args: Sequence[Any], kwargs: dict[str, Any], keep: bool) -> Any:
        """Compute a microbatch, whose inputs come from the stage before, and send the outputs to the next.

        ``keep``: a backward pass follows.
        """
        inputs: list[Any] = list(args) if self._before is None else self._received(keep)
        output = self.submod(*inputs, **kwargs)
        outputs = output if isinstance(output, tuple) else (output,)
        if self._after is not None:
            self._after.send(outputs)
        if keep:
            self._inputs[chunk], self._outputs[chunk] = inputs, outputs
        return output

    def _received(self, keep: bool) -> list[Any]:
        assert self._before is not None
        inputs = self._before.receive()
        for tensor in inputs:
            if keep and tensor is not None and (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
                tensor.requires_grad_()
        return list(inputs)

    def backward(self, chunk: int, loss: Tensor | None = None) -> None:
        """Compute the gradients of a microbatch, from its loss or from the next stage, and send those of the inputs."""
        inputs, outputs = self._inputs.pop(chunk), self._outputs.pop(chunk)
        if loss is not None:
            loss.backward()
        else:
            assert self._after is not None
            pairs = [
                (output, gradient)
                for output, gradient in zip(outputs, self._after.receive(), strict=True)
                if gradient is not None and output.requires_grad
            ]
            if pairs:
                cd.autograd.backward([output for output, _ in pairs], [gradient for _, gradient in pairs])
        if self._before is not None:
            self._before.send([tensor.grad if isinstance(tensor, Tensor) else None for tensor in inputs])

    def finish(self) -> None:
        """Wait until everything is sent."""
        for link in (self._before, self._after):
            if link is not None:
                link.finish()


LossFunction = Callable[[Any, Any], Tensor]

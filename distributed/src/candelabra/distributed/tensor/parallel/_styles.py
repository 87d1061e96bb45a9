"""How a layer is divided among the ranks of a mesh dim."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from candelabra import Tensor
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.tensor._dtensor import distribute_tensor, local_of, parameter
from candelabra.distributed.tensor._movements import Enter, moved
from candelabra.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, bounds
from candelabra.nn import functional
from candelabra.nn.modules.linear import Linear
from candelabra.nn.modules.sparse import Embedding


class ParallelStyle(ABC):
    """A way to divide a layer."""

    @abstractmethod
    def apply(self, module: Any, mesh: DeviceMesh) -> Any:
        """Divide the parameters of a module, and add the movements of inputs and outputs. Return the module."""


def divide(module: Any, name: str, mesh: DeviceMesh, placement: Placement) -> None:
    """Replace a parameter by this rank's part."""
    whole = module._parameters.get(name)
    if whole is not None:
        part = distribute_tensor(whole, mesh, [placement])
        module._parameters[name] = parameter(part.to_local(), part._splits, whole.requires_grad)


def compute_with(module: Any, replaced: Callable[[Any], Tensor]) -> None:
    """Let a module compute with other tensors in place of its parameters: with the parts, not with DTensors."""
    inner = module.forward

    def forward(*inputs: Any, **kwargs: Any) -> Any:
        own = dict(module._parameters)
        module._parameters.update({name: replaced(p) for name, p in own.items() if p is not None})
        try:
            return inner(*inputs, **kwargs)
        finally:
            module._parameters.update(own)

    module.forward = forward


class _Divided(ParallelStyle):
    """A layer whose first input and whose output have a placement outside, and another one inside."""

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        if not use_local_output:
            raise NotImplementedError(
                f"{type(self).__name__}: use_local_output must be True: outputs are plain tensors"
            )
        self.input_layout = input_layouts
        self.output_layout = output_layouts

    def connect(
        self, module: Any, mesh: DeviceMesh, entering: tuple[Placement, Placement], leaving: tuple[Placement, Placement]
    ) -> None:
        """Move inputs to the placement inside, and outputs to that outside.

        ``entering``, ``leaving``: from which placement to which; the user may have chosen another one outside.
        """
        outside_in, inside_in = self.input_layout or entering[0], entering[1]
        inside_out, outside_out = leaving[0], self.output_layout or leaving[1]

        def enter(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            first = moved(inputs[0], mesh, outside_in, inside_in)
            if isinstance(inside_in, Replicate) and first.dtype.is_floating_point:
                first = Enter.apply(first, mesh)
            return (first, *inputs[1:])

        def leave(_: Any, inputs: Any, output: Tensor) -> Tensor:
            return moved(output, mesh, inside_out, outside_out)

        module.register_forward_pre_hook(enter)
        module.register_forward_hook(leave)


class ColwiseParallel(_Divided):
    """Each rank has some of a Linear's outputs, or some of an Embedding's dims.

    Args:
        input_layouts: the placement of the input, by default replicated.
        output_layouts: the placement of the output, by default divided along the last dim.
        use_local_output: must be True.
    """

    def apply(self, module: Any, mesh: DeviceMesh) -> Any:
        if isinstance(module, Linear):
            divide(module, "weight", mesh, Shard(0))
            divide(module, "bias", mesh, Shard(0))
        elif isinstance(module, Embedding):
            divide(module, "weight", mesh, Shard(1))
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")
        compute_with(module, local_of)
        self.connect(module, mesh, (Replicate(), Replicate()), (Shard(-1), Shard(-1)))
        return module


class RowwiseParallel(_Divided):
    """Each rank has some of a Linear's inputs, or some of an Embedding's rows; the outputs are added up.

    Args:
        input_layouts: the placement of the input, by default divided along the last dim; an Embedding's is replicated.
        output_layouts: the placement of the output, by default replicated.
        use_local_output: must be True.
    """

    def apply(self, module: Any, mesh: DeviceMesh) -> Any:
        if isinstance(module, Linear):
            divide(module, "weight", mesh, Shard(1))
            divide(module, "bias", mesh, Replicate())
            self._add_bias_once(module, mesh)
            self.connect(module, mesh, (Shard(-1), Shard(-1)), (Partial(), Replicate()))
        elif isinstance(module, Embedding):
            self._look_up_own_rows(module, mesh)
            self.connect(module, mesh, (Replicate(), Replicate()), (Partial(), Replicate()))
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")
        compute_with(module, local_of)
        return module

    def _add_bias_once(self, module: Any, mesh: DeviceMesh) -> None:
        """Add the bias on one rank; the sum over the ranks contains it, and each rank gets its gradient."""
        first = mesh.get_local_rank() == 0

        def forward(x: Tensor) -> Tensor:
            bias = module.bias
            if bias is None:
                return functional.linear(x, module.weight)
            shared = Enter.apply(bias, mesh)
            return functional.linear(x, module.weight, shared if first else shared * 0)

        module.forward = forward

    def _look_up_own_rows(self, module: Any, mesh: DeviceMesh) -> None:
        """Look up indices of this rank's rows; the others give zeros."""
        if module.max_norm is not None or module.padding_idx is not None or module.scale_grad_by_freq:
            raise NotImplementedError(
                "RowwiseParallel: an Embedding with max_norm, padding_idx or scale_grad_by_freq is not supported"
            )
        low, high = bounds(module.num_embeddings, mesh.size(), mesh.get_local_rank())
        divide(module, "weight", mesh, Shard(0))

        def forward(index: Tensor) -> Tensor:
            own = (index >= low) & (index < high)
            if high == low:
                nothing: Tensor = module.weight.sum() + module.weight.new_zeros((*index.shape, module.embedding_dim))
                return nothing
            rows: Tensor = functional.embedding((index - low).clamp(0, high - low - 1), module.weight)
            masked: Tensor = rows * own.unsqueeze(-1).to(rows.dtype)
            return masked

        module.forward = forward


class SequenceParallel(ParallelStyle):
    """Each rank computes a normalization or dropout for a part of the sequence; its parameters are on every rank.

    Args:
        sequence_dim: the dim of the sequence in the input, by default 1.
        use_local_output: must be True.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = True) -> None:
        if not use_local_output:
            raise NotImplementedError("SequenceParallel: use_local_output must be True: outputs are plain tensors")
        self.sequence_dim = sequence_dim

    def apply(self, module: Any, mesh: DeviceMesh) -> Any:
        for name in list(module._parameters):
            divide(module, name, mesh, Replicate())
        # Each rank's gradient is that of its part of the sequence: the gradient of a parameter is their sum.
        compute_with(module, lambda p: Enter.apply(local_of(p), mesh))
        return module

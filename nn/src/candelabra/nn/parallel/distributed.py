"""Data parallel training: every rank trains the same module on its part of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from candelabra import Tensor, is_grad_enabled
from candelabra.nn.modules.module import Module
from candelabra.nn.parallel._devices import resolved
from candelabra.nn.parallel._joined import JoinedRank, agreed
from candelabra.nn.parallel._reducer import Reducer, broadcast_all
from candelabra.nn.parallel.scatter_gather import scatter_kwargs

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Averages the gradients of a module over the ranks of a process group, during the backward pass.

    The parameters and buffers of all ranks become those of the group's first rank. Each backward pass then gives every
    rank the same gradients, the mean of all ranks' gradients, so that the same optimizer makes the same step on each.
    Gradients travel in buckets, in the order in which they are ready, while the backward pass goes on.

    Args:
        module: on one device. At least one of its parameters requires a gradient.
        device_ids: None, or the one device of this rank, to which inputs are moved.
        output_device: not used: outputs are where the module computes them.
        dim: not used.
        broadcast_buffers: copy the buffers of the first rank to the others before each forward pass.
        init_sync: compare the parameters of all ranks, and copy those of the first rank, at the construction.
        process_group: the ranks, by default all.
        bucket_cap_mb: the size of buckets in MiB, by default 25.
        find_unused_parameters: look in each forward pass for parameters on which the outputs do not depend.
        gradient_as_bucket_view: gradients are views of the buckets, which saves a copy and their memory.
        static_graph: the same as ``find_unused_parameters``.

    Raises:
        ValueError: there is no default process group; several ``device_ids``.
        RuntimeError: no parameter requires a gradient; the ranks' parameters differ; a backward pass has not reached
            all parameters (``find_unused_parameters``), or has reached one twice.
        NotImplementedError: ``mixed_precision``, ``device_mesh`` and ``delay_all_reduce_named_params``.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        from candelabra import distributed as dist

        for name, given in (
            ("mixed_precision", mixed_precision),
            ("device_mesh", device_mesh),
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
        ):
            if given is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported yet")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(f"device_ids can only be None or contain a single element, got {list(device_ids)}")
        size = dist.get_world_size(process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self.module = module
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.device_ids = None if not device_ids else [resolved(device_ids[0])]
        self.device = named[0][1].device
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self._synchronized = True
        self._ignored = ignored
        self._join_config: Any = None
        self._divide_by_active = False
        if init_sync and size > 1:
            _check_equal(named, self.process_group)
            broadcast_all([p for n, p in module.named_parameters() if n not in ignored], self.process_group)
            broadcast_all(self._buffers_to_send(), self.process_group)
        cap = (25 if bucket_cap_mb is None else bucket_cap_mb) * 2**20
        self._make_reducer = partial(
            Reducer, named, self.process_group, cap, find_unused_parameters or static_graph, gradient_as_bucket_view
        )
        # A single rank has its averages already.
        self.reducer = self._make_reducer() if size > 1 else None

    def _buffers_to_send(self) -> list[Tensor]:
        return [b for n, b in self.module.named_buffers() if n not in self._ignored]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids is not None:
            (inputs,), (kwargs,) = (
                scatter_kwargs(inputs, kwargs, self.device_ids) if inputs or kwargs else (((),), ({},))
            )
        if self.reducer is None:
            return self.module(*inputs, **kwargs)
        synchronize = is_grad_enabled() and self.require_backward_grad_sync
        if synchronize:
            self.reducer.check_finished()
        send_buffers = self.broadcast_buffers and self._synchronized
        source = 0
        if self._join_config is not None and self._join_config.enable:
            source = self._join_step(synchronize, send_buffers)
        if send_buffers:
            broadcast_all(self._buffers_to_send(), self.process_group, source)
        outputs = self.module(*inputs, **kwargs)
        if synchronize:
            self.reducer.prepare(outputs)
        else:
            self.reducer.armed = False
        self._synchronized = self.require_backward_grad_sync
        return outputs

    def _join_step(self, synchronize: bool, send_buffers: bool) -> int:
        """Tell the ranks without batches what this step does, and return the rank with the buffers."""
        from candelabra import distributed as dist
        from candelabra.distributed.algorithms.join import Join

        assert self.reducer is not None
        active = Join.notify_join_context(self)
        self.reducer.divisor = active if self._divide_by_active else dist.get_world_size(self.process_group)
        rank = dist.get_rank(self.process_group)
        return agreed((int(synchronize), int(send_buffers), rank), self.process_group)[2]

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Add up gradients on this rank only. The first backward pass after the block averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Let ``hook(state, bucket)`` average the gradients of each bucket, in place of the all-reduce.

        ``bucket`` is a ``candelabra.distributed.GradBucket``; the hook returns a future of the averaged buffer.
        ``candelabra.distributed.algorithms.ddp_comm_hooks`` has hooks that compress.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer is None:
            self.reducer = self._make_reducer()
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = partial(hook, state)

    # -- uneven inputs ------------------------------------------------------------------------------------------------
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:
        """Return a context in which ranks may have different numbers of batches.

        A rank without further batches takes part in the averages of the others with gradients of zero. At the end, all
        ranks get parameters and buffers of one that was among the last. With ``divide_by_initial_world_size=False``,
        sums are divided by the number of ranks that had a batch. Raises RuntimeError on all ranks as soon as one has
        no batches if ``throw_on_early_termination``.
        """
        from candelabra.distributed.algorithms.join import Join

        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """Return what this module does on a rank without further batches, for ``distributed.algorithms.Join``."""
        self._divide_by_active = not kwargs.get("divide_by_initial_world_size", True)
        return JoinedRank(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The ranks of the averages."""
        return self.process_group


def _check_equal(named: Sequence[tuple[str, Tensor]], group: Any) -> None:
    """Raise RuntimeError if the ranks' parameters differ in number, shape or dtype."""
    from candelabra import distributed as dist

    rank = dist.get_rank(group)
    everywhere: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everywhere, [[n, list(p.shape), p.dtype.name] for n, p in named], group)
    for other, theirs in enumerate(everywhere):
        if len(theirs) != len(everywhere[0]):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank 0 has {len(everywhere[0])} params, while rank "
                f"{other} has inconsistent {len(theirs)} params."
            )
        for index, (mine, first) in enumerate(zip(theirs, everywhere[0], strict=True)):
            if mine[1:] != first[1:]:
                raise RuntimeError(
                    f"[{rank}]: params[{index}], {mine[0]!r}, of rank {other} with sizes {mine[1]} and dtype {mine[2]} "
                    f"appears not to match sizes of the same param in rank 0, {first[1]} and {first[2]}."
                )


def __dir__() -> list[str]:
    return sorted(__all__)

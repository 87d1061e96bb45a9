"""Averages gradients over ranks in buckets, while the backward pass goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import candelabra as cd
from candelabra import Tensor
from candelabra.autograd.graph import nodes_of
from candelabra.library import open_device

FIRST_BUCKET: Final = 2**20
"""Bytes of the first bucket: a small one, so that communication begins early. A gradient of this size in the host's
memory is reduced in place, by a collective of its own: to copy it to a bucket and back takes longer than a call."""


def groups_of(tensors: Sequence[Tensor], cap: float = float("inf"), first_cap: float | None = None) -> list[list[int]]:
    """Divide tensors among buckets: of one dtype and device, and at most ``cap`` bytes. Return their indices."""
    found: list[list[int]] = []
    filling: dict[tuple[Any, Any], tuple[list[int], float]] = {}
    for index, tensor in enumerate(tensors):
        size, kind = tensor.numel() * tensor.dtype.itemsize, (tensor.dtype, tensor.device)
        members, left = filling.get(kind, ([], 0.0))
        if not members or left < size:
            members, left = [], first_cap if first_cap is not None and not found else cap
            found.append(members)
        members.append(index)
        filling[kind] = members, left - size
    return found


def broadcast_all(tensors: Sequence[Tensor], group: Any, source: int = 0) -> None:
    """Copy tensors of one rank of the group to the others, in as few collectives as possible."""
    from candelabra import distributed as dist

    with cd.no_grad():
        for indices in groups_of(tensors, 250 * 2**20):
            members = [tensors[index].detach() for index in indices]
            flat = cd.cat([member.reshape(-1) for member in members])
            dist.broadcast(flat, group=group, group_src=source)
            if dist.get_rank(group) != source:
                for member, part in zip(members, parts_of(flat, members), strict=True):
                    member.copy_(part)


def parts_of(flat: Tensor, like: Sequence[Tensor]) -> Iterator[Tensor]:
    """Yield the parts of a flat tensor as views of the shapes of others."""
    for part, tensor in zip(flat.split([tensor.numel() for tensor in like]), like, strict=True):
        yield part.view(tensor.shape)


def can_overlap(parameters: Sequence[Tensor]) -> bool:
    """Return whether communication can go on during the backward pass.

    On the host both need a core. With a single one, the thread that waits for other ranks takes the time of the
    computation, and the ranks wait for each other's threads to be scheduled.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 or not all(open_device(p.device).capabilities.host for p in parameters)


class GradientBucket:
    """Parameters whose gradients are averaged together: small ones in one flat tensor, large ones in place."""

    def __init__(self, indices: list[int], large: Collection[int]) -> None:
        self.indices = indices
        self.large = [index for index in indices if index in large]
        self.small = [index for index in indices if index not in large]
        self.pending = len(indices)
        self.gradients: list[Tensor] = []
        """The gradients that are averaged in place, those of ``large``."""
        self.flat: Tensor | None = None
        """The gradients of ``small``, one after another; with a communication hook those of all."""
        self.average: Any = None
        """The future of the averages, while they are on their way: of the flat tensor, if a hook has returned it."""

    def tensors(self) -> list[Tensor]:
        """Return what is reduced."""
        return self.gradients if self.flat is None else [*self.gradients, self.flat]

    def clear(self) -> None:
        """Keep no gradient beyond the backward pass."""
        self.gradients, self.flat, self.average = [], None, None


class Reducer:
    """The gradients of one module's parameters.

    The first backward pass fills buckets in the reverse order of the parameters. Later ones have the order in which the
    first rank's gradients were ready, so that a bucket is complete, and on its way, as early as possible. Buckets are
    reduced in their order, which is the same on every rank.
    """

    def __init__(
        self, named: Sequence[tuple[str, Tensor]], group: Any, cap: float, find_unused: bool, as_views: bool
    ) -> None:
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.group = group
        self.cap = cap
        self.find_unused = find_unused
        self.as_views = as_views
        self.hook: Callable[[Any], Any] | None = None
        """A communication hook, ``hook(bucket)``, in place of the all-reduce."""
        self.divisor: int | None = None
        """The number by which sums are divided, if it is not that of all ranks."""
        self.overlaps = can_overlap(self.parameters)
        """Whether buckets travel while the backward pass goes on, or after it."""
        self.armed = False
        self.started = False
        self._passes = 0
        self._order: list[int] = []
        self._reordered = find_unused  # which gradients are ready, and when, differs from step to step
        self._unused: list[int] = []
        self._left: set[int] = set()
        self._next = 0
        self._fill(list(reversed(range(len(self.parameters)))))
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._hook(index))
            for index, parameter in enumerate(self.parameters)
        ]

    def _fill(self, order: list[int]) -> None:
        groups = groups_of([self.parameters[index] for index in order], self.cap, min(FIRST_BUCKET, self.cap))
        large = {
            index for index, p in enumerate(self.parameters)
            if p.numel() * p.dtype.itemsize >= FIRST_BUCKET and open_device(p.device).capabilities.host
        }  # fmt: skip
        if self.find_unused:  # a gradient that no rank has computed must stay as it is
            large.clear()
        self.buckets = [GradientBucket([order[i] for i in members], large) for members in groups]
        self._bucket_of = {index: bucket for bucket in self.buckets for index in bucket.indices}

    def _hook(self, index: int) -> Callable[[Tensor], None]:
        def ready(_: Tensor) -> None:
            if self.armed:
                self._mark(index)

        return ready

    # -- before the backward pass -------------------------------------------------------------------------------------
    def check_finished(self) -> None:
        """Raise if the last backward pass has left a bucket incomplete."""
        if not self.started:
            return
        missing = [
            self.names[p] for bucket in self.buckets if bucket.pending for p in bucket.indices if p in self._left
        ]
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. You can enable unused "
            "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
            "DistributedDataParallel, and by making sure all `forward` function outputs participate in calculating "
            f"loss. Parameters which did not receive grad: {', '.join(missing)}"
        )

    def prepare(self, outputs: Any) -> None:
        """Expect a gradient of every parameter on which the outputs depend."""
        self._begin()
        if self.find_unused:
            used = {id(getattr(node, "variable", None)) for node in nodes_of(*_tensors(outputs))}
            self._unused = [i for i, parameter in enumerate(self.parameters) if id(parameter) not in used]

    def _begin(self) -> None:
        if self._passes and not self._reordered:
            self._reorder()
        self.armed = True
        self._order = []
        self._left = set(range(len(self.parameters)))
        self._unused = []
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)
            bucket.clear()

    def mirror(self) -> None:
        """Take part in the collectives of the other ranks' backward pass, with gradients of zero."""
        self._begin()
        self._unused = list(range(len(self.parameters)))
        self._send(self.buckets, mirrored=True)
        self._finish()

    def _reorder(self) -> None:
        from candelabra import distributed as dist

        # A rank without inputs has no order of its own yet; that of the buckets is as good.
        order = cd.tensor(self._order or [index for bucket in self.buckets for index in bucket.indices])
        dist.broadcast(order, dist.get_global_rank(self.group, 0), self.group)
        self._fill(order.tolist())
        self._reordered = True

    # -- during the backward pass -------------------------------------------------------------------------------------
    def _mark(self, index: int) -> None:
        """Note that the gradient of a parameter is ready, and send the buckets that are complete."""
        if not self.started:
            self.started, self._next = True, 0
            for unused in self._unused:
                self._count(unused)
        self._order.append(index)
        self._count(index)
        if self._left and not self.overlaps:
            return
        first = self._next
        while self._next < len(self.buckets) and not self.buckets[self._next].pending:
            self._next += 1
        self._send(self.buckets[first : self._next])
        if self._next == len(self.buckets):
            self._finish()

    def _count(self, index: int) -> None:
        if index not in self._left:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: the parameter {self.names[index]!r} has received its "
                "gradient twice since the last forward pass. Call backward once for each call of forward, or the first "
                "times inside no_sync()"
            )
        self._left.discard(index)
        self._bucket_of[index].pending -= 1

    def _send(self, buckets: Sequence[GradientBucket], mirrored: bool = False) -> None:
        """Begin to average the gradients of buckets. ``mirrored``: this rank has none, and sends zeros.

        With overlap there is a work for each bucket, else one for all, which takes fewer changes of threads. Debug mode
        compares works, and other ranks may overlap.
        """
        from candelabra import distributed as dist

        if self.hook is not None:
            for bucket in buckets:
                number = self.buckets.index(bucket)
                last = number == len(self.buckets) - 1
                members = [self.parameters[index] for index in bucket.indices]
                bucket.flat = self._packed(bucket.indices, mirrored)
                bucket.average = self.hook(dist.GradBucket(number, bucket.flat, members, last))
            return
        for bucket in buckets:
            bucket.gradients = [self._gradient(index, mirrored) for index in bucket.large]
            bucket.flat = self._packed(bucket.small, mirrored) if bucket.small else None
        separate = self.overlaps or dist.get_debug_level() == "DETAIL"
        for together in [[each] for each in buckets] if separate or not buckets else [buckets]:
            average = self._averaged([tensor for bucket in together for tensor in bucket.tensors()], mirrored)
            for bucket in together:
                bucket.average = average

    def _gradient(self, index: int, mirrored: bool) -> Tensor:
        """Return the gradient of a parameter, zeros without history if there is none."""
        parameter = self.parameters[index]
        found = None if mirrored else parameter.grad
        return cd.zeros_like(parameter.detach()) if found is None else found

    def _packed(self, indices: list[int], mirrored: bool) -> Tensor:
        """Return the gradients of parameters in one flat tensor."""
        gradients = [self._gradient(index, mirrored) for index in indices]
        with cd.no_grad():
            return cd.cat([each if each.dim() == 1 else each.reshape(-1) for each in gradients])

    def _averaged(self, tensors: list[Tensor], mirrored: bool) -> Any:
        """Begin to average tensors over the ranks in place, and return the future.

        Sums are divided after the reduction, on the group's thread, while they are in the cache. Half types, which
        overflow less easily if they are divided before, and ranks with uneven inputs divide before.
        """
        from candelabra import distributed as dist

        op, divisor = dist.ReduceOp.AVG, self.divisor
        if divisor is not None or mirrored or any(tensor.dtype.is_half for tensor in tensors):
            op = dist.ReduceOp.SUM
            if not mirrored:
                with cd.no_grad():
                    for tensor in tensors:
                        tensor.div_(dist.get_world_size(self.group) if divisor is None else divisor)
        work = dist.all_reduce_coalesced(tensors, op, self.group, async_op=True)
        return work.get_future()  # type: ignore[union-attr]  # a work, since async_op=True

    def _finish(self) -> None:
        """Wait for all buckets, and write the averages into the gradients."""
        from candelabra import distributed as dist

        self.armed = self.started = False
        self._passes += 1
        everywhere: list[int] | None = None
        if self.find_unused:  # a parameter that no rank has used keeps its gradient
            unused = set(self._unused)
            counts = cd.tensor([int(index not in unused) for index in range(len(self.parameters))])
            dist.all_reduce(counts, group=self.group)
            everywhere = counts.tolist()
        for bucket in self.buckets:
            found = bucket.average.wait()
            for index, gradient in zip(bucket.large, bucket.gradients, strict=False):  # none with a hook
                self._store(index, gradient)
            flat, indices = bucket.flat, bucket.small
            if self.hook is not None:
                flat, indices = found[0] if isinstance(found, list) else found, bucket.indices
            members = [self.parameters[index] for index in indices]
            for index, part in zip(indices, parts_of(flat, members), strict=True) if flat is not None else ():
                if everywhere is None or everywhere[index]:
                    self._store(index, part)
            bucket.clear()

    def _store(self, index: int, average: Tensor) -> None:
        """Write an average into the gradient of a parameter, unless that has been averaged in place."""
        parameter = self.parameters[index]
        if self.as_views or parameter.grad is None:
            parameter.grad = average
        elif parameter.grad._payload is not average._payload:
            with cd.no_grad():
                parameter.grad.copy_(average)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors inside tuples, lists, dictionaries and objects with attributes."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))

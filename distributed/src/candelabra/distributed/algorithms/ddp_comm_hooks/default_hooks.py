"""Hooks that average gradients: as they are, or compressed to 16 bits for the transport.

A hook is ``hook(state, bucket)``. It returns a future of the averaged buffer. The state of these hooks is the process
group, or None for all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.distributed._grad_bucket import GradBucket
from candelabra.futures import Future

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def averaged(tensor: Tensor, group: Any) -> Future[Tensor]:
    """Return a future of the average of a tensor over the ranks, which is written into the tensor."""
    with cd.no_grad():
        tensor.div_(dist.get_world_size(group))
    work = dist.all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients, as without a hook."""
    return averaged(bucket.buffer(), process_group)


def _compressed(dtype: Any, process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()

    def widened(future: Future[Tensor]) -> Tensor:
        with cd.no_grad():
            return buffer.copy_(future.value())

    return averaged(buffer.to(dtype), process_group).then(widened)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in float16. Divided before they are added, they overflow less easily."""
    return _compressed(cd.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average the gradients in bfloat16."""
    return _compressed(cd.bfloat16, process_group, bucket)


def _wrapped(dtype: Any, hook: Hook) -> Hook:
    def wrapper(state: Any, bucket: GradBucket) -> Future[Tensor]:
        wide = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))
        return hook(state, bucket).then(lambda future: future.value().to(wide))

    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that gives another one the gradients in float16."""
    return _wrapped(cd.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that gives another one the gradients in bfloat16."""
    return _wrapped(cd.bfloat16, hook)


def __dir__() -> list[str]:
    return sorted(__all__)

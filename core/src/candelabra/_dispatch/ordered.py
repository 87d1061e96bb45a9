"""Ordered operators in a trace: the body of one, which has an effect outside of the process, runs as a kernel.

Elsewhere such an operator is a composite: its operators are dispatched, and some may read the memory of the host, as a
collective does for its engine. A trace has one node for the whole call instead, and each run of a graph calls the body
again.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance
from candelabra._dispatch.tracing import current, untraced
from candelabra._keys import NO_GRAD, mode
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import TENSOR_KINDS
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra._records.record import Operator


PLAIN: Final = (int, float, complex, type(None))
"""The types of arguments in the place of a tensor that are none."""


def ordered_kernel(
    op: Operator[..., Any], body: Callable[..., Any], compute: dtype, instance: Instance
) -> Callable[..., Any]:
    """Return a kernel that calls the body of an ordered operator on tensors, and returns payloads.

    While a tracer rehearses a backward pass, the kernel returns zeros by the record's rules and calls nothing: a
    process that compiles must make the same calls as one that has compiled before.
    """
    keys_for, dtype_of = instance.keys_for, instance.backend.dtype_of
    takes = [p.kind in TENSOR_KINDS for p in op.schema.parameters]
    several = op.schema.result is not None
    dtypes = [rule(compute) for rule in op.results]

    def tensors(argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return [tensors(item) for item in argument]
        return argument if isinstance(argument, PLAIN) else wrap(argument, keys_for(dtype_of(argument)))

    def zeros(args: list[Any]) -> list[Tensor]:
        shapes = op.rule(op, tuple(args))
        like = next(a for a in args if isinstance(a, Tensor))
        pairs = zip(shapes if several else [shapes], dtypes, strict=True)
        return [OPERATORS["new_full"].canonical(like, tuple(shape), 0, d) for shape, d in pairs]

    def kernel(*payloads: Any) -> Any:
        args = [tensors(a) if taken else a for a, taken in zip(payloads, takes, strict=True)]
        rehearses = current.tracer is not None and current.tracer.rehearses
        with untraced(), mode(include=NO_GRAD):
            out = zeros(args) if rehearses else body(*args) if several else [body(*args)]
        found = tuple([tensor._fresh()._payload for tensor in out])
        return found if several else found[0]

    return kernel

"""One function of tensors over lists of tensors."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> list[Any]:
    """Return ``[op(a[i], b[i], ..., **kwargs) for i]`` of lists of tensors; other operands are the same for all.

    In a compiled function the calls are nodes of one graph, and a device fuses those that it can. Raises ``TypeError``
    without a list, and ``ValueError`` for lists of different lengths.
    """
    lengths = {len(operand) for operand in operands if isinstance(operand, (list, tuple))}
    if not lengths:
        raise TypeError("foreach_map(): expected at least one list of tensors among the operands")
    if len(lengths) > 1:
        raise ValueError(f"foreach_map(): expected lists of one length, got {', '.join(map(str, sorted(lengths)))}")
    [count] = lengths
    return [
        op(*(each[i] if isinstance(each, (list, tuple)) else each for each in operands), **kwargs) for i in range(count)
    ]


__all__ = ["foreach_map"]

"""``vmap`` as a device: one use of it, and calls of operators for several examples.

:mod:`candelabra._transforms.batching_kernels` has the payloads and the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra._annotations import Any, Final, NoReturn
from candelabra._records.batching import Rule, expanded
from candelabra._records.promotion import unpromoted
from candelabra._records.record import Operator
from candelabra._tensor import Tensor
from candelabra._transforms import batching_rules  # noqa: F401 - fills RULES and FACTORIES
from candelabra._transforms.batching_kernels import (
    RULES,
    Batched,
    family_of,
    inplace_kernel,
    kernel_of,
    pointwise_list_rule,
    pointwise_rule,
)
from candelabra._transforms.level import Frame, Transform, below, frame_at
from candelabra._transforms.user_line import users_line
from candelabra.dtypes import DTYPE_MASK


class Batch(Frame):
    """One use of ``vmap``: the number of examples, and how random numbers differ between them."""

    def __init__(self, size: int, randomness: str) -> None:
        super().__init__(VMAP)
        self.modes = VMAP.modes
        self.size = size
        self.randomness = randomness

    def batch(self, tensor: Tensor) -> Tensor:
        """Return a tensor of this level whose examples are along the first dim of ``tensor``."""
        return self.wrap(Batched(tensor, self, True, own=False))

    def unbatched(self, tensor: Tensor) -> Tensor:
        """Return the tensor of the level below with all examples along the first dim, whatever it was."""
        if not tensor._keys & self.instance.bit:
            return expanded(tensor, self.size)
        payload = tensor._fresh()._payload
        return payload.tensor if payload.batched else expanded(payload.tensor, self.size)


class Vmap(Transform):
    """The device type of ``vmap``."""

    name = "vmap"
    modes = 0
    """The bit of the layer that serves random draws (``candelabra._transforms.randomness``)."""

    def kernel_of(self, op: Operator[..., Any]) -> Rule | None:
        return kernel_of(op)

    def inplace_kernel_of(self, op: Operator[..., Any]) -> Rule | None:
        pointwise = getattr(op.rule, "pointwise", False) and op.schema.result is None and op.inplace_body is None
        return inplace_kernel(op) if pointwise and op.inplace and op.name != "copied" else None

    def adopted(self, frame: Any, tensor: Tensor) -> Batched:
        return Batched(tensor, frame, False, own=False)

    def empty(self, index: int, shape: tuple[int, ...], dtype: Any) -> Batched:
        """Return a batched tensor without content, so that each example can be written."""
        frame = frame_at(index)
        with below(frame.instance):
            return Batched(frame.like.new_empty((frame.size, *shape), dtype=dtype), frame, True)

    def layout(self, payload: Batched) -> tuple[tuple[int, ...], int]:  # type: ignore[override]
        """Return strides and offset of the first example."""
        strides, offset = super().layout(payload)
        return (strides[1:] if payload.batched else strides), offset

    def to_host(self, payload: Batched) -> memoryview:  # type: ignore[override]
        if payload.batched:
            raise RuntimeError(
                "vmap: It looks like you're calling .item() or .numpy() on a Tensor, or using it in data-dependent "
                "control flow (if, while, bool()). vmap does not support that, as each example has a value of its own: "
                "please try to rewrite what you're doing with other operations, such as "
                f"candelabra.where:{users_line()}"
            )
        return super().to_host(payload)

    def copy_(self, destination: Batched, source: Batched) -> Batched:
        instance = destination.frame.instance
        with below(instance):
            if source.batched and not destination.batched:
                if not destination.own:
                    refuse_write()
                destination.tensor = expanded(destination.tensor, source.frame.size).clone()
                destination.batched = True
            destination.tensor.copy_(source.tensor)
        return destination

    def describe(self, tensor: Tensor) -> str:
        payload = tensor._payload
        inner = repr(payload.tensor).replace("\n", "\n    ")
        bdim = 0 if payload.batched else None
        return f"BatchedTensor(lvl={payload.frame.depth}, bdim={bdim}, value=\n    {inner}\n)"


VMAP: Final = Vmap()


def refuse_write() -> NoReturn:
    """Raise functorch's error for a batched value that is written into memory without a batch dim."""
    raise RuntimeError(
        "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
        "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
        "being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said "
        "operator is being called inside the framework, please create the tensor that is written by new_zeros() or "
        "zeros_like() of a batched one"
    )


# -- calls for several examples ---------------------------------------------------------------------------------------
def run_batched(op: Operator[..., Any], size: int, marks: list[Any], args: list[Any]) -> Any:
    """Call an operator for several examples: tensors that are marked have them along their first dim, as the results.

    The batching rule is called without a level, if no operand has to be promoted: that depends on the examples' ranks.
    """
    rule = _rule_of(op)
    if rule is not None and (op.promote is unpromoted or _has_one_dtype(args)):
        out = rule(size, marks, *args)
        if out is not NotImplemented:
            return out
    frame = Batch(size, "different")
    frame.like = next(t for t, marked in _with_marks(args, marks) if marked)
    with frame:
        values = [
            [frame.batch(t) if m else t for t, m in zip(a, marked, strict=True)] if isinstance(marked, list)
            else frame.batch(a) if marked else a
            for a, marked in zip(args, marks, strict=True)
        ]  # fmt: skip
        found = op.canonical(*values)
        return tuple([frame.unbatched(o) for o in found]) if op.schema.result is not None else frame.unbatched(found)


@lru_cache(None)
def _rule_of(op: Operator[..., Any]) -> Rule | None:
    """Return the rule of an operator if it has one that needs no level."""
    kind = family_of(op)
    if kind == "declared":
        return op.batching or RULES[op.name]
    if kind != "pointwise" or op.random:
        return None
    return pointwise_list_rule(op) if any(p.kind == "list" for p in op.schema.parameters) else pointwise_rule(op)


def _with_marks(args: Sequence[Any], marks: Sequence[Any]) -> list[tuple[Any, bool]]:
    """Return the arguments and the elements of lists, each with its mark."""
    pairs: list[tuple[Any, bool]] = []
    for a, marked in zip(args, marks, strict=True):
        pairs += zip(a, marked, strict=True) if isinstance(marked, list) else [(a, marked)]
    return pairs


def _has_one_dtype(args: Sequence[Any]) -> bool:
    """Return whether all tensors among the arguments have the same dtype."""
    found = 0
    for a in args:
        for t in a if isinstance(a, (list, tuple)) else (a,):
            found |= getattr(t, "_keys", 0) & DTYPE_MASK
    return not found & (found - 1)

"""``autograd.Function`` in forward mode: its ``jvp``, or its ``backward``, differentiated along the cotangent."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.api import gradients_of
from candelabra._autograd.filling import zeros_like
from candelabra._keys import NO_GRAD, mode, state
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor
from candelabra._transforms.dual import FORWARD, DualFrame
from candelabra._transforms.level import below, levelled
from candelabra._transforms.tangent_rules import leaf_of

if TYPE_CHECKING:
    from candelabra.autograd.function import Function


def frame_of_duals(args: tuple[Any, ...]) -> DualFrame | None:
    """Return the level of forward mode that serves a call, if its arguments are dual numbers.

    A call that is recorded on that level itself (reverse mode inside forward mode) is not served there, but its
    ``forward`` is; see :func:`forward_of`.
    """
    frame = innermost_duals(args)
    if frame is None or state.bits & NO_GRAD:
        return frame
    bit = frame.instance.bit
    recorded = any(isinstance(a, Tensor) and a._keys & bit and a._fresh()._node is not None for a in args)
    return None if recorded else frame


def forward_of(function: type[Function], args: tuple[Any, ...]) -> Any:
    """Return ``function.forward(*args)``. On dual numbers, the tangents are those of ``function.jvp`` if it exists."""
    frame = innermost_duals(args) if _has_jvp(function) else None
    return function.forward(*args) if frame is None else applied_to_duals(function, frame, args)


def innermost_duals(args: tuple[Any, ...]) -> DualFrame | None:
    """Return the innermost level of the arguments, if it is one of forward mode and its block has not ended."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    if not tensors:
        return None
    innermost = max(tensors, key=lambda t: t._instance.depth)
    if innermost._instance.backend is not FORWARD:
        return None
    frame: DualFrame = innermost._fresh()._payload.frame
    return frame if frame.alive else None


def applied_to_duals(function: type[Function], frame: DualFrame, args: tuple[Any, ...]) -> Any:
    """Return the outputs of a custom function at the primals, with their tangents."""
    parts = [frame.primal_and_tangent(a) if isinstance(a, Tensor) else (a, None) for a in args]
    primals, tangents = tuple([p for p, _ in parts]), tuple([t for _, t in parts])
    with below(frame.instance):
        if _has_jvp(function):
            made, ctx = function._applied(primals)
            ctx._in_jvp = True
            along = function.jvp(ctx, *tangents)
            ctx._in_jvp = False
        else:
            made = function.apply(*primals)
            along = _transposed(function, primals, tangents)
    if not isinstance(made, tuple):
        return frame.dual(made, along)
    if not isinstance(along, tuple) or len(along) != len(made):
        raise RuntimeError(
            f"{function.__name__}.jvp returned {along!r}: expected a tuple with a tangent or None for each of "
            f"{len(made)} outputs"
        )
    return tuple([frame.dual(o, t) if isinstance(o, Tensor) else o for o, t in zip(made, along, strict=True)])


def _has_jvp(function: type[Function]) -> bool:
    from candelabra.autograd.function import Function

    return function.jvp is not Function.jvp


def _transposed(function: type[Function], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Return the tangents by differentiating the backward pass, see :mod:`candelabra._transforms.tangent_rules`."""
    recording = not state.bits & NO_GRAD
    with mode(exclude=NO_GRAD):
        inputs = list(primals)
        for i, t in enumerate(tangents):
            if t is not None:  # another tensor for each argument, also for one that is passed twice
                x = inputs[i]
                inputs[i] = leaf_of(x) if x._node is None else OPERATORS["alias"].canonical(x)
        made = function.apply(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        places = [i for i, o in enumerate(outputs) if isinstance(o, Tensor) and o.requires_grad]
        found: list[Any] = [None] * len(outputs)
        probes = [zeros_like(outputs[i]).requires_grad_() for i in places]
        moved = [i for i, t in enumerate(tangents) if t is not None]
        products = gradients_of(
            [outputs[i] for i in places], [inputs[i] for i in moved], probes, None, True, allow_unused=True
        )
        pairs = [(g, tangents[i]) for g, i in zip(products, moved, strict=True) if g is not None and g.requires_grad]
        if pairs:
            along = gradients_of(
                [g for g, _ in pairs], probes, [t for _, t in pairs], None, recording, allow_unused=True
            )
            for i, t in zip(places, along, strict=True):
                found[i] = t if t is None or _is_recorded(primals, tangents) else levelled(t)
    return tuple(found) if isinstance(made, tuple) else found[0]


def _is_recorded(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> bool:
    return any(isinstance(t, Tensor) and t._node is not None for t in (*primals, *tangents))

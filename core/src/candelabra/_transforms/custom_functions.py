"""``autograd.Function`` inside transforms.

In forward mode, its tangents are those of its ``jvp``, or its ``backward`` is differentiated along the cotangent. Under
``vmap``, its static method ``vmap`` serves it if it has one; else ``forward`` runs on batched tensors.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.api import gradients_of
from candelabra._autograd.filling import zeros_like
from candelabra._keys import NO_GRAD, VIEW, mode, state
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor
from candelabra._transforms.batching import VMAP, Batch
from candelabra._transforms.batching_kernels import Batched
from candelabra._transforms.dual import FORWARD, DualFrame
from candelabra._transforms.level import Frame, below, levelled
from candelabra._transforms.tangent_rules import leaf_of
from candelabra._transforms.vmap import flat_dims
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from candelabra.autograd.function import Function


class VmapInfo(NamedTuple):
    """The size of the batch and the kind of randomness, for ``Function.vmap``."""

    batch_size: int
    randomness: str


def frame_of_duals(args: tuple[Any, ...]) -> DualFrame | None:
    """Return the level of forward mode that serves a call, if its arguments are dual numbers.

    A call that is recorded on that level itself (reverse mode inside forward mode) is not served there, but its
    ``forward`` is; see :func:`forward_of`.
    """
    frame = innermost_frame(args)
    if not isinstance(frame, DualFrame) or state.bits & NO_GRAD:
        return frame if isinstance(frame, DualFrame) else None
    bit = frame.instance.bit
    recorded = any(isinstance(a, Tensor) and a._keys & bit and a._fresh()._node is not None for a in args)
    return None if recorded else frame


def forward_of(function: type[Function], args: tuple[Any, ...]) -> Any:
    """Return ``function.forward(*args)``, or what the derivative or ``function.vmap`` give on the innermost level."""
    frame = innermost_frame(args)
    if isinstance(frame, DualFrame):
        return applied_to_duals(function, frame, args)
    if isinstance(frame, Batch) and _has_vmap(function):
        return applied_to_batch(function, frame, args)
    return function.forward(*args)


def forward_with_context(function: type[Function], ctx: Any, args: tuple[Any, ...]) -> Any:
    """Return ``function.forward(ctx, *args)``. On dual numbers, the outputs get the tangents of the derivative.

    ``forward`` runs a second time for these: ``ctx`` needs what the first run has saved on this level.
    """
    made = function.forward(ctx, *args)
    frame = innermost_frame(args)
    if isinstance(frame, DualFrame):
        outputs = made if isinstance(made, tuple) else (made,)
        found = applied_to_duals(function, frame, args)
        for o, dual in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
            if isinstance(o, Tensor) and not o._keys & VIEW and not any(o is a for a in args):
                o._payload = dual._payload
    return made


def innermost_frame(args: tuple[Any, ...]) -> Frame | None:
    """Return the use of the innermost level of the arguments, if it is ``vmap`` or ``jvp`` and has not ended."""
    tensors = [a for a in tree_flatten(args)[0] if isinstance(a, Tensor)]
    if not tensors:
        return None
    innermost = max(tensors, key=lambda t: t._instance.depth)
    if innermost._instance.backend not in (FORWARD, VMAP):
        return None
    frame: Frame = innermost._fresh()._payload.frame
    return frame if frame.alive else None


# -- vmap -------------------------------------------------------------------------------------------------------------
def applied_to_batch(function: type[Function], frame: Batch, args: tuple[Any, ...]) -> Any:
    """Return the outputs of ``function.vmap``, which gets the tensors of all examples, as tensors of the level."""
    leaves, spec = tree_flatten(args)
    payloads = [_payload_in(frame, leaf) for leaf in leaves]
    values = [leaf if p is None else p.tensor for leaf, p in zip(leaves, payloads, strict=True)]
    dims = [None if p is None or not p.batched else 0 for p in payloads]
    with below(frame.instance):
        operands = tree_unflatten(values, spec)
        if all(dim is None for dim in dims):
            found = function.apply(*operands), None
        else:
            info = VmapInfo(frame.size, frame.randomness)
            found = function.vmap(info, tree_unflatten(dims, spec), *operands)
        outputs, out_spec, batched = _checked_outputs(function, found)
    results = list(outputs)
    origin = {id(value): leaf for value, leaf in zip(values, leaves, strict=True)}
    for i, o in enumerate(outputs):
        if id(o) in origin:  # an input, which may have been modified in place, is returned as the same tensor
            results[i] = origin[id(o)]
        elif isinstance(o, Tensor):
            results[i] = frame.wrap(Batched(o, frame, batched[i]))
    return tree_unflatten(results, out_spec)


def _payload_in(frame: Batch, value: Any) -> Batched | None:
    """Return the payload of a tensor of the level, None for other values and for tensors of outer levels."""
    if not isinstance(value, Tensor) or not value._keys & frame.instance.bit:
        return None
    payload: Batched = value._fresh()._payload
    return payload


def _checked_outputs(function: type[Function], returned: Any) -> tuple[list[Any], TreeSpec, list[bool]]:
    """Return the outputs of ``function.vmap`` with the examples in front, and which of them have examples."""
    name = function.__name__
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            f"{name}.vmap returned {type(returned).__name__}: expected a tuple of two elements, the outputs and their "
            "out_dims"
        )
    outputs, spec = tree_flatten(returned[0])
    dims = flat_dims(returned[1], spec)
    if dims is None:
        raise RuntimeError(
            f"{name}.vmap returned out_dims of structure {tree_flatten(returned[1])[1]}: expected that of its outputs, "
            f"{spec}"
        )
    fronts = [o.movedim(dim, 0) if dim else o for o, dim in zip(outputs, dims, strict=True)]
    return fronts, spec, [dim is not None for dim in dims]


def _has_vmap(function: type[Function]) -> bool:
    from candelabra.autograd.function import Function

    if function.vmap is Function.vmap:
        return False
    if function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overridden "
            "vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to "
            "avoid ambiguity."
        )
    return True


# -- forward mode -----------------------------------------------------------------------------------------------------
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
            made, along = _transposed(function, primals, tangents)
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


def _transposed(function: type[Function], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the outputs, and their tangents by differentiating ``backward``.

    See :mod:`candelabra._transforms.tangent_rules`.
    """
    moved = [i for i, t in enumerate(tangents) if t is not None]
    if not moved:
        made = function.apply(*primals)
        return made, (None,) * len(made) if isinstance(made, tuple) else None
    recording = not state.bits & NO_GRAD
    with mode(exclude=NO_GRAD):
        inputs = list(primals)
        for i in moved:  # another tensor for each argument, also for one that is passed twice
            x = inputs[i]
            inputs[i] = leaf_of(x) if x._node is None else OPERATORS["alias"].canonical(x)
        made = function.apply(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        places = [i for i, o in enumerate(outputs) if isinstance(o, Tensor) and o.requires_grad]
        found: list[Any] = [None] * len(outputs)
        probes = [zeros_like(outputs[i]).requires_grad_() for i in places]
        products = gradients_of(
            [outputs[i] for i in places], [inputs[i] for i in moved], probes, None, True, allow_unused=True
        )
        pairs = [(g, tangents[i]) for g, i in zip(products, moved, strict=True) if g is not None and g.requires_grad]
        if pairs:
            along = gradients_of(
                [g for g, _ in pairs], probes, [t for _, t in pairs], None, recording, allow_unused=True
            )
            for i, t in zip(places, along, strict=True):
                found[i] = t if t is None or _is_recorded((*primals, *tangents)) else levelled(t)
    if not (recording and _is_recorded(primals)):  # the graph of the outputs has served its purpose
        outputs = tuple([levelled(o) if isinstance(o, Tensor) else o for o in outputs])
    return (outputs, tuple(found)) if isinstance(made, tuple) else (outputs[0], found[0])


def _is_recorded(values: tuple[Any, ...]) -> bool:
    return any(isinstance(t, Tensor) and t._node is not None for t in values)

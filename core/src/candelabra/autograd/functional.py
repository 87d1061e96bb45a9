"""Jacobians, Hessians, and their products with vectors. As ``torch.autograd.functional``.

``jvp`` and ``hvp`` apply reverse mode twice: the product with a Jacobian is the derivative of the (linear) map from the
output's gradient to the input's ("double backward trick").
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.filling import filled_like, zeros_like
from candelabra._keys import NO_GRAD, mode
from candelabra.autograd._gradients import grad

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Tensors = Any
"""A tensor, or a tuple of them."""


def vjp(
    func: Callable[..., Tensors], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """Return ``(func(inputs), v^T J)``: the outputs and the vector-Jacobian product.

    ``v`` may be omitted for a scalar output. ``create_graph``: the results can be differentiated. ``strict``: raise
    RuntimeError instead of returning zeros if an output does not depend on an input.
    """
    with mode(exclude=NO_GRAD):
        single, values = _prepared(inputs, "inputs", "vjp", create_graph)
        single_out, outputs = _outputs(func(*values), "vjp")
        _check_requires_grad(outputs, "outputs", strict)
        vectors = _vector_for(outputs, v, "vjp")
        found = _grad(outputs, values, vectors, create_graph)
        filled = _filled(found, values, strict, create_graph, "back")
    return _results(outputs, single_out, create_graph, strict), _results(filled, single, create_graph, strict)


def jvp(
    func: Callable[..., Tensors], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """Return ``(func(inputs), J v)``: the outputs and the Jacobian-vector product.

    ``v`` may be omitted for a scalar input. ``create_graph`` and ``strict`` as in :func:`vjp`.
    """
    with mode(exclude=NO_GRAD):
        _, values = _prepared(inputs, "inputs", "jvp", create_graph)
        vectors = _vector_for(values, v, "jvp")
        single_out, outputs = _outputs(func(*values), "jvp")
        _check_requires_grad(outputs, "outputs", strict)
        probes = tuple([zeros_like(o).requires_grad_() for o in outputs])
        rows = _grad(outputs, values, probes, True)
        _check_requires_grad(rows, "grad_inputs", strict)
        filled = _filled(_grad(rows, probes, vectors, create_graph), outputs, strict, create_graph, "back_trick")
    return _results(outputs, single_out, create_graph, strict), _results(filled, single_out, create_graph, strict)


def jacobian(
    func: Callable[..., Tensors],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors:
    """Return the Jacobian: ``J[i][j]`` has the shape of output ``i`` followed by that of input ``j``.

    The result is a tensor if the output and the input are single tensors, else a tuple (per output) of tuples (per
    input). Each element of the output takes one backward pass; with ``vectorize`` they are one pass under ``vmap``.
    ``strategy="forward-mode"`` computes the columns by forward mode, and needs ``vectorize``.

    Raises ``RuntimeError`` for ``strict`` with ``vectorize`` or forward mode.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _by_columns(func, inputs, create_graph, strict, vectorize)
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorize=True` are not supported together. Please either set `strict=False` "
            "or `vectorize=False`."
        )
    with mode(exclude=NO_GRAD):
        single, values = _prepared(inputs, "inputs", "jacobian", create_graph)
        single_out, outputs = _outputs(func(*values), "jacobian")
        _check_requires_grad(outputs, "outputs", strict)
        rows = (
            _all_rows(outputs, values, create_graph)
            if vectorize
            else [_jacobian_of(out, i, values, create_graph, strict) for i, out in enumerate(outputs)]
        )
    rows = [_results(row, single, create_graph, strict) for row in rows]
    return rows[0] if single_out else tuple(rows)


def _by_columns(
    func: Callable[..., Tensors], inputs: Tensors, create_graph: bool, strict: bool, vectorize: bool
) -> Tensors:
    """Return the Jacobian by forward mode: ``jacfwd`` of a function of all inputs."""
    from candelabra._transforms.forward import jacfwd

    if strict:
        raise RuntimeError(
            'jacobian: `strict=True` and `strategy="forward-mode"` are not supported together. Please either set '
            '`strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    single_out = True

    def outputs_of(*at: Tensor) -> tuple[Tensor, ...]:
        nonlocal single_out
        single_out, found = _outputs(func(*at), "jacobian")
        return found

    with mode(exclude=NO_GRAD):
        single, values = _prepared(inputs, "inputs", "jacobian", create_graph)
        rows = jacfwd(outputs_of, tuple(range(len(values))))(*values)
    found = [_results(row, single, create_graph, False) for row in rows]
    return found[0] if single_out else tuple(found)


def _all_rows(outputs: tuple[Tensor, ...], values: tuple[Tensor, ...], create_graph: bool) -> list[tuple[Tensor, ...]]:
    """Return the Jacobians of all outputs from one backward pass, for all elements of the outputs."""
    from candelabra._transforms.reverse import standard_basis

    basis = standard_basis(list(outputs))
    pairs = [(o, b) for o, b in zip(outputs, basis, strict=True) if o.requires_grad]
    found: tuple[Tensor | None, ...] = (None,) * len(values)
    if pairs and basis[0].shape[0]:
        found = grad(
            [o for o, _ in pairs], values, [b for _, b in pairs], retain_graph=True, create_graph=create_graph,
            allow_unused=True, is_grads_batched=True,
        )  # fmt: skip
    rows = []
    start = 0
    for out in outputs:
        shapes = [(*out.shape, *x.shape) for x in values]
        rows.append(tuple([
            filled_like(x, 0, shape) if g is None else g.narrow(0, start, out.numel()).reshape(shape)
            for g, x, shape in zip(found, values, shapes, strict=True)
        ]))  # fmt: skip
        start += out.numel()
    return rows


def _jacobian_of(
    out: Tensor, number: int, values: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    from candelabra._operators.shapes.joining import stack

    columns: list[list[Tensor]] = [[] for _ in values]
    flat = out.reshape(-1)
    for position in range(out.numel()):
        found = _grad((flat[position],), values, None, create_graph)
        for j, (g, x) in enumerate(zip(found, values, strict=True)):
            if strict and g is None:
                raise RuntimeError(
                    f"Output {number} of the user-provided function is independent of input {j}. This is not allowed "
                    "in strict mode."
                )
            if strict and create_graph and g is not None and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {j}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
            columns[j].append(zeros_like(x) if g is None else g)
    return tuple([
        stack(found).reshape(*out.shape, *x.shape) if found else filled_like(x, 0, (*out.shape, *x.shape))
        for found, x in zip(columns, values, strict=True)
    ])  # fmt: skip


def hessian(
    func: Callable[..., Tensor],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensors:
    """Return the Hessian of a function with one real scalar output: the Jacobian of its gradient.

    ``vectorize`` and ``outer_jacobian_strategy``: how :func:`jacobian` computes it.
    """
    from candelabra._transforms.tangent_rules import leaf_of

    single, values = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*at: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":  # the gradient has a graph of its own on this level
            at = tuple([leaf_of(x) for x in at])
        single_out, outputs = _outputs(func(*at), "hessian")
        _check_requires_grad(outputs, "outputs", strict)
        _check_scalar(outputs, single_out, "hessian")
        found = _filled(_grad(outputs, at, None, True), at, False, True, "back")
        _check_requires_grad(found, "jacobian", strict)
        # If the output does not depend on an input, or only linearly, the second derivative is zero.
        return found if strict else tuple([g + _connected_zeros(x) for g, x in zip(found, at, strict=True)])

    rows = jacobian(gradient, values, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows[0][0] if single else rows


def _connected_zeros(x: Tensor) -> Tensor:
    """Return zeros that depend on ``x``, so that there is a graph to differentiate."""
    return x * 0


def vhp(
    func: Callable[..., Tensor], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """Return ``(func(inputs), v^T H)``: the output and the product of a vector with the Hessian."""
    with mode(exclude=NO_GRAD):
        single, values = _prepared(inputs, "inputs", "vhp", create_graph)
        vectors = _vector_for(values, v, "vhp")
        single_out, outputs = _outputs(func(*values), "vhp")
        _check_requires_grad(outputs, "outputs", strict)
        _check_scalar(outputs, single_out, "vhp")
        first = _grad(outputs, values, None, True)
        _check_requires_grad(first, "jacobian", strict)
        filled = _filled(_grad(first, values, vectors, create_graph), values, strict, create_graph, "double_back")
    return _results(outputs, single_out, create_graph, strict), _results(filled, single, create_graph, strict)


def hvp(
    func: Callable[..., Tensor], inputs: Tensors, v: Tensors = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """Return ``(func(inputs), H v)``: the output and the product of the Hessian with a vector.

    Real Hessians are symmetric, so this is :func:`vhp`, which takes one backward pass less.
    """
    return vhp(func, inputs, v, create_graph, strict)


# -- arguments and results ----------------------------------------------------------------------------------------
def _as_tuple(value: Any, argument: str, name: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return (whether ``value`` was a single tensor, the tensors)."""
    single = not isinstance(value, (tuple, list))
    tensors = (value,) if single else tuple(value)
    for position, tensor in enumerate(tensors):
        if not hasattr(tensor, "_payload"):
            if single:
                raise TypeError(
                    f"The {argument} given to {name} must be either a Tensor or a tuple of Tensors but the given "
                    f"{argument} has type {type(tensor)}."
                )
            raise TypeError(
                f"The {argument} given to {name} must be either a Tensor or a tuple of Tensors but the value at index "
                f"{position} has type {type(tensor)}."
            )
    return single, tensors


def _prepared(value: Any, argument: str, name: str, create_graph: bool) -> tuple[bool, tuple[Tensor, ...]]:
    """Return the inputs as new tensors: connected to the caller's graph with ``create_graph``, else leaves."""
    single, tensors = _as_tuple(value, argument, name)
    if create_graph:
        return single, tuple([t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in tensors])
    return single, tuple([t.detach().requires_grad_() for t in tensors])


def _outputs(value: Any, name: str) -> tuple[bool, tuple[Tensor, ...]]:
    return _as_tuple(value, "outputs of the user-provided function", name)


def _vector_for(like: tuple[Tensor, ...], v: Any, name: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            whose = "the user-provided function returns"
            if name != "vjp":
                whose = "the input to the user-provided function is"
            raise RuntimeError(f"The vector v can only be None if {whose} a single Tensor with a single element.")
        return (filled_like(like[0], 1),)
    _, vectors = _as_tuple(v, "v", name)
    if len(vectors) != len(like):
        if len(like) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for position, (one, other) in enumerate(zip(vectors, like, strict=True)):
        if one.shape != other.shape:
            prefix = f"Entry {position} in " if len(vectors) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {list(other.shape)} but got {list(one.shape)}.")
    return vectors


def _check_scalar(outputs: tuple[Tensor, ...], single: bool, name: str) -> None:
    if not single:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


_NOT_STRICT = {
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
        "differentiable manner from the input when running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is not "
        "allowed in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} "
        "is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
        "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function "
        "for example)."
    ),
}
"""The errors for a tensor that does not require grad, per kind of tensor."""


def _check_requires_grad(tensors: tuple[Tensor | None, ...], kind: str, strict: bool) -> None:
    if not strict:
        return
    for position, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_INDEPENDENT["back"].format(position))
        if not tensor.requires_grad:
            raise RuntimeError(_NOT_STRICT[kind].format(position))


def _grad(outputs: Any, inputs: Any, vectors: Any, create_graph: bool) -> tuple[Tensor | None, ...]:
    """Call ``grad`` without the outputs that are None or have no graph."""
    vectors = (None,) * len(outputs) if vectors is None else vectors
    pairs = [(o, w) for o, w in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        tuple([o for o, _ in pairs]), inputs, tuple([w for _, w in pairs]), retain_graph=True,
        create_graph=create_graph, allow_unused=True,
    )  # fmt: skip


_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": (
        "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
        "backward trick to compute forward mode gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
}


def _filled(
    gradients: tuple[Tensor | None, ...], like: tuple[Tensor, ...], strict: bool, create_graph: bool, stage: str
) -> tuple[Tensor, ...]:
    """Replace absent gradients by zeros.

    With ``strict``, raise RuntimeError instead, also if a result cannot be differentiated.
    """
    filled = []
    for position, (g, x) in enumerate(zip(gradients, like, strict=True)):
        if strict and g is None:
            raise RuntimeError(_INDEPENDENT[stage].format(position))
        if strict and create_graph and g is not None and not g.requires_grad:
            whose = "hessian" if stage == "double_back" else "jacobian"
            raise RuntimeError(
                f"The {whose} of the user-provided function is independent of input {position}. This is not allowed "
                "in strict mode when create_graph=True."
            )
        filled.append(zeros_like(x) if g is None else g)
    return tuple(filled)


def _results(tensors: tuple[Tensor, ...], single: bool, create_graph: bool, strict: bool) -> Tensors:
    """Detach results unless a graph was requested, and return a single tensor for a single input."""
    kept = tensors if create_graph else tuple([t.detach() for t in tensors])
    return kept[0] if single else kept


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def __dir__() -> list[str]:
    return sorted(__all__)

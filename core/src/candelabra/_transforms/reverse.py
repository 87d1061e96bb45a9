"""Derivatives of functions by reverse mode: ``grad``, ``grad_and_value``, ``vjp``, ``jacrev``. As in ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps

from candelabra._annotations import Any
from candelabra._autograd.filling import filled_like
from candelabra._tensor import Tensor
from candelabra._transforms.tape import Tape
from candelabra._transforms.vmap import vmap
from candelabra.utils._pytree import tree_flatten, tree_map, tree_unflatten

Argnums = int | tuple[int, ...]


# -- grad -------------------------------------------------------------------------------------------------------------
def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns ``(gradient, value)`` of ``func``; see :func:`grad`.

    With ``has_aux`` it returns ``(gradient, (value, aux))``.
    """

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        places = checked_argnums(argnums, len(args))
        tape = Tape()
        with tape:
            values = list(args)
            for place in places:
                values[place] = differentiable(tape, args[place])
            output = func(*values, **kwargs)
            aux = None
            if has_aux:
                output, aux = with_aux("grad_and_value(f)(*args)", output)
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output._payload.shape:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            keep = tape.keeps_graph([output])
            gradients = iter(tape.gradients([output], None, keep, release=True))
        parts = [filled(args[place], gradients) for place in places]
        value = tape.result(output, keep)
        found = parts[0] if isinstance(argnums, int) else tuple(parts)
        return found, ((value, tape.results(aux, keep)) if has_aux else value)

    return both


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the gradient of ``func``, which returns a 0-d tensor, as a function of the same arguments.

    ``argnums``: the position of the argument to differentiate with respect to, or a tuple of positions. Such an
    argument is a tensor or a nested container of tensors, and the gradient has its structure. With ``has_aux``,
    ``func`` returns ``(output, aux)``, and the result is ``(gradient, aux)``. As ``torch.func.grad``.

    Raises ``RuntimeError`` if the output is not a 0-d tensor, and for positions that are no arguments.
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


# -- vjp --------------------------------------------------------------------------------------------------------------
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)`` and a function of cotangents: their product with the Jacobian of ``func``.

    The cotangents have the structure of the output, and the results that of ``primals``: a tuple, also for one. With
    ``has_aux``, ``func`` returns ``(output, aux)``, and the result is ``(output, vjp_fn, aux)``. As ``torch.func.vjp``.

    Raises ``RuntimeError`` if an output is not a tensor of a floating or complex dtype, and for cotangents of another
    structure.
    """
    return vjp_of(func, primals, tuple(range(len(primals))), has_aux)


def vjp_of(func: Callable[..., Any], args: tuple[Any, ...], argnums: Argnums, has_aux: bool) -> Any:
    """Return :func:`vjp` with respect to some of the arguments. If ``argnums`` is an int, the result is not a tuple."""
    places = checked_argnums(argnums, len(args))
    tape = Tape()
    with tape:
        values = list(args)
        for place in places:
            values[place] = differentiable(tape, args[place])
        output = func(*values)
        aux = None
        if has_aux:
            output, aux = with_aux("vjp(f, *primals)", output)
        outputs, spec = tree_flatten(output)
        check_outputs("vjp(f, *primals)", outputs)
        keep = tape.keeps_graph(outputs)
    for out in outputs:
        if not (out.is_floating_point() or out.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{out.dtype}"
            )

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        flat, given = tree_flatten(cotangents)
        if given != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given}, primal output: {spec}"
            )
        create = tape.keeps_graph_for(flat, keep) if create_graph is None else create_graph
        gradients = iter(tape.gradients(outputs, flat, create))
        parts = [filled(args[place], gradients) for place in places]
        return parts[0] if isinstance(argnums, int) else tuple(parts)

    shown = tree_unflatten([tape.result(out, keep) for out in outputs], spec)
    return (shown, vjp_fn, tape.results(aux, keep)) if has_aux else (shown, vjp_fn)


# -- jacrev -----------------------------------------------------------------------------------------------------------
def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return the Jacobian of ``func`` as a function of the same arguments, computed row by row by reverse mode.

    For each output, the result has for each input a tensor of the shape of the output followed by that of the input.
    ``argnums`` and ``has_aux`` are those of :func:`grad`. ``chunk_size``: the number of rows that are computed together
    by ``vmap``, by default all. As ``torch.func.jacrev``.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        check_real("jacrev", args, "inputs")
        called = (lambda *values: func(*values, **kwargs)) if kwargs else func
        output, vjp_fn, *aux = vjp_of(called, args, argnums, has_aux)
        outputs, spec = tree_flatten(output)
        check_real("jacrev", outputs, "outputs")
        rows = vmap(lambda *cotangents: vjp_fn(tree_unflatten(cotangents, spec)), chunk_size=chunk_size)(
            *standard_basis(outputs)
        )
        chosen = args[argnums] if isinstance(argnums, int) else tuple([args[i] for i in argnums])
        blocks = [_rows_of(rows, chosen, outputs, i) for i in range(len(outputs))]
        found = tree_unflatten(blocks, spec)
        return (found, aux[0]) if has_aux else found

    return jacobian


def standard_basis(tensors: list[Tensor]) -> list[Tensor]:
    """Return the standard basis of a space of several tensors: one vector per element, along a new first dim."""
    sizes = [t.numel() for t in tensors]
    total = sum(sizes)
    found = []
    start = 0
    for t, size in zip(tensors, sizes, strict=True):
        basis = filled_like(t, 0, (total, size))
        basis.diagonal(-start).narrow(0, 0, size).fill_(1)
        found.append(basis.reshape((total, *t._payload.shape)))
        start += size
    return found


def _rows_of(rows: Any, primals: Any, outputs: list[Tensor], i: int) -> Any:
    """Return the rows of one output, in the structure of the primals."""
    start = sum([out.numel() for out in outputs[:i]])
    size, shape = outputs[i].numel(), tuple(outputs[i]._payload.shape)

    def one(row: Any, primal: Any) -> Any:
        return row.narrow(0, start, size).reshape((*shape, *primal._payload.shape))

    return tree_map(one, rows, primals)


# -- arguments and results --------------------------------------------------------------------------------------------
def checked_argnums(argnums: Any, count: int) -> list[int]:
    """Return the positions as non-negative ints. Raise RuntimeError for positions that are no arguments."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = []
    for place in (argnums,) if isinstance(argnums, int) else argnums:
        if not isinstance(place, int):
            raise RuntimeError(f"argnum must be int, got: {type(place)}")
        if not -count <= place < count:
            raise RuntimeError(f"Got argnum={place}, but only {count} positional inputs")
        places.append(place % count)
    if not places and count:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return places


def differentiable(tape: Tape, value: Any) -> Any:
    """Return a nested container with a variable of the tape for each tensor."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        return tape.variable(leaf)

    return tree_map(one, value)


def filled(value: Any, gradients: Iterator[Tensor]) -> Any:
    """Return a container of the structure of ``value`` with the next gradients."""
    return tree_map(lambda _: next(gradients), value)


def with_aux(call: str, output: Any) -> tuple[Any, Any]:
    """Return the output and the auxiliary result of a function with ``has_aux``."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def check_outputs(call: str, outputs: list[Any]) -> None:
    """Raise RuntimeError unless a function returned tensors, at least one."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(f"{call}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for out in outputs:
        if not isinstance(out, Tensor):
            raise RuntimeError(f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(out)}")


def check_real(name: str, values: Any, kind: str) -> None:
    """Raise RuntimeError for complex tensors."""
    for value in tree_flatten(values)[0]:
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {kind} to be real but received complex tensor at flattened input idx: 0"
            )


__all__ = ["grad", "grad_and_value", "jacrev", "vjp"]

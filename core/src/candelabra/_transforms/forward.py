"""Derivatives of functions by forward mode: ``jvp``, ``linearize``, ``jacfwd``, ``hessian``. As in ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from candelabra._annotations import Any, Final
from candelabra._autograd.api import gradients_of
from candelabra._keys import DEVICE_SHIFT, NO_GRAD
from candelabra._tensor import Tensor
from candelabra._transforms.dual import DualFrame, tangent_of
from candelabra._transforms.level import modes_of_level
from candelabra._transforms.reverse import (
    Argnums,
    check_outputs,
    check_real,
    checked_argnums,
    jacrev,
    standard_basis,
    with_aux,
)
from candelabra._transforms.tangent_rules import leaf_of
from candelabra._transforms.tape import Tape
from candelabra._transforms.vmap import vmap
from candelabra.dtypes import DIFFERENTIABLE_BITS, DTYPE_MASK
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

PLACE_MASK: Final = -1 << DEVICE_SHIFT | DTYPE_MASK
"""The bits of a key that say dtype and device."""


# -- jvp --------------------------------------------------------------------------------------------------------------
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return ``(func(*primals), the derivative of func at primals along tangents)``.

    ``primals`` and ``tangents`` are tuples of the same structure: tensors, or nested containers of them. Each tangent
    has the shape and dtype of its primal, and the result's tangents those of the outputs. With ``has_aux``, ``func``
    returns ``(output, aux)``, and the result is ``(output, tangents, aux)``. ``strict``: raise ``RuntimeError`` for an
    output that does not depend on the primals, instead of returning zeros. As ``torch.func.jvp``.

    Raises ``RuntimeError`` for tangents of another structure, shape or dtype, and for outputs that are no tensors.
    """
    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = tree_flatten(primals)
    _check_tensors(call, "primals", flat)
    along = _checked_tangents(call, tangents, flat, spec)
    frame = DualFrame()
    aux: Any = None
    with frame:
        inputs = [frame.dual(p, t) for p, t in zip(flat, along, strict=True)]
        output = func(*tree_unflatten(inputs, spec))
        if has_aux:
            output, aux = with_aux(call, output)
        outputs, out_spec = tree_flatten(output)
        check_outputs(call, outputs)
        parts = [frame.primal_and_tangent(out) for out in outputs]
        if has_aux:
            aux = tree_map(
                lambda value: frame.primal_and_tangent(value)[0] if isinstance(value, Tensor) else value, aux
            )
    frame.write_back(inputs, flat)
    if strict and any(t is None for _, t in parts):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    found = (
        tree_unflatten([p for p, _ in parts], out_spec),
        tree_unflatten([tangent_of(p, t) for p, t in parts], out_spec),
    )
    return (*found, aux) if has_aux else found


def _checked_tangents(call: str, tangents: Any, primals: list[Any], spec: TreeSpec) -> list[Tensor]:
    """Return the tangents in order. Raise RuntimeError unless they fit the primals."""
    if not primals:
        raise RuntimeError(f"{call}: Expected primals to contain at least one Tensor.")
    along, given = tree_flatten(tangents)
    if given != spec:
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{given}"
        )
    _check_tensors(call, "tangents", along)
    for number, (p, t) in enumerate(zip(primals, along, strict=True)):
        check_tangent(f"{call}: ", p, t, f" at flattened position {number}")
    return along


def _check_tensors(call: str, role: str, values: list[Any]) -> None:
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{call}: Expected {role} to only contain Tensors, got {type(value)}")
        if not value._keys & DIFFERENTIABLE_BITS:
            raise RuntimeError(
                f"{call}: Expected {role} to have a floating or complex dtype, as only those have derivatives, got "
                f"{value.dtype}"
            )


def check_tangent(call: str, primal: Tensor, tangent: Tensor, where: str = "") -> None:
    """Raise RuntimeError unless a tangent has the shape and the dtype of its primal, and is on its device."""
    if primal._payload.shape == tangent._payload.shape and not (primal._keys ^ tangent._keys) & PLACE_MASK:
        return  # tensors of different levels may also be on one device
    for what in ("shape", "dtype", "device"):
        expected, got = getattr(primal, what), getattr(tangent, what)
        if expected != got:
            if what == "shape":
                expected, got = list(expected), list(got)
            raise RuntimeError(
                f"{call}Expected tangent to have the same {what} as primal{where}: primal has {what} {expected}, "
                f"tangent has {what} {got}"
            )


# -- linearize --------------------------------------------------------------------------------------------------------
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``func(*primals)`` and a function of tangents: the derivative of ``func`` at ``primals`` along them.

    ``func`` runs once, here. The linear function that is returned runs the recorded derivative. Tangents have the
    structure, shapes and dtypes of ``primals``. As ``torch.func.linearize``.
    """
    call = "linearize(f, *primals)"
    flat, spec = tree_flatten(primals)
    _check_tensors(call, "primals", flat)
    tape = Tape()
    with tape:
        output = func(*tree_unflatten([tape.variable(p) for p in flat], spec))
        outputs, out_spec = tree_flatten(output)
        check_outputs(call, outputs)
        keep = tape.keeps_graph(outputs)
        derivative = LinearMap(tape, outputs)
    shown = [tape.result(out, keep) for out in outputs]

    def jvp_fn(*tangents: Any) -> Any:
        along = _checked_tangents("jvp_fn(*tangents)", tangents, flat, spec)
        found = derivative(along, keep or any(t._fresh()._node is not None for t in along))
        parts = [tangent_of(out, t) for out, t in zip(shown, found, strict=True)]
        return tree_unflatten(parts, out_spec)

    return tree_unflatten(shown, out_spec), jvp_fn


class LinearMap:
    """The derivative of the outputs of a tape: the transpose of their vector-Jacobian product, which runs once.

    That product is linear in its cotangents, and its graph is recorded. A call runs this graph backwards, from tangents
    of the variables to tangents of the outputs; see ``candelabra._transforms.tangent_rules``.
    """

    def __init__(self, tape: Tape, outputs: Sequence[Tensor]) -> None:
        self.tape = tape
        self.count = len(outputs)
        self.places = [i for i, out in enumerate(outputs) if out._fresh()._node is not None]
        self.cotangents = [leaf_of(outputs[i]) for i in self.places]
        reached = [outputs[i] for i in self.places]
        self.products: Sequence[Tensor | None] = (None,) * len(tape.variables)
        if reached:
            self.products = gradients_of(
                reached, tape.variables, self.cotangents, retain_graph=True, create_graph=True, allow_unused=True
            )

    def __call__(self, tangents: Sequence[Tensor], keep: bool) -> list[Tensor | None]:
        """Return the tangents of the outputs, None for zeros. ``keep``: with their graph."""
        found: list[Tensor | None] = [None] * self.count
        pairs = [(g, t) for g, t in zip(self.products, tangents, strict=True) if g is not None and g._node is not None]
        if not pairs:
            return found
        with modes_of_level(self.tape.depth, *((0, NO_GRAD) if keep else (NO_GRAD, 0))):
            products, along = zip(*pairs, strict=True)
            parts = gradients_of(
                products, self.cotangents, along, retain_graph=True, create_graph=keep, allow_unused=True
            )
        for place, t in zip(self.places, parts, strict=True):
            found[place] = None if t is None else self.tape.result(t, keep)
        return found


# -- jacfwd and hessian -----------------------------------------------------------------------------------------------
def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return the Jacobian of ``func`` as a function of the same arguments, computed column by column by forward mode.

    For each output, the result has for each input a tensor of the shape of the output followed by that of the input.
    ``argnums`` and ``has_aux`` are those of :func:`candelabra.func.grad`. ``randomness``: that of
    :func:`candelabra.func.vmap`, which computes all columns together. As ``torch.func.jacfwd``.
    """

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        places = checked_argnums(argnums, len(args))
        chosen = args[places[0]] if isinstance(argnums, int) else tuple([args[i] for i in places])
        inputs, spec = tree_flatten(chosen)
        _check_tensors("jacfwd", "inputs", inputs)
        check_real("jacfwd", inputs, "inputs")

        def called(value: Any) -> Any:
            values = list(args)
            for place, part in zip(places, (value,) if isinstance(argnums, int) else value, strict=True):
                values[place] = part
            return func(*values, **kwargs)

        def column(*tangents: Tensor) -> Any:
            found = jvp(called, (chosen,), (tree_unflatten(list(tangents), spec),), has_aux=has_aux)
            check_real("jacfwd", found[0], "outputs")
            return found[1:]

        columns, *aux = vmap(column, out_dims=(0, None) if has_aux else 0, randomness=randomness)(
            *standard_basis(inputs)
        )
        found = tree_map(lambda rows: tree_unflatten(_columns_of(rows, inputs), spec), columns)
        return (found, aux[0]) if has_aux else found

    return jacobian


def _columns_of(columns: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    """Return the Jacobian of one output for each input, from the derivatives along all basis vectors."""
    found = []
    start = 0
    for x in inputs:
        part = columns.narrow(0, start, x.numel()).movedim(0, -1)
        found.append(part.reshape((*part.shape[:-1], *x.shape)))
        start += x.numel()
    return found


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return the Hessian of ``func``: the Jacobian of its Jacobian, forward over reverse mode.

    For a function that returns a 0-d tensor, the result has the shape of the input twice. As ``torch.func.hessian``.
    """
    return jacfwd(jacrev(func, argnums), argnums)


__all__ = ["hessian", "jacfwd", "jvp", "linearize"]

"""Derivatives of Python functions: ``grad(f)`` is a function. In the style of HIPS/autograd; they can be nested.

``candelabra.grad`` is the one of this module, from functions to functions. ``candelabra.autograd.grad`` is PyTorch's,
from tensors to tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import wraps

from candelabra._annotations import Any, Final
from candelabra._autograd.api import gradients_of
from candelabra._autograd.filling import zeros_like
from candelabra._autograd.saved import with_node
from candelabra._dispatch.levels import innermost
from candelabra._keys import NO_GRAD, mode

Argnums = int | Sequence[int]


class _Nesting(threading.local):
    """The number of transforms around the running code. An inner one keeps its graph, as an outer one may need it."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


_nesting: Final = _Nesting()


def value_and_grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns ``(value, gradient)`` of ``func``; see :func:`grad`.

    With ``has_aux`` it returns ``((value, aux), gradient)``.
    """
    name = getattr(func, "__name__", type(func).__name__)

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        positions = _positions(argnums, len(args), name)
        keep = _nesting.depth > 0 or _recorded_outside(args, kwargs)
        with mode(exclude=NO_GRAD), _nesting:
            variables = [_variables(args[p], name, p) for p in positions]
            values = list(args)
            for p, (made, _) in zip(positions, variables, strict=True):
                values[p] = made
            result = func(*values, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise TypeError(
                        f"grad: with has_aux=True {name} must return a pair (output, aux), got {_kind(result)}"
                    )
                result, aux = result
            _check_output(result, name)
            flat = [leaf for _, leaves in variables for leaf in leaves]
            found: list[Any] = [None] * len(flat)
            if result.requires_grad and flat:
                found = list(gradients_of(result.reshape(()), flat, create_graph=keep, allow_unused=True))
        filled = iter([zeros_like(leaf) if g is None else g for g, leaf in zip(found, flat, strict=True)])
        parts = tuple([_rebuilt(args[p], filled) for p in positions])
        gradient = parts[0] if isinstance(argnums, int) else parts
        result = result if keep else _without_graph(result)
        return ((result, aux) if has_aux else result), gradient

    both.__name__ = both.__qualname__ = f"value_and_grad({name})"
    return both


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the gradient of ``func`` as a function of the same arguments.

    ``func`` returns one real number (a tensor of one element). ``argnums``: the index of the positional argument to
    differentiate with respect to, or a sequence of indices. An argument may be a tensor, a number, or a tuple, list or
    dict of them, and its gradient has the same structure. The arguments are not modified. With ``has_aux``, ``func``
    returns ``(output, aux)`` and the result is ``(gradient, aux)``. ``grad(grad(f))`` is the second derivative.

    Raises ``TypeError`` for arguments without a gradient (integer tensors, strings), and ``RuntimeError`` if the output
    is not a real scalar.
    """
    both = value_and_grad(func, argnums, has_aux)

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    name = getattr(func, "__name__", type(func).__name__)
    gradient.__name__ = gradient.__qualname__ = f"grad({name})"
    return gradient


def elementwise_grad(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return the elementwise derivative of ``func``, whose outputs depend only on the input at the same index."""

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def total(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs).sum()

    return grad(total, argnums)


# -- arguments ----------------------------------------------------------------------------------------------------
def _kind(value: Any) -> str:
    return type(value).__name__


def _positions(argnums: Argnums, count: int, name: str) -> list[int]:
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    for p in positions:
        if not -count <= p < count:
            raise TypeError(
                f"grad: {name} was called with {count} positional arguments, and argnums names argument {p}"
            )
    return [p % count for p in positions]


def _variables(value: Any, name: str, position: int) -> tuple[Any, list[Any]]:
    """Return ``value`` with a new differentiable tensor for each tensor or number, and the list of these tensors.

    The tensor for an argument that is part of a graph stays connected to the graph, as nested gradients require.
    """
    leaves: list[Any] = []

    def one(v: Any) -> Any:
        if isinstance(v, (int, float, complex)) and not isinstance(v, bool):
            from candelabra._operators.creation.from_data import tensor

            v = tensor(complex(v) if isinstance(v, complex) else float(v))
        if not hasattr(v, "_payload") or not (v.is_floating_point() or v.is_complex()):
            kind = f"{v.dtype} Tensor" if hasattr(v, "_payload") else _kind(v)
            raise TypeError(f"grad: argument {position} of {name} is (or contains) a {kind}, which has no gradient")
        level = innermost()
        if level is not None and not v._keys & level.instance.bit:
            v = level.adopt(v)  # the derivative is recorded on the innermost level, where the function runs
        variable = v.view_as(v) if v.requires_grad else _without_graph(v).requires_grad_()
        leaves.append(variable)
        return variable

    return _mapped(value, one), leaves


def _without_graph(tensor: Any) -> Any:
    """Return a tensor without the graph of its own level. The graphs of outer levels go on."""
    return with_node(tensor._fresh(), None) if tensor._instance.depth else tensor.detach()


def _mapped(value: Any, one: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(v, one) for key, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_mapped(v, one) for v in value])
    if isinstance(value, (tuple, list)):
        return type(value)([_mapped(v, one) for v in value])
    return one(value)


def _rebuilt(value: Any, gradients: Any) -> Any:
    return _mapped(value, lambda _: next(gradients))


def _recorded_outside(args: Any, kwargs: Any) -> bool:
    """Return whether an argument is part of a graph, so that the caller differentiates through this call."""
    if isinstance(args, dict):
        args = tuple(args.values())
    if isinstance(args, (tuple, list)):
        return any(_recorded_outside(a, ()) for a in args) or (
            bool(kwargs) and _recorded_outside(tuple(kwargs.values()), ())
        )
    return hasattr(args, "_payload") and bool(args.requires_grad)


def _check_output(result: Any, name: str) -> None:
    if not hasattr(result, "_payload"):
        raise TypeError(f"grad: {name} must return a Tensor, got {_kind(result)}")
    if result.numel() != 1:
        raise RuntimeError(
            f"grad: {name} must return a scalar, got shape {list(result.shape)}; use autograd.functional.jacobian, or "
            "elementwise_grad"
        )
    if result.is_complex():
        raise RuntimeError(f"grad: {name} must return a real number, got {result.dtype}")


__all__ = ["elementwise_grad", "grad", "value_and_grad"]

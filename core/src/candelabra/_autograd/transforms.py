"""Derivatives of ordinary Python functions: ``grad(f)`` is a function. In the style of HIPS/autograd; they nest.

``candelabra.grad`` is this one, from functions to functions; ``candelabra.autograd.grad`` is PyTorch's, from tensors to
tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import wraps

from candelabra._annotations import Any, Final
from candelabra._autograd.api import grad as gradients_of
from candelabra._autograd.filling import zeros_like
from candelabra._keys import NO_GRAD, mode

Argnums = int | Sequence[int]


class _Nesting(threading.local):
    """How many transforms surround the running code: an inner one keeps the graph, for a closure may tie it to an
    outer.
    """

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


_nesting: Final = _Nesting()


def value_and_grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns ``(func(...), its gradient)``; see :func:`grad`. With ``has_aux``: ``((value, aux),
    gradient)``.
    """
    name = getattr(func, "__name__", type(func).__name__)

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        places = _places(argnums, len(args), name)
        keep = _nesting.depth > 0 or _recorded_outside(args, kwargs)
        with mode(exclude=NO_GRAD), _nesting:
            variables = [_variables(args[p], name, p) for p in places]
            values = list(args)
            for p, (made, _) in zip(places, variables, strict=True):
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
        parts = tuple([_rebuilt(args[p], filled) for p in places])
        gradient = parts[0] if isinstance(argnums, int) else parts
        result = result if keep else result.detach()
        return ((result, aux) if has_aux else result), gradient

    both.__name__ = both.__qualname__ = f"value_and_grad({name})"
    return both


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of ``func`` as a function of the same arguments.

    ``func`` returns one real number (a tensor of one element). ``argnums``: which positional arguments to
    differentiate by, an
    int or several; an argument may be a tensor, a number, or a tuple, list or dict of them, and so is its gradient. The
    arguments themselves are left as they are. With ``has_aux`` ``func`` returns ``(output, aux)`` and the result is
    ``(gradient, aux)``. Nests: ``grad(grad(f))`` is the second derivative.

    Raises ``TypeError`` for arguments that carry no gradient (integers in tensors, strings), ``RuntimeError`` when the
    output is no real scalar.
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
    """The derivative, element by element, of a ``func`` whose outputs each depend on the input at their own place
    only.
    """

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def total(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs).sum()

    return grad(total, argnums)


# -- arguments ----------------------------------------------------------------------------------------------------
def _kind(value: Any) -> str:
    return type(value).__name__


def _places(argnums: Argnums, count: int, name: str) -> list[int]:
    wanted = [argnums] if isinstance(argnums, int) else list(argnums)
    for p in wanted:
        if not -count <= p < count:
            raise TypeError(
                f"grad: {name} was called with {count} positional arguments, which has no argument number {p}"
            )
    return [p % count for p in wanted]


def _variables(value: Any, name: str, place: int) -> tuple[Any, list[Any]]:
    """A new tensor of the graph per tensor (or number) in ``value``, and the list of them.

    An argument that is part of a graph stays tied to it: that is how nested gradients see each other.
    """
    leaves: list[Any] = []

    def one(v: Any) -> Any:
        if isinstance(v, (int, float, complex)) and not isinstance(v, bool):
            from candelabra._operators.creation.from_data import tensor

            v = tensor(complex(v) if isinstance(v, complex) else float(v))
        if not hasattr(v, "_payload") or not (v.is_floating_point() or v.is_complex()):
            what = f"{v.dtype} Tensor" if hasattr(v, "_payload") else _kind(v)
            raise TypeError(f"grad: argument {place} of {name} is (or holds) a {what}, which carries no gradient")
        made = v.view_as(v) if v.requires_grad else v.detach().requires_grad_()
        leaves.append(made)
        return made

    return _mapped(value, one), leaves


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
    """Whether a caller differentiates through this call: one of the arguments is part of a graph."""
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

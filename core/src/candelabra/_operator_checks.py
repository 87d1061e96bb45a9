"""``library.opcheck``: whether an operator of a program keeps what it declares, by calls with example arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from candelabra._annotations import Any, Final
from candelabra._custom_operators import CustomOperator
from candelabra._tensor import Tensor
from candelabra.autograd import backward
from candelabra.compiler import compile
from candelabra.utils._pytree import tree_flatten, tree_map

Call = Callable[..., Any]


class OpCheckFailed(RuntimeError):
    """An operator does not keep what it declares."""


def opcheck(
    op: CustomOperator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check an operator of :func:`custom_op` by calls with these arguments.

    ``test_utils`` are the names of the checks, by default all: ``test_schema`` (a call writes the arguments of
    ``mutates_args`` only, and returns none), ``test_autograd_registration`` (results require grad if there is a
    derivative), ``test_faketensor`` (the shape function agrees with the results) and ``test_aot_dispatch_dynamic`` (a
    compiled call gives the results and the gradients of an eager one, within ``atol`` and ``rtol``).

    Returns ``"SUCCESS"`` or the error for each. Raises :class:`OpCheckFailed` for the first error, unless
    ``raise_exception`` is False, and ``ValueError`` for an unknown check.
    """
    bound = op._signature.bind(*args, **(kwargs or {}))
    bound.apply_defaults()
    names = [test_utils] if isinstance(test_utils, str) else [*test_utils] or [*CHECKS]
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise ValueError(f"opcheck(): expected test_utils of {', '.join(CHECKS)}, got {unknown[0]!r}")
    tolerance = {name: value for name, value in (("atol", atol), ("rtol", rtol)) if value is not None}
    found: dict[str, Any] = {}
    for name in names:
        try:
            CHECKS[name](op, list(bound.arguments.values()), tolerance)
            found[name] = "SUCCESS"
        except Exception as error:
            found[name] = failure = OpCheckFailed(f"opcheck(): {name} of {op._qualname} failed: {error}")
            if raise_exception:
                raise failure from error
    return found


def _copies(args: list[Any]) -> list[Any]:
    """Return copies of the tensors among arguments, as leaves of a new graph."""
    copied: list[Any] = tree_map(
        lambda a: a.detach().clone().requires_grad_(a.requires_grad) if _is_tensor(a) else a, args
    )
    return copied


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, Tensor)]


def _check_schema(op: CustomOperator, args: list[Any], _: dict[str, Any]) -> None:
    given = _copies(args)
    results = _tensors(op(*given))
    for i, (name, before, after) in enumerate(zip(op._signature.parameters, args, given)):
        for a, b in zip(_tensors(before), _tensors(after), strict=True):
            if i not in op._written and not a.detach().equal(b.detach()):
                raise OpCheckFailed(f"the call has written {name!r}, which is not in mutates_args")
            if any(r.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for r in results if b.numel()):
                raise OpCheckFailed(f"a result shares memory with {name!r}; return a clone()")


def _check_autograd(op: CustomOperator, args: list[Any], _: dict[str, Any]) -> None:
    given = _copies(args)
    results = _tensors(op(*given))
    if any(t.requires_grad for t in _tensors(given)) and op.has_derivative:
        missing = [t for t in results if t.is_floating_point() and not t.requires_grad]
        if missing:
            raise OpCheckFailed("a result does not require grad")


def _check_shapes(op: CustomOperator, args: list[Any], _: dict[str, Any]) -> None:
    real = _tensors(op(*_copies(args)))
    fake = _tensors(op(*tree_map(lambda a: a.detach().to("meta") if _is_tensor(a) else a, args)))
    known, expected = ([(tuple(t.shape), t.dtype) for t in each] for each in (fake, real))
    if known != expected:
        raise OpCheckFailed(f"the shape function returned {known}, expected {expected}")


def _check_compiled(op: CustomOperator, args: list[Any], tolerance: dict[str, Any]) -> None:
    compiled: Call = compile(op, fullgraph=True)
    compiled(*_copies(args))  # the first call is traced
    sides = []
    for call in (op, compiled):
        given = _copies(args)
        out = _tensors(call(*given))
        graded = [t for t in _tensors(given) if t.requires_grad]
        starts = [t for t in out if t.requires_grad]
        if graded and starts:
            backward(starts, [t.new_ones(t.shape) for t in starts])
        sides.append((out, [t.detach() for t in _tensors(given)], [t.grad for t in graded]))
    words = ("result", "argument after the call", "gradient")
    for word, expected, found in zip(words, *sides, strict=True):
        for number, (a, b) in enumerate(zip(expected, found, strict=True)):
            if (a is None) != (b is None) or (a is not None and not b.allclose(a, **tolerance, equal_nan=True)):
                raise OpCheckFailed(f"{word} {number} of a compiled call differs from that of an eager one")


CHECKS: Final[dict[str, Callable[[CustomOperator, list[Any], dict[str, Any]], None]]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_shapes,
    "test_aot_dispatch_dynamic": _check_compiled,
}
"""The checks, by PyTorch's names."""

__all__ = ["OpCheckFailed", "opcheck"]

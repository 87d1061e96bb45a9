"""PyTorch's names of passes that replace patterns: ``candelabra.compiler.PatternPass``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import Any
from candelabra.compiler import PatternPass
from candelabra.fx import symbolic_trace

PatternMatcherPass = PatternPass


def fwd_only(fn: Callable[..., Any], args: Sequence[Any], **_: Any) -> Any:
    """Trace a function without gradients, as all patterns are traced."""
    return symbolic_trace(fn)


def register_replacement(
    search_fn: Callable[..., Any],
    replace_fn: Callable[..., Any],
    example_inputs: Sequence[Any],
    trace_fn: Callable[..., Any],
    pass_dicts: PatternPass | Sequence[PatternPass],
    extra_check: Callable[[Any], bool] = lambda match: True,
    **_: Any,
) -> bool:
    """Register a pattern in one or several passes. Return True. Raise ``NotImplementedError`` for patterns that are
    traced with their derivatives.
    """
    if trace_fn is not fwd_only:
        raise NotImplementedError(
            f"register_replacement(): trace_fn={getattr(trace_fn, '__name__', trace_fn)} is not supported, since "
            "patterns are traced without gradients; pass fwd_only"
        )
    for each in [pass_dicts] if isinstance(pass_dicts, PatternPass) else pass_dicts:
        each.register(search_fn, replace_fn, example_inputs, extra_check)
    return True


__all__ = ["PatternMatcherPass", "fwd_only", "register_replacement"]

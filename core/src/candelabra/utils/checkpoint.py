"""Activation checkpointing, as ``torch.utils.checkpoint``: compute what a function saves again in the backward pass.

``use_reentrant=False`` (and the default, None) is :func:`candelabra.autograd.checkpoint`, by saved-tensor hooks.
``use_reentrant=True`` is PyTorch's older way: the function runs without recording, and the backward pass runs it again
and differentiates it on its own. It supports ``backward`` only, no keyword arguments, and no further derivatives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from candelabra._annotations import Any
from candelabra._autograd import checkpointing
from candelabra._autograd.api import backward
from candelabra._autograd.checkpointing import CheckpointError, Contexts, Recorded
from candelabra._autograd.modes import enable_grad
from candelabra._tensor import Tensor
from candelabra.autograd.function import Function

_early_stop: list[bool] = []


def noop_context_fn() -> tuple[Any, Any]:
    """Return two context managers without effect."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Set inside the block whether a second run ends once all saved tensors are there."""
    _early_stop.append(enable)
    try:
        yield
    finally:
        _early_stop.pop()


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the indices of the accelerators of the tensors among ``args``, and the states of their generators."""
    from candelabra._device_modules import get_device_module

    found = {x.device: x.device.index for x in args if isinstance(x, Tensor)}
    numbered = {d: index for d, index in found.items() if index is not None}
    return list(numbered.values()), [get_device_module(d).get_rng_state(d) for d in numbered]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set the states of the generators of accelerators, as :func:`get_device_states` returned them."""
    from candelabra import accelerator
    from candelabra._device_modules import get_device_module

    if not devices:
        return
    kind = device_type or str(accelerator.current_accelerator())
    for index, kept in zip(devices, states, strict=True):
        get_device_module(kind).set_rng_state(kept, index)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs with every tensor detached, requiring grad as before."""
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: tuple[Any, ...]) -> None:
    """Warn if no tensor among the inputs requires grad: the results would not either."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=4)


class CheckpointFunction(Function):
    """The node of a function that runs again in the backward pass: ``apply(function, preserve_rng_state, *args)``."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function without recording."""
        check_backward_validity(args)
        ctx.function = run_function
        ctx.recorded = Recorded(preserve_rng_state)
        ctx.args = [None if isinstance(x, Tensor) else x for x in args]
        ctx.positions = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.required = [args[i].requires_grad for i in ctx.positions]
        ctx.save_for_backward(*[args[i] for i in ctx.positions])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        """Run the function again with recording, and differentiate it."""
        args = list(ctx.args)
        for position, saved, required in zip(ctx.positions, ctx.saved_tensors, ctx.required, strict=True):
            args[position] = saved.detach().requires_grad_(required)
        with ctx.recorded.restored(), enable_grad():
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (out, g) for out, g in zip(outputs, gradients, strict=True) if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in args))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)``, and run it again in the backward pass instead of keeping what it saves.

    ``preserve_rng_state``: the second run draws the random numbers of the first. For ``use_reentrant`` see the module;
    ``context_fn`` returns a context manager for each run. The second run ends early once it has computed what is
    needed, unless ``early_stop`` is False.

    Raises ``ValueError`` for arguments that ``use_reentrant=True`` does not support.
    """
    if not use_reentrant:
        return checkpointing.checkpoint(
            function, *args, context_fn=None if context_fn is noop_context_fn else context_fn,
            determinism_check=determinism_check, preserve_rng_state=preserve_rng_state,
            early_stop=_early_stop[-1] if _early_stop else early_stop, debug=debug, **kwargs,
        )  # fmt: skip
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}; use_reentrant=False passes them on")
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a chain of functions, or an ``nn.Sequential``, in ``segments`` parts, and checkpoint all but the last.

    Raises ``ValueError`` for keyword arguments other than ``preserve_rng_state``.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    for run in checkpointing.segments_of(functions, segments)[:-1]:
        input = checkpoint(run, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return checkpointing.segments_of(functions, segments)[-1](input)


__all__ = [
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "CheckpointError", "CheckpointFunction",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

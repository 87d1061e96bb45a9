"""``checkpoint``: recompute the values that a function saves for its backward pass instead of keeping them.

As PyTorch's ``checkpoint(use_reentrant=False)``: a pair of saved-tensor hooks replaces every saved value by a
placeholder. The first access to one of them runs the function again and fills all of them. Checkpointing therefore
works with ``backward`` and ``grad``, keyword arguments, closures, nesting and second derivatives. The idea of trading
computation for memory is from Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.saved import saved_tensors_hooks
from candelabra._dispatch import autocasting
from candelabra._keys import NO_GRAD, PACK, state, switch
from candelabra._random import generator as generators

if TYPE_CHECKING:
    from candelabra._random.generator import Generator
    from candelabra._tensor import Tensor

Contexts = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one did."""


class _Holder:
    """A placeholder in a node for one saved tensor."""

    __slots__ = ("__weakref__", "metadata", "number", "value")

    def __init__(self, number: int, metadata: tuple[Any, ...]) -> None:
        self.number = number
        self.metadata = metadata
        self.value: Any = None


class _EnoughRecomputed(Exception):
    """All saved tensors have been recomputed: the rest of the function need not run."""


class _CheckpointRun:
    """One call of a checkpointed function, with everything that is needed to run it again."""

    def __init__(
        self, function: Callable[..., Any], kwargs: dict[str, Any], preserve: bool, check: bool, early: bool
    ) -> None:
        self.function, self.kwargs = function, kwargs
        self.check, self.early_stop = check, early
        self.holders: list[weakref.ref[_Holder]] = []
        self.recorded = Recorded(preserve)
        self.context: Callable[[], AbstractContextManager[Any]] = nullcontext
        self.args: tuple[Any, ...] = ()

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder(len(self.holders), _metadata(tensor))
        self.holders.append(weakref.ref(holder))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        if holder.value is None:
            self.again()
            if holder.value is None:
                raise CheckpointError(
                    "checkpoint: A different number of tensors was saved during the original forward and "
                    "recomputation.\n"
                    f"Number of tensors saved during forward: {len(self.holders)}\nThe function must save the same "
                    "tensors each time it runs."
                )
        value: Tensor = holder.value
        holder.value = None  # used once per backward pass; another pass runs the function again
        return value

    def again(self) -> None:
        """Run the function again, with the modes and the random numbers of the first run."""
        count = 0

        def refill(tensor: Tensor) -> Any:
            nonlocal count
            number, count = count, count + 1
            holder = self.holders[number]() if number < len(self.holders) else None
            if holder is not None:
                if self.check and holder.metadata != _metadata(tensor):
                    raise CheckpointError(
                        "checkpoint: Recomputed values for the following tensors have different metadata than during "
                        "the "
                        f"forward pass.\ntensor at position {number}:\nsaved metadata: {holder.metadata}\n"
                        f"recomputed metadata: {_metadata(tensor)}"
                    )
                holder.value = tensor.detach()
            if self.early_stop and count >= len(self.holders):
                raise _EnoughRecomputed
            return tensor.detach()

        with self.recorded.restored(), self.context(), saved_tensors_hooks(refill, lambda t: t):
            try:
                self.function(*self.args, **self.kwargs)
            except _EnoughRecomputed:
                pass


class Recorded:
    """The modes, the autocast and the random numbers of a first run, for a second one."""

    def __init__(self, random: bool) -> None:
        self.mode = state.bits
        self.autocast = autocasting.settings.enabled
        self.generators = _generator_states() if random else []

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Run the block with recording on and everything else as in the first run."""
        before = state.bits
        switch(self.mode & ~(NO_GRAD | PACK) | (before & PACK))
        try:
            with _generators_at(self.generators), autocasting.restored(self.autocast):
                yield
        finally:
            switch(before)


def _metadata(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype.name, str(tensor.device)


def _generator_states() -> list[tuple[Generator, int, int]]:
    """Return (generator, seed, offset) of every default generator in use."""
    return [(g, g.initial_seed(), g.get_offset()) for g in generators.default_generators()]


@contextmanager
def _generators_at(states: list[tuple[Generator, int, int]]) -> Iterator[None]:
    """Set generators to recorded states inside the block, and restore their current states at its end."""
    now = [(g, g.initial_seed(), g.get_offset()) for g, _, _ in states]
    for g, seed, offset in states:
        g.manual_seed(seed).set_offset(offset)
    try:
        yield
    finally:
        for g, seed, offset in now:
            g.manual_seed(seed).set_offset(offset)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Contexts | None = None,
    determinism_check: str = "default",
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """Return ``function(*args, **kwargs)``, and run it again in the backward pass instead of keeping what it saves.

    ``preserve_rng_state``: the second run draws the random numbers of the first. ``context_fn``: returns two context
    managers, one for each run. ``determinism_check="none"``: do not compare the shapes and dtypes of both runs.
    ``use_reentrant`` and ``debug`` are accepted and have no effect: the only implementation is PyTorch's
    ``use_reentrant=False``.

    Raises :class:`CheckpointError` (a ``RuntimeError``) in the backward pass if the two runs save different tensors.
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if state.bits & NO_GRAD:
        return function(*args, **kwargs)
    run = _CheckpointRun(function, kwargs, preserve_rng_state, determinism_check == "default", early_stop)
    run.args = args
    first: AbstractContextManager[Any] = nullcontext()
    if context_fn is not None:
        first, second = context_fn()
        run.context = lambda: second
    with first, saved_tensors_hooks(run.pack, run.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a chain of functions (or an ``nn.Sequential``) in ``segments`` parts, and checkpoint all but the last."""
    *first, last = segments_of(functions, segments)
    for run in first:
        input = checkpoint(run, input, use_reentrant=use_reentrant, **kwargs)
    return last(input)


def segments_of(functions: Any, segments: int) -> list[Callable[[Any], Any]]:
    """Return a chain of functions in at most ``segments`` parts of equal length; the last has the remainder."""
    chain: Sequence[Callable[[Any], Any]] = (
        list(functions.children()) if hasattr(functions, "children") else list(functions)
    )
    size = max(len(chain) // segments, 1)
    ends = [size * (i + 1) for i in range(segments - 1) if size * (i + 1) < len(chain)]
    return [_chained(chain[start:end]) for start, end in zip([0, *ends], [*ends, len(chain)], strict=True)]


def _chained(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]

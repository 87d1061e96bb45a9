"""Detection of training steps that wait for the device: it is kept busy, and checked after each part of the step."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from benchmarks.accelerator.models import MODELS, Step
from benchmarks.accelerator.sizes import Sizes
from benchmarks.accelerator.timing import Clock

PARTS = ("forward", "backward", "update")


def waits(model: str, xp: Any, device: str, sizes: Sizes, clock: Clock) -> dict[str, str]:
    """Return the parts of the step that waited for the device, with the source of the wait. Empty if none waited.

    Raises ``RuntimeError`` if the device is synchronous, so that every call waits.
    """
    step = MODELS[model](xp, device, sizes)
    for _ in range(2):
        step()
    block = blocker(xp, device, sizes, clock)
    if block().query():
        raise RuntimeError(f"{device} is done with everything when a call returns: nothing to wait for")
    return detected_waits(step, block, clock)


def detected_waits(step: Step, block: Callable[[], Any], clock: Clock) -> dict[str, str]:
    """Return the result of :func:`waits` for a step that has warmed up."""
    result = {}
    for name in PARTS:
        clock.synchronize()
        event = block()
        with recorded_waits() as seen:
            getattr(step, name)()
        if event.query():
            result[name] = "; ".join(dict.fromkeys(seen)) or "in a library below"
    clock.synchronize()
    return result


def blocker(xp: Any, device: str, sizes: Sizes, clock: Clock) -> Callable[[], Any]:
    """Return a function that keeps the device busy for ``sizes.blocking`` seconds and returns the event after that
    work.

    The products are large where there is much time to fill, since a call also waits if too many launches are pending
    (1,024 on CUDA).
    """
    size = max(1024, sizes.matrix // 2)
    x = xp.rand(size, size, device=device)
    out = x @ x
    clock.synchronize()
    start = perf_counter()
    out = x @ x
    clock.synchronize()
    count = min(500, 1 + int(sizes.blocking / (perf_counter() - start)))

    def block() -> Any:
        nonlocal out
        for _ in range(count):
            out = x @ x
        return clock.record()

    return block


@contextmanager
def recorded_waits() -> Iterator[list[str]]:
    """Yield a list to which the sources of reads from a device and waits for it are appended."""
    from candelabra.library import plugins

    seen: list[str] = []
    changed: list[tuple[type, str, Any]] = []
    for _, backend in plugins.working():
        owner = type(backend)
        for name in ("to_host", "synchronize"):
            original = getattr(owner, name)
            changed.append((owner, name, owner.__dict__.get(name)))
            setattr(owner, name, _watched(original, seen))
    try:
        yield seen
    finally:
        for owner, name, original in changed:
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


def _watched(original: Callable[..., Any], seen: list[str]) -> Callable[..., Any]:
    def watched(*args: Any, **options: Any) -> Any:
        frames = [f for f in traceback.extract_stack()[:-1] if "candelabra" in f.filename]
        seen.append(" < ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames[-3:])))
        return original(*args, **options)

    return watched

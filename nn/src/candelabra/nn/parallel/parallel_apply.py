"""Calls of several modules at the same time, each in a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from candelabra import is_grad_enabled, set_grad_enabled
from candelabra.nn.modules.module import Module
from candelabra.nn.parallel._devices import resolved

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call ``module(*inputs, **kwargs)`` for each module, and return the outputs in order.

    An element of ``inputs`` that is no tuple or list is the only argument. ``devices``: the default device of each
    call. All sequences have the same length. Raises the error of the first module that failed.
    """
    count = len(modules)
    for name, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if given is not None and len(given) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {name} {len(given)}")
    named = [{}] * count if kwargs_tup is None else kwargs_tup
    where = [None] * count if devices is None else [None if each is None else resolved(each) for each in devices]
    recording = is_grad_enabled()
    outputs: list[Any] = [None] * count
    errors: dict[int, Exception] = {}

    def run(number: int) -> None:
        given = inputs[number]
        args = given if isinstance(given, (list, tuple)) else (given,)
        default: Any = where[number]
        try:
            with set_grad_enabled(recording):
                if default is None:
                    outputs[number] = modules[number](*args, **named[number])
                else:
                    with default:
                        outputs[number] = modules[number](*args, **named[number])
        except Exception as error:
            error.add_note(f"This error was raised in replica {number} on device {default}.")
            errors[number] = error

    if count == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[min(errors)]
    return outputs


def __dir__() -> list[str]:
    return sorted(__all__)

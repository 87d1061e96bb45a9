"""no_grad, enable_grad and inference_mode as context managers and decorators, per thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest


def test_contexts_nest() -> None:
    """enable_grad inside no_grad records; each block restores the previous mode."""
    with cd.no_grad():
        assert not cd.is_grad_enabled()
        with cd.enable_grad():
            assert cd.is_grad_enabled()
        with cd.set_grad_enabled(True):
            assert cd.is_grad_enabled()
        assert not cd.is_grad_enabled()
    assert cd.is_grad_enabled()
    with cd.inference_mode():
        assert cd.is_inference_mode_enabled()
        with cd.inference_mode(False):
            assert cd.is_grad_enabled()
    assert not cd.is_inference_mode_enabled()


def test_set_grad_enabled_as_a_function() -> None:
    """It changes the mode immediately."""
    cd.set_grad_enabled(False)
    assert not cd.is_grad_enabled()
    cd.set_grad_enabled(True)
    assert cd.is_grad_enabled()


def test_decorators() -> None:
    """The modes decorate functions with and without parentheses, generators and coroutines."""

    @cd.no_grad
    def plain() -> bool:
        return cd.is_grad_enabled()

    @cd.set_grad_enabled(False)
    def switched() -> bool:
        return cd.is_grad_enabled()

    @cd.no_grad()
    def steps() -> Iterator[bool]:
        received: Any = yield cd.is_grad_enabled()
        yield received

    @cd.no_grad()
    async def later() -> bool:
        return cd.is_grad_enabled()

    assert not plain()
    assert cd.is_grad_enabled()
    assert not switched()
    generator: Any = steps()
    assert next(generator) is False
    assert cd.is_grad_enabled()
    assert generator.send(7) == 7
    with pytest.raises(StopIteration) as stop:
        later().send(None)
    assert stop.value.value is False


def test_modes_do_not_leak_into_other_threads() -> None:
    """Another thread records while this one does not."""
    seen = []
    with cd.no_grad():
        thread = threading.Thread(target=lambda: seen.append(cd.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_threads_on_shared_parameters_give_the_sequential_result() -> None:
    """Eight threads run forward and backward on one leaf: the gradient is the sum."""
    w = cd.ones(4, dtype=cd.float64, requires_grad=True)

    def work() -> None:
        for i in range(50):
            (w * w * float(i)).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.grad.tolist() == [8 * 2.0 * sum(range(50))] * 4

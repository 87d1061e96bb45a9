"""The modes in which the owner alone serves, or contributed kernels at every size."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import candelabra as cd
import pytest
from candelabra.backend import hookimpl
from candelabra.errors import BackendError
from candelabra.library import (
    add_contribution,
    own_kernels,
    serve_every_size,
)


def test_own_kernels_is_a_mode_of_one_thread(contribute: Any) -> None:
    """Inside the block the owner serves this thread, also composites and in-place forms; other threads go on."""

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        return {"exp": lambda x: x + 2, "mul_": lambda x, other: x.fill(9), "mul": lambda x, other: x * 0 + 9}

    contribute(make)
    x = cd.ones(2)
    other: list[Any] = []
    with own_kernels():
        thread = threading.Thread(target=lambda: other.append(cd.zeros(1).exp().tolist()))
        thread.start()
        thread.join()
        assert cd.zeros(1).exp().tolist() == [1.0]
        with cd.no_grad(), own_kernels():
            assert (x * 3).tolist() == [3.0, 3.0]
        assert x.mul_(3).tolist() == [3.0, 3.0]
        assert cd.explain("exp", x).reason == "kernel 'exp' of backend 'cpu'"
        assert "own kernels" in cd.explain("exp", x).key
        assert (cd.zeros(1) * 2).exp().tolist() == [1.0]
    assert other == [[2.0]]
    assert cd.zeros(1).exp().tolist() == [2.0]
    assert own_kernels()(lambda: cd.zeros(1).exp().tolist())() == [1.0]
    assert x.mul_(3).tolist() == [9.0, 9.0]


def test_contributed_kernels_can_serve_calls_of_every_size(contribute: Any) -> None:
    """In the mode, what the hook returns for every size serves, if it makes a difference; own_kernels() goes first."""
    asked: list[bool] = []

    class Limited:
        @hookimpl
        def candelabra_kernels(self, kernels: Mapping[str, Any], every_size: bool) -> dict[str, Any]:
            asked.append(every_size)
            small, least = kernels["exp"], 0 if every_size else 4
            made = {"exp": lambda x: small(x) if x.size < least else x + 2}
            return made if every_size else {**made, "sinh": lambda x: x + 3}

    remove = add_contribution("cpu", Limited())
    try:
        assert cd.zeros(1).exp().tolist() == [1.0]
        assert asked == [False]
        with serve_every_size():
            assert cd.zeros(1).exp().tolist() == [2.0]
            assert cd.zeros(1).sinh().tolist() == [3.0]
            assert "every size" in cd.explain("exp", cd.zeros(1)).key
            with own_kernels():
                assert cd.zeros(4).exp().tolist() == [1.0] * 4
            assert cd.zeros(1, requires_grad=True).exp().tolist() == [2.0]
        assert cd.zeros(1).exp().tolist() == [1.0]
        assert asked == [False, True]
    finally:
        remove()


def test_an_error_of_the_hook_for_every_size_is_raised_by_the_call() -> None:
    """What the hook returns for every size is checked when the mode first needs it."""

    class Careless:
        @hookimpl
        def candelabra_kernels(self, every_size: bool) -> dict[str, Any]:
            return {"exp": 3 if every_size else lambda x: x + 2}

    remove = add_contribution("cpu", Careless(), "acme-fast")
    try:
        with (
            serve_every_size(),
            pytest.raises(BackendError, match="'acme-fast': the kernel of 'exp' is not callable: 3"),
        ):
            cd.zeros(1).exp()
        assert cd.zeros(1).exp().tolist() == [2.0]
    finally:
        remove()


def test_kernels_that_usually_serve_no_size_serve_every_size(contribute: Any) -> None:
    """A kernel whose ``for_dtype`` returns None leaves all calls to the owner, except in the mode."""

    class Never:
        def for_dtype(self, d: cd.dtype) -> None:
            return None

        def __call__(self, x: Any) -> Any:
            return NotImplemented

    class Reluctant:
        @hookimpl
        def candelabra_kernels(self, every_size: bool) -> dict[str, Any]:
            return {"exp": (lambda x: x + 2) if every_size else Never()}

    remove = add_contribution("cpu", Reluctant(), "acme-reluctant")
    try:
        assert cd.zeros(1).exp().tolist() == [1.0]
        assert cd.explain("exp", cd.zeros(1)).reason == "kernel 'exp' of backend 'cpu'"
        with serve_every_size():
            assert cd.zeros(1).exp().tolist() == [2.0]
    finally:
        remove()


def test_a_kernel_for_every_size_alone_is_an_error(contribute: Any) -> None:
    """A kernel that the hook returns only for every size would never serve, which the error says."""

    class Hidden:
        @hookimpl
        def candelabra_kernels(self, every_size: bool) -> dict[str, Any]:
            return {"sin": lambda x: x + 2, **({"exp": lambda x: x + 2} if every_size else {})}

    remove = add_contribution("cpu", Hidden(), "acme-hidden")
    try:
        with (
            serve_every_size(),
            pytest.raises(BackendError, match="returned a kernel of 'exp' only with every_size=True"),
        ):
            cd.zeros(1).sin()
    finally:
        remove()


def test_the_mode_of_the_backward_pass_is_that_of_the_call_to_backward(contribute: Any) -> None:
    """Neither kernels nor the mode of the forward pass are remembered by the graph."""

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        small = kernels["mul"]
        return {"mul": lambda x, other: small(x, other) + 100}

    contribute(make)
    x = cd.tensor([2.0], requires_grad=True)
    with own_kernels():
        y = x * x.detach()
    assert y.tolist() == [4.0]
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [102.0]
    x.grad = None
    y = x * x.detach()
    assert y.tolist() == [104.0]
    with own_kernels():
        y.backward()
    assert x.grad.tolist() == [2.0]

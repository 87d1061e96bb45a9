"""Kernels that distributions contribute to a device which another one owns: who serves a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.backend import of_dtype
from candelabra.dtypes import float32, float64
from candelabra.errors import FallbackWarning
from candelabra.library import (
    add_contribution,
    kernel_for,
    open_device,
    own_kernels,
    plugins,
    record,
    register_kernel,
    state,
)

from tests.core.contributions.contributed import Contributed, Make, OfDtype
from tests.lantern import LanternBackend


def test_a_contributed_kernel_serves_and_hands_small_calls_to_the_owner(contribute: Any) -> None:
    """The hook gets the device type and what serves so far, which its kernels may call; removal restores the owner."""
    seen: list[str] = []

    def make(device_type: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        seen.append(device_type)
        small = kernels["exp"]
        return {"exp": lambda x: small(x) if x.size < 4 else np.full_like(x, 7)}

    remove = contribute(make)
    assert seen == ["cpu"]
    assert cd.zeros(3).exp().tolist() == [1.0] * 3
    assert cd.zeros(5).exp().tolist() == [7.0] * 5
    reason = cd.explain("exp", cd.zeros(3)).reason
    assert reason == "kernel 'exp' of backend 'cpu', contributed by acme-fast"
    remove()
    remove()
    assert cd.zeros(5).exp().tolist() == [1.0] * 5
    assert cd.explain("exp", cd.zeros(3)).reason == "kernel 'exp' of backend 'cpu'"


def test_a_contribution_gets_the_owners_function_of_a_dtype_once(contribute: Any) -> None:
    """of_dtype() returns what serves a dtype: the function that for_dtype chooses, or the kernel itself."""
    asked: list[cd.dtype] = []

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        class Exp:
            def for_dtype(self, dtype: cd.dtype) -> Callable[..., Any]:
                asked.append(dtype)
                small = of_dtype(kernels["exp"], dtype)
                assert small is not None
                return lambda x: small(x) if x.size < 4 else x + 7

            def __call__(self, x: Any) -> Any:
                raise AssertionError("for_dtype chooses the function")

        return {"exp": Exp()}

    contribute(make)
    assert cd.zeros(1).exp().tolist() == cd.zeros(1).exp().tolist() == [1.0]
    assert cd.zeros(4).exp().tolist() == [7.0] * 4
    assert asked == [float32]
    assert of_dtype(OfDtype(float32, len), float64) is None
    assert of_dtype(len, float64) is len


def test_a_declined_call_goes_to_what_served_before(contribute: Any) -> None:
    """By NotImplemented or by dtype, a contributed kernel declines to the next contribution, then to the owner."""
    asked: list[str] = []

    def higher(x: Any) -> Any:
        asked.append("higher")
        return NotImplemented if x.size > 1 else x + 10

    def lower(x: Any) -> Any:
        asked.append("lower")
        return NotImplemented if x.size > 2 else x + 20

    contribute(lambda *_: {"exp": lower}, "low", -1)
    contribute(lambda *_: {"exp": OfDtype(float32, higher)}, "high", 1)
    assert cd.zeros(1).exp().tolist() == [10.0]
    assert cd.zeros(2).exp().tolist() == [20.0] * 2
    assert cd.zeros(3).exp().tolist() == [1.0] * 3
    assert asked == ["higher", "higher", "lower", "higher", "lower"]
    assert cd.zeros(2, dtype=float64).exp().tolist() == [20.0] * 2
    assert asked[5:] == ["lower"]
    assert "contributed by high" in cd.explain("exp", cd.zeros(1)).reason
    assert "contributed by low" in cd.explain("exp", cd.zeros(1, dtype=float64)).reason
    x = cd.zeros(3, requires_grad=True)
    x.exp().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0] * 3


def test_a_declined_call_reaches_the_body_where_the_owner_has_no_kernel(
    contribute: Any, lantern: LanternBackend
) -> None:
    """If no other kernel exists, the composite body or the fallback serves what a contribution declines."""
    contribute(lambda *_: {"softmax": lambda *_: NotImplemented, "sinh": lambda _: NotImplemented}, device="lantern")
    x = cd.tensor([[1.0, 1.0]], device="lantern")
    assert cd.softmax(x, 1).tolist() == [[0.5, 0.5]]
    with pytest.warns(FallbackWarning, match="'sinh' has no kernel"):
        assert (x - 1).sinh().tolist() == [[0.0, 0.0]]


def test_a_declined_write_goes_to_the_in_place_kernel_below(contribute: Any) -> None:
    """A contributed in-place kernel that declines leaves the write to the owner's, which bumps the version once."""

    def make(_: str, kernels: Mapping[str, Any]) -> dict[str, Any]:
        assert "mul_" in kernels
        return {"mul_": lambda x, other: NotImplemented if x.size > 1 else x.fill(9)}

    contribute(make)
    one, two = cd.ones(1), cd.ones(2)
    before = two._version
    assert one.mul_(3).tolist() == [9.0]
    assert two.mul_(3).tolist() == [3.0, 3.0]
    assert two._version == before + 1


def test_a_row_kernel_that_declines_leaves_the_step_to_the_one_below(contribute: Any) -> None:
    """The form over rows asks the contributions in order too."""
    asked: list[int] = []

    def decline(params: Any, *_: Any) -> Any:
        asked.append(len(params))
        return NotImplemented

    contribute(lambda *_: {"sgd_step_": decline})
    param, gradient = cd.ones(2), cd.ones(2)
    record("sgd_step").over_rows([(param, gradient)], 0.5, 0.0, False)
    assert asked == [1]
    assert param.tolist() == [0.5, 0.5]


def test_the_fallback_runs_the_contributed_kernel_of_the_reference_device(
    contribute: Any, lantern: LanternBackend
) -> None:
    """A device without a kernel is served by what serves on the reference device, or in the mode by its owner's."""
    contribute(lambda *_: {"sinh": OfDtype(float32, lambda x: x + 5)})
    x = cd.zeros(2, device="lantern")
    with pytest.warns(FallbackWarning, match="'sinh' has no kernel"):
        assert x.sinh().tolist() == [5.0, 5.0]
    with own_kernels():
        assert x.sinh().tolist() == [0.0, 0.0]


def test_precedence_orders_contributions_and_ties_go_by_name(contribute: Any) -> None:
    """The highest precedence serves first; with equal ones, the first name in the alphabet does."""

    def adding(n: int) -> Make:
        return lambda _, kernels: {"exp": lambda x: x + n, "sinh": lambda x: kernels["sinh"](x) + n}

    contribute(adding(1), "beta")
    contribute(adding(2), "alpha")
    assert cd.zeros(1).exp().tolist() == [2.0]
    undo = contribute(adding(4), "zeta", 3)
    assert cd.zeros(1).exp().tolist() == [4.0]
    assert cd.zeros(1).sinh().tolist() == [7.0]  # each got what served below it, in whatever order they came
    assert [each.distribution for each in plugins.plugins()["cpu"].contributions] == ["zeta", "alpha", "beta"]
    undo()
    assert cd.zeros(1).sinh().tolist() == [3.0]


def test_a_registered_kernel_serves_before_contributed_ones_in_any_order_of_undoing(contribute: Any) -> None:
    """register_kernel wins over contributions that came before or after, and undoing leads back to them."""
    first = register_kernel("cpu", "exp", lambda x: x + 1)
    remove = contribute(lambda *_: {"exp": lambda x: x + 2})
    second = register_kernel("cpu", "exp", lambda x: x + 3)
    assert cd.zeros(1).exp().tolist() == [3.0]
    with own_kernels():
        assert cd.zeros(1).exp().tolist() == [3.0]
    first()
    assert cd.zeros(1).exp().tolist() == [3.0]
    second()
    assert cd.zeros(1).exp().tolist() == [2.0]
    third = register_kernel("cpu", "exp", lambda x: x + 4)
    remove()
    assert cd.zeros(1).exp().tolist() == [4.0]
    third()
    assert cd.zeros(1).exp().tolist() == [1.0]


def test_one_object_may_be_added_to_two_device_types(lantern: LanternBackend) -> None:
    """Removing it from one of them leaves it in force on the other."""
    shared = Contributed(lambda _, kernels: {"exp": kernels["neg"]})
    first = add_contribution("cpu", shared)
    second = add_contribution("lantern", shared)
    first()
    third = add_contribution("lantern", Contributed(lambda *_: {}), "other")
    assert cd.ones(1, device="lantern").exp().tolist() == [-1.0]
    assert cd.zeros(1).exp().tolist() == [1.0]
    third()
    second()
    assert cd.zeros(1, device="lantern").exp().tolist() == [1.0]


def test_kernel_for_tries_the_kernels_in_turn(contribute: Any) -> None:
    """The function that other distributions get from the table tries contributed kernels, then the owner's."""
    contribute(lambda *_: {"exp": OfDtype(float32, lambda x: NotImplemented if x.size > 1 else x + 2)})
    kernel = kernel_for(open_device("cpu"), "exp", float32)
    assert kernel is not None
    assert kernel(np.zeros(1, np.float32)).tolist() == [2.0]
    assert kernel(np.zeros(2, np.float32)).tolist() == [1.0, 1.0]
    assert kernel.first(np.zeros(2, np.float32)) is NotImplemented  # type: ignore[attr-defined]
    with own_kernels():
        own = kernel_for(open_device("cpu"), "exp", float32, state.bits)
    assert own is not None
    assert own(np.zeros(1, np.float32)).tolist() == [1.0]
    chain: Any = cd.get_kernel("cpu", "exp")
    assert repr(chain) == "<kernels of acme-fast, then the owner>"
    assert chain(np.zeros(2, np.float32)).tolist() == [1.0, 1.0]
    assert kernel_for(open_device("cpu"), "no_such", float32) is None


@pytest.mark.usefixtures("lantern")
def test_contributors_count_and_release_the_memory_of_their_results() -> None:
    """The counters of the hook are added to the owner's; empty_cache() passes release=True, and
    reset_peak_memory_stats() reset=True.
    """
    asked: list[tuple[str, bool, bool]] = []

    class Pooling:
        """A contribution with a pool of memory."""

        @cd.backend.hookimpl
        def candelabra_kernels(self) -> dict[str, Any]:
            return {"cosh": lambda x: NotImplemented}

        @cd.backend.hookimpl
        def candelabra_memory(self, device_type: str, release: bool, reset: bool) -> dict[str, int]:
            asked.append((device_type, release, reset))
            return {"allocated": 1000, "pooled": 7}

    x = cd.ones(3, device="lantern")
    before = cd.lantern.memory_stats()
    remove = add_contribution("lantern", Pooling())
    try:
        assert cd.lantern.memory_stats() == before | {"allocated": before["allocated"] + 1000, "pooled": 7}
        cd.lantern.reset_peak_memory_stats()
        cd.lantern.empty_cache()
    finally:
        remove()
    assert asked[:2] == [("lantern", False, False), ("lantern", False, True)]
    assert set(asked[2:]) == {("lantern", True, False)}  # once for each of its devices that is in use
    assert cd.lantern.memory_stats() == before
    assert x.tolist() == [1, 1, 1]

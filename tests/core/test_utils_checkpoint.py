"""`utils.checkpoint`: PyTorch's arguments, the reentrant way, and what both restore."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.amp import autocast
from candelabra.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    get_device_states,
    noop_context_fn,
    set_checkpoint_early_stop,
    set_device_states,
)

BOTH = pytest.mark.parametrize("reentrant", [True, False])


def leaf(*values: float) -> cd.Tensor:
    """Return a float32 leaf that requires grad."""
    return cd.tensor(values, requires_grad=True)


@BOTH
def test_gradients_are_those_without_a_checkpoint(reentrant: bool) -> None:
    """The function runs twice; inputs and parameters get their gradients, arguments that are no tensors pass."""
    w, runs = leaf(2.0, 3.0), []

    def f(x: cd.Tensor, factor: float, y: cd.Tensor) -> tuple[cd.Tensor, cd.Tensor]:
        runs.append(factor)
        return (x * w * factor).exp(), y + x

    def gradients(call: Any) -> list[list[float]]:
        w.grad = None
        x, y = leaf(0.1, 0.2), leaf(1.0, 1.0)
        first, second = call(x, 2.0, y)
        (first.sum() + second.sum() * 3).backward()
        return [t.grad.tolist() for t in (x, y, w)]

    expected = gradients(f)
    runs.clear()
    assert gradients(lambda *args: checkpoint(f, *args, use_reentrant=reentrant)) == expected
    assert runs == [2.0, 2.0]


@BOTH
def test_random_numbers_and_autocast_are_those_of_the_first_run(reentrant: bool) -> None:
    """Dropout drops the same elements, unless `preserve_rng_state` is False; products have the same dtype."""
    for preserve in (True, False):
        kept: list[Any] = []

        def f(x: cd.Tensor, kept: list[Any] = kept) -> cd.Tensor:
            kept.append(cd.rand(4).tolist())
            product = x.reshape(2, 2) @ x.reshape(2, 2)
            kept.append(product.dtype)
            return product.tanh()

        with autocast("cpu"):
            out = checkpoint(f, leaf(1.0, 2.0, 3.0, 4.0), use_reentrant=reentrant, preserve_rng_state=preserve)
        out.float().sum().backward()
        assert (kept[0] == kept[2]) is preserve
        assert kept[1] is kept[3] is cd.bfloat16


@BOTH
def test_a_chain_runs_in_segments(reentrant: bool) -> None:
    """All segments but the last are checkpointed."""
    x, y = leaf(0.3), leaf(0.3)
    chain = [cd.sin, cd.exp, cd.cos]
    checkpoint_sequential(chain, 2, x, use_reentrant=reentrant).sum().backward()
    y.sin().exp().cos().sum().backward()
    assert x.grad.tolist() == y.grad.tolist()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: speed"):
        checkpoint_sequential(chain, 2, x, speed=1)


def test_what_the_reentrant_way_refuses() -> None:
    """Keyword arguments, `context_fn`, results and inputs without gradient."""
    x = leaf(1.0)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: power"):
        checkpoint(cd.sin, x, use_reentrant=True, power=2)
    with pytest.raises(ValueError, match="`context_fn` or `debug` is only supported when use_reentrant=False"):
        checkpoint(cd.sin, x, use_reentrant=True, debug=True)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(cd.sin, cd.ones(1), use_reentrant=True).requires_grad
    out = checkpoint(lambda v: v.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        out.sum().backward()


def test_context_functions_and_early_stop() -> None:
    """Each run has a context of its own; without early stop the second run goes to its end."""
    ends: list[int] = []

    def f(x: cd.Tensor) -> cd.Tensor:
        y = x.sin().exp()
        ends.append(1)
        return y

    for early, count in ((True, 1), (False, 2)):
        ends.clear()
        with set_checkpoint_early_stop(early):
            out = checkpoint(f, leaf(1.0), use_reentrant=False, context_fn=noop_context_fn)
        out.sum().backward()
        assert len(ends) == count
    x = leaf(1.0)
    assert detach_variable((x, 3))[1] == 3
    assert detach_variable((x,))[0].requires_grad


def test_a_second_run_that_differs_is_an_error() -> None:
    """`determinism_check` compares shapes and dtypes of what both runs save."""
    sizes = iter([1, 2])

    def f(x: cd.Tensor) -> cd.Tensor:
        return x.expand(next(sizes)).sin().sum()

    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(f, leaf(1.0), use_reentrant=False).backward()


def test_states_of_accelerators(lantern: Any) -> None:
    """The generators of the accelerators of the arguments go back to where they were; the host's has no index."""
    x = cd.ones(2, device="lantern:1")
    devices, states = get_device_states(x, leaf(1.0), "text")
    assert devices == [1]
    kept = states[0].tolist()
    cd.get_device_module("lantern").manual_seed_all(5)
    assert get_device_states(x)[1][0].tolist() != kept
    set_device_states(devices, states, device_type="lantern")
    assert get_device_states(x)[1][0].tolist() == kept
    assert get_device_states(leaf(1.0)) == ([], [])
    set_device_states([], [])

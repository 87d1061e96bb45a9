"""Hooks of modules: forward, backward, saving and loading."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


class Scaled(nn.Module):
    """Returns its input times a number."""

    def forward(self, x: Any, times: float = 2.0) -> Any:
        return x * times


class Both(nn.Module):
    """A module with two inputs and two outputs."""

    def forward(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x * 2, x * y


def test_forward_hooks_get_and_replace_values() -> None:
    """Pre-hooks may replace arguments, hooks the output; a removed hook is not called."""
    m = Scaled()
    first = m.register_forward_pre_hook(lambda module, args: args[0] + 1)
    second = m.register_forward_hook(lambda module, args, out: out * 10)
    assert m(cd.ones(1)).item() == 40
    first.remove()
    assert m(cd.ones(1)).item() == 20
    second.remove()
    assert m(cd.ones(1)).item() == 2


def test_hooks_with_kwargs_and_prepend() -> None:
    """Hooks may ask for keyword arguments, and to be first."""
    m = Scaled()
    order: list[str] = []
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"times": 5.0}), with_kwargs=True)
    m.register_forward_hook(lambda module, args, kwargs, out: order.append(f"late {kwargs}"), with_kwargs=True)
    m.register_forward_hook(lambda module, args, out: order.append("early"), prepend=True)
    assert m(cd.ones(1)).item() == 5
    assert order == ["early", "late {'times': 5.0}"]


def test_a_pre_hook_with_kwargs_returns_both_or_none() -> None:
    """Another result is an error that shows it."""
    m = Scaled()
    m.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    text = "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        m(cd.ones(1))


def test_always_call_hooks_run_after_failures() -> None:
    """always_call=True runs the hook if forward raises, and the error is propagated."""
    m = Scaled()
    seen: list[Any] = []
    m.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        m(cd.ones(1), wrong=1)
    assert seen == [None]


def test_full_backward_hooks_get_gradients_of_outputs_and_inputs() -> None:
    """grad_output is the gradient of outputs, grad_input of inputs; tensors without gradients are None."""
    m = Both()
    seen: list[Any] = []

    def watch(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        assert module is m
        seen.append(([g if g is None else g.tolist() for g in grad_input], [g.tolist() for g in grad_output]))

    m.register_full_backward_hook(watch)
    x, y = cd.ones(1).requires_grad_(), cd.full((1,), 3.0)
    a, b = m(x, y)
    (a * 10 + b).sum().backward()
    assert seen == [([[23.0], None], [[10.0], [1.0]])]
    assert x.grad.tolist() == [23.0]


def test_full_backward_hooks_replace_gradients() -> None:
    """A pre-hook replaces the gradients of outputs, a hook those of inputs."""
    m = Scaled()
    before = m.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 3,))
    x = cd.ones(1).requires_grad_()
    m(x).sum().backward()
    assert x.grad.tolist() == [6]
    before.remove()
    m.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 100,))
    x.grad = None
    m(x).sum().backward()
    assert x.grad.tolist() == [200]


def test_backward_hooks_run_when_no_input_requires_grad() -> None:
    """The hook of a first layer gets the gradient of its output; replacing the missing gradient is an error."""
    m = nn.Linear(1, 1)
    seen: list[Any] = []
    handle = m.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        m(cd.ones(1, 1)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    handle.remove()
    m.register_full_backward_hook(lambda module, gi, go: (cd.ones(1, 1),))
    with (
        pytest.warns(UserWarning, match="since no inputs require gradients"),
        pytest.raises(RuntimeError, match="Backward hook for Modules where no input requires gradient should always"),
    ):
        m(cd.ones(1, 1)).sum().backward()


def test_backward_hooks_return_the_number_of_gradients() -> None:
    """Another number is an error that states both."""
    m = Scaled()
    m.register_full_backward_hook(lambda module, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad, got 2, but expected 1"):
        m(cd.ones(1).requires_grad_()).sum().backward()


def test_state_dict_hooks_run_around_saving_and_loading() -> None:
    """Hooks may add to a state, rename keys before loading, and ignore missing keys."""
    m = nn.Linear(1, 1, bias=False)
    calls: list[str] = []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: calls.append(f"pre {prefix!r}"))
    m.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update(note=1))
    state = m.state_dict()
    assert state["note"] == 1
    assert calls == ["pre ''"]

    other = nn.Linear(1, 1)

    def drop(module: nn.Module, state_dict: dict[str, Any], *_: Any) -> None:
        state_dict.pop("note")

    other.register_load_state_dict_pre_hook(drop)
    other.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    assert other.load_state_dict(state).missing_keys == []
    assert other.weight.tolist() == m.weight.tolist()
    other.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="are not expected to return new values"):
        other.load_state_dict(state)

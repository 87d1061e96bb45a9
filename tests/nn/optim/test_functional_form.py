"""Optimizers as functions of lists of tensors."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import candelabra as cd
import pytest

NAMES = ["adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd"]
OPTIONS: dict[str, dict[str, Any]] = {
    "adam": {"amsgrad": True, "weight_decay": 0.1}, "adamw": {"amsgrad": True}, "nadam": {"weight_decay": 0.1},
    "rmsprop": {"centered": True, "momentum": 0.9}, "sgd": {"momentum": 0.9, "nesterov": True},
}  # fmt: skip
LISTS = {  # the parameters after the gradients, with the keys of the state
    "adadelta": "square_avg acc_delta step", "adagrad": "sum step", "adam": "exp_avg exp_avg_sq max_exp_avg_sq step",
    "adamax": "exp_avg exp_inf step", "adamw": "exp_avg exp_avg_sq max_exp_avg_sq step", "asgd": "ax mu eta step",
    "nadam": "exp_avg exp_avg_sq mu_product step", "radam": "exp_avg exp_avg_sq step",
    "rmsprop": "square_avg grad_avg momentum_buffer step", "rprop": "prev step_size step", "sgd": "momentum_buffer",
}  # fmt: skip


def required(function: Any, group: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword-only options of a function, from a group of the class."""
    pairs = {
        "beta1": ("betas", 0), "beta2": ("betas", 1), "etaminus": ("etas", 0), "etaplus": ("etas", 1),
        "step_size_min": ("step_sizes", 0), "step_size_max": ("step_sizes", 1),
    }  # fmt: skip
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY or (name in group and name in ("maximize", "foreach")):
            option, index = pairs.get(name, (name, None))
            found[name] = group[option] if index is None else group[option][index]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_that_of_the_class(name: str, rng: Any) -> None:
    """From the state after one step of the class, the function's step gives the parameters and state of the second."""
    cls = next(c for n, c in vars(cd.optim).items() if n.lower() == name and inspect.isclass(c))
    function = getattr(import_module(f"candelabra.optim.{name}"), name)
    start = [rng.normal(size=s) for s in ((3,), (2, 2))]
    params = [cd.tensor(v, requires_grad=True) for v in start]
    optimizer = cls(params, lr=0.1, **OPTIONS.get(name, {}))
    gradients = [[cd.tensor(rng.normal(size=v.shape)) for v in start] for _ in range(2)]
    for p, g in zip(params, gradients[0], strict=True):
        p.grad = g
    optimizer.step()
    own = [p.detach().clone() for p in params]
    keys = LISTS[name].split()
    states = [[optimizer.state[p][key].clone() for p in params] for key in keys]
    assert function(own, gradients[1], *states, **required(function, optimizer.param_groups[0])) is None
    for p, g in zip(params, gradients[1], strict=True):
        p.grad = g
    optimizer.step()
    for p, q in zip(params, own, strict=True):
        assert cd.equal(p, q)
        assert q.grad is None
    for key, tensors in zip(keys, states, strict=True):
        for p, kept in zip(params, tensors, strict=True):
            assert cd.equal(optimizer.state[p][key], kept), key


def test_a_missing_buffer_is_put_into_the_list() -> None:
    """SGD's first step makes the buffers."""
    from candelabra.optim.sgd import sgd

    x, buffers = cd.ones(2), [None]
    options = {"weight_decay": 0, "lr": 0.5, "dampening": 0.5, "nesterov": False, "maximize": False}
    sgd([x], [cd.tensor([1.0, 2.0])], buffers, momentum=0.9, **options)
    assert x.tolist() == [0.5, 0.0]
    assert buffers[0].tolist() == [1, 2]  # type: ignore[attr-defined]
    sgd([x], [cd.tensor([1.0, 2.0])], [], momentum=0, **options)
    assert x.tolist() == [0.0, -1.0]


def test_signatures_are_pytorchs() -> None:
    """Lists, flags with defaults, and options by keyword."""
    from candelabra.optim.sgd import sgd

    assert str(inspect.signature(sgd)) == (
        "(params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None, "
        "found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov, maximize)"
    )
    with pytest.raises(TypeError, match="missing a required"):
        sgd([], [], [])


def test_lists_of_different_lengths_are_refused() -> None:
    """The error names the list."""
    from candelabra.optim.rprop import rprop

    with pytest.raises(ValueError, match=r"rprop\(\): 1 parameters, but 2 tensors of 'prev'"):
        rprop(
            [cd.ones(1)], [cd.ones(1)], [cd.ones(1)] * 2, [cd.ones(1)], [cd.ones(())],
            step_size_min=0, step_size_max=1, etaminus=0.5, etaplus=1.2,
        )  # fmt: skip

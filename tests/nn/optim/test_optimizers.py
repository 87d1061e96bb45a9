"""Every optimizer, compared with figures of PyTorch, and what all of them have in common."""

from __future__ import annotations

import copy
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim

from tests.nn.optim.figures import PARAMETERS
from tests.nn.optim.problem import final_values, problem

ALL = sorted({name for name, *_ in PARAMETERS})
RECORDED = ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
"""Those with the option ``differentiable``."""


@pytest.mark.parametrize(("name", "options", "is_complex", "expected"), PARAMETERS)
def test_twenty_steps_are_those_of_pytorch(
    name: str, options: dict[str, Any], is_complex: bool, expected: list[float]
) -> None:
    """Parameters are as PyTorch's: in float64 to 1e-9, and to bfloat16's accuracy for Muon, which computes in it."""
    found = final_values(name, options, is_complex)
    tolerance = 1e-2 if name == "Muon" else 1e-9
    assert [found[i] for i in (0, -3, -1)] == [pytest.approx(value, abs=tolerance) for value in expected]


@pytest.mark.parametrize("name", ALL)
def test_a_step_lowers_the_loss(name: str) -> None:
    """Ten steps lower the loss, and the state has the parameter's dtype and shape."""
    parameters, closure = problem(name)
    optimizer = getattr(optim, name)(parameters)
    first = closure().item()
    for _ in range(10):
        optimizer.step(closure)
    assert closure().item() < first


@pytest.mark.parametrize("name", ALL)
def test_a_state_goes_on_in_another_optimizer(name: str) -> None:
    """After its state is loaded into a new optimizer, the next steps are the same bits, also with a deep copy."""
    parameters, closure = problem(name)
    optimizer = getattr(optim, name)(parameters)
    for _ in range(3):
        optimizer.step(closure)
    others, other_closure = problem(name)
    with cd.no_grad():
        for p, q in zip(parameters, others):
            q.copy_(p)
    other = getattr(optim, name)(others)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for _ in range(2):
        optimizer.step(closure)
        other.step(other_closure)
    assert [p.tolist() for p in others] == [p.tolist() for p in parameters]
    copied = copy.deepcopy(optimizer)
    assert [group["lr"] for group in copied.param_groups] == [group["lr"] for group in optimizer.param_groups]
    assert copied.param_groups[0]["params"][0] is not parameters[0]
    assert len(copied.state) == len(optimizer.state)
    assert all(any(key is p for p in copied.param_groups[0]["params"]) for key in copied.state)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("SGD", []),
        ("Adam", ["step", "exp_avg", "exp_avg_sq"]),
        ("AdamW", ["step", "exp_avg", "exp_avg_sq"]),
        ("Adamax", ["step", "exp_avg", "exp_inf"]),
        ("NAdam", ["step", "mu_product", "exp_avg", "exp_avg_sq"]),
        ("RAdam", ["step", "exp_avg", "exp_avg_sq"]),
        ("RMSprop", ["step", "square_avg"]),
        ("Adagrad", ["step", "sum"]),
        ("Adadelta", ["step", "square_avg", "acc_delta"]),
        ("Rprop", ["step", "prev", "step_size"]),
        ("ASGD", ["step", "eta", "mu", "ax"]),
        ("Adafactor", ["step", "row_var", "col_var"]),
        ("Muon", ["momentum_buffer"]),
    ],
)
def test_states_have_pytorchs_keys(name: str, keys: list[str]) -> None:
    """The state of a parameter has PyTorch's keys, and "step" is a float32 tensor without dims."""
    parameters, closure = problem(name)
    optimizer = getattr(optim, name)(parameters)
    for _ in range(2):
        optimizer.step(closure)
    state = optimizer.state_dict()["state"].get(0, {})
    assert list(state) == keys
    if "step" in keys:
        assert (state["step"].item(), state["step"].shape, state["step"].dtype) == (2.0, (), cd.float32)


def test_options_in_a_state_have_pytorchs_keys() -> None:
    """A group lists the options in PyTorch's order, those without effect here included."""
    state = optim.Adam([cd.ones(1)]).state_dict()
    assert state["param_groups"] == [
        {
            "lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False, "maximize": False,
            "foreach": None, "capturable": False, "differentiable": False, "fused": None,
            "decoupled_weight_decay": False, "params": [0],
        }
    ]  # fmt: skip
    assert list(state["param_groups"][0])[-2:] == ["decoupled_weight_decay", "params"]


def test_a_state_of_pytorch_loads() -> None:
    """A state as PyTorch 2.13 writes it, with "step" a tensor, a number or missing options, is taken over."""
    p = nn.Parameter(cd.ones(2, dtype=cd.float64))
    optimizer = optim.Adam([p])
    averages = {"exp_avg": cd.tensor([0.1, 0.2]), "exp_avg_sq": cd.tensor([0.01, 0.04])}
    group = {"lr": 0.5, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False, "params": [0]}
    results = []
    for step in (cd.tensor(4.0), 4):
        optimizer.load_state_dict({"state": {0: {"step": step, **averages}}, "param_groups": [group]})
        assert optimizer.param_groups[0]["maximize"] is False
        assert optimizer.state[p]["exp_avg"].dtype is cd.float64
        with cd.no_grad():
            p.fill_(1.0)
        p.grad = cd.ones(2, dtype=cd.float64)
        optimizer.step()
        results.append(p.tolist())
    # PyTorch 2.13 gives these numbers.
    assert results[0] == [pytest.approx(0.8436812908971172, abs=1e-12), pytest.approx(0.8806742245412642, abs=1e-12)]
    assert results[0] == results[1]
    assert optimizer.state[p]["step"].item() == 5


def test_a_step_that_a_program_writes_counts() -> None:
    """The next step goes on from a count that the program writes in place, or replaces by a number."""
    p = nn.Parameter(cd.ones(1))
    p.grad = cd.ones(1)
    optimizer = optim.Adam([p])
    optimizer.step()
    optimizer.state[p]["step"].add_(5)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 7
    optimizer.state[p]["step"] = 10
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 11


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_steps_have_a_derivative(name: str, rng: Any) -> None:
    """With differentiable=True, the derivative of two steps with respect to the parameter is the finite difference."""
    gradients = [cd.from_numpy(rng.uniform(0.5, 2.0, 3)) for _ in range(2)]

    def loss(start: Any) -> Any:
        p = start.clone()
        optimizer = getattr(optim, name)(
            [p], lr=0.1, differentiable=True, **({"momentum": 0.5} if name == "SGD" else {})
        )
        for g in gradients:
            q = p.clone()  # the step writes p
            p.grad = g * q * q
            optimizer.step()
        return (p * cd.tensor([1.0, 2.0, 3.0], dtype=cd.float64)).sum()

    start = cd.from_numpy(rng.uniform(1.0, 2.0, 3)).requires_grad_()
    loss(start).backward()
    step = 1e-6
    for i in range(3):
        nudge = cd.zeros(3, dtype=cd.float64)
        nudge[i] = step
        with cd.no_grad():
            ahead, behind = start + nudge, start - nudge
        expected = (loss(ahead) - loss(behind)).item() / (2 * step)
        assert start.grad[i].item() == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_the_rate_has_a_derivative_in_a_recorded_step(amsgrad: bool) -> None:
    """A rate that is a tensor with a gradient gets that of the loss after the step."""
    for make, slope in (
        (lambda ps, lr: optim.SGD(ps, lr, differentiable=True), 2.0),
        (lambda ps, lr: optim.SGD(ps, lr, 0.9, differentiable=True), 2.0),
        (lambda ps, lr: optim.Adam(ps, lr, eps=0.0, amsgrad=amsgrad, differentiable=True), 1.0),
    ):
        lr = cd.tensor(0.5, dtype=cd.float64, requires_grad=True)
        p = cd.ones(1, dtype=cd.float64)
        p.grad = cd.full((1,), 2.0, dtype=cd.float64)
        make([p], lr).step()  # type: ignore[no-untyped-call]
        p.sum().backward()
        assert lr.grad.item() == pytest.approx(-slope)


def test_rates_and_betas_may_be_tensors() -> None:
    """A tensor is read in each step, so the program may fill it."""
    p, q = nn.Parameter(cd.ones(2)), nn.Parameter(cd.ones(2))
    lr = cd.tensor(0.5)
    a = optim.Adam([p], lr, betas=(cd.tensor(0.5), cd.tensor(0.25)))
    b = optim.Adam([q], 0.5, betas=(0.5, 0.25))
    for rate in (0.5, 0.125):
        lr.fill_(rate)
        b.param_groups[0]["lr"] = rate
        p.grad = q.grad = cd.tensor([1.0, -2.0])
        a.step()
        b.step()
    assert p.tolist() == q.tolist()


def test_muon_scales_the_rate_by_the_shape() -> None:
    """The rate grows with the root of rows over columns, or with the root of the larger one."""
    g = cd.eye(4, 2)
    moved = []
    for adjust in (None, "original", "match_rms_adamw"):
        p = nn.Parameter(cd.zeros(4, 2))
        p.grad = g.clone()
        optim.Muon([p], lr=1.0, weight_decay=0.0, adjust_lr_fn=adjust).step()
        moved.append(-p[0, 0].item())
    assert moved[0] == moved[1]
    assert moved[2] / moved[0] == pytest.approx(0.2 * 2 / 2**0.5, rel=1e-2)


def test_lbfgs_finds_the_minimum_of_rosenbrocks_function() -> None:
    """With its line search, it finds the minimum (1, 1) in ten calls of twenty iterations."""
    p = nn.Parameter(cd.tensor([-1.5, 2.0], dtype=cd.float64))
    optimizer = optim.LBFGS([p], line_search_fn="strong_wolfe", history_size=10, tolerance_change=1e-16)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)
    assert p.tolist() == [pytest.approx(1.0, abs=1e-6)] * 2
    assert optimizer.state[p]["func_evals"] >= optimizer.state[p]["n_iter"]
    before = optimizer.state[p]["n_iter"]
    optimizer.step(closure)
    assert optimizer.state[p]["n_iter"] <= before + 1  # the gradient is below the tolerance


def test_lbfgs_counts_parameters_without_a_gradient_as_constant() -> None:
    """They do not move, and the history stays within its size."""
    p, q = nn.Parameter(cd.full((2,), 3.0)), nn.Parameter(cd.ones(2))
    optimizer = optim.LBFGS([p, q], history_size=2, lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p**4).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert q.tolist() == [1.0, 1.0]
    assert len(optimizer.state[p]["ro"]) == 2


def one(*shape: int) -> list[Any]:
    """Return a parameter in a list."""
    return [nn.Parameter(cd.ones(shape or (2, 2)))]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: optim.Adadelta(one(), rho=1.1), ValueError, "Invalid rho value: 1.1"),
        (lambda: optim.Adadelta(one(), eps=-2), ValueError, "Invalid epsilon value: -2"),
        (lambda: optim.Adagrad(one(), lr_decay=-0.5), ValueError, "Invalid lr_decay value: -0.5"),
        (
            lambda: optim.Adagrad(one(), initial_accumulator_value=-1),
            ValueError,
            "Invalid initial_accumulator_value value: -1",
        ),
        (lambda: optim.Adamax(one(), betas=(0.0, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: optim.NAdam(one(), momentum_decay=-0.2), ValueError, "Invalid momentum_decay value: -0.2"),
        (lambda: optim.RAdam(one(), weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.RMSprop(one(), momentum=-1.0), ValueError, "Invalid momentum value: -1.0"),
        (lambda: optim.RMSprop(one(), alpha=-1.0), ValueError, "Invalid alpha value: -1.0"),
        (lambda: optim.ASGD(one(), weight_decay=-0.5), ValueError, "Invalid weight_decay value: -0.5"),
        (lambda: optim.Rprop(one(), etas=(1.0, 0.5)), ValueError, "Invalid eta values: 1.0, 0.5"),
        (
            lambda: optim.LBFGS([{"params": one()}, {"params": one()}]),
            ValueError,
            "LBFGS doesn't support per-parameter",
        ),
        (
            lambda: optim.LBFGS(p := one(), line_search_fn="x").step(lambda: _squares(p)),
            RuntimeError,
            "only 'strong_wolfe' is supported",
        ),
        (lambda: optim.Adafactor(one(), lr=-1), ValueError, "Learning rate should be >= 0 but is: -1"),
        (lambda: optim.Adafactor(one(), lr=cd.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.Adafactor(one(), eps=(-1e-30, 0.001)), ValueError, "epsilon1 should be >= 0 but is: -1e-30"),
        (lambda: optim.Adafactor(one(), d=0.0), ValueError, "Clipping threshold d should be >= 1 but is: 0.0"),
        (lambda: optim.Adafactor(one(), beta2_decay=0.8), ValueError, "beta2_decay should be <= 0 but is: 0.8"),
        (lambda: optim.Muon(one(2)), ValueError, "Muon only supports 2D parameters whereas we found a parameter with"),
        (lambda: optim.Muon(one(), weight_decay=-1), ValueError, "weight decay should be >= 0 but is: -1"),
        (
            lambda: optim.Muon(one(), adjust_lr_fn="arbitrary"),
            ValueError,
            "Adjust learning rate function arbitrary is not supported",
        ),
        (lambda: optim.SparseAdam(one(), betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.SparseAdam(one(), lr=0), ValueError, "Invalid learning rate: 0"),
        (
            lambda: optim.SparseAdam([cd.ones(2).to_sparse()]),
            ValueError,
            "Sparse params at indices [(0, 0)]: SparseAdam requires dense parameter tensors",
        ),
        (
            lambda: with_gradient(optim.SparseAdam(one())).step(),
            RuntimeError,
            "SparseAdam does not support dense gradients, please consider Adam instead",
        ),
        (
            lambda: _Started(one()).step(),
            NotImplementedError,
            "_Started must define start()",
        ),
        (lambda: _Numbered(one()).step(), NotImplementedError, "_Numbered must define numbers()"),
        (lambda: _Moved(one()).step(), NotImplementedError, "_Moved must define move()"),
        (lambda: _Batched(one()).step(), NotImplementedError, "_Batched must define batches()"),
        (lambda: _Argued(one()).step(), NotImplementedError, "_Argued must define arguments()"),
        (lambda: _Applied(one()).step(), NotImplementedError, "_Applied must define apply()"),
    ],
)
def test_options_out_of_range_raise_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each has PyTorch's class of error, with the option and its value."""
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "Adafactor", "SGD"])
def test_parameters_share_no_tensor_of_a_state_dict(name: str) -> None:
    """PyTorch's optimizers count the steps of each parameter in place, in the tensors of the file that they loaded."""
    parameters = [nn.Parameter(cd.ones(2, 2)) for _ in range(3)]
    optimizer = getattr(optim, name)(parameters, lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))
    for p in parameters:
        p.grad = cd.ones(2, 2)
    optimizer.step()
    state = optimizer.state_dict()["state"]
    tensors = [value for kept in state.values() for value in kept.values() if isinstance(value, cd.Tensor)]
    assert len({value.data_ptr() for value in tensors}) == len(tensors) >= 3
    for kept in state.values():
        if "step" in kept:
            kept["step"] += 1
    assert {float(kept["step"]) for kept in state.values() if "step" in kept} <= {2.0}


def _squares(parameters: list[Any]) -> Any:
    loss = (parameters[0] ** 2).sum()
    loss.backward()
    return loss


def with_gradient(optimizer: Any) -> Any:
    """Return the optimizer, whose first parameter has a dense gradient now."""
    p = optimizer.param_groups[0]["params"][0]
    p.grad = cd.ones_like(p)
    return optimizer


class _Started(optim.per_parameter.PerParameter):
    def __init__(self, params: Any) -> None:
        super().__init__(params, {})
        params[0].grad = cd.ones_like(params[0])


class _Numbered(_Started):
    def start(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {}


class _Moved(_Numbered):
    def numbers(self, known: Any, group: dict[str, Any]) -> tuple[Any, ...]:
        return ()


class _Batched(optim.batches.BatchOptimizer):
    def __init__(self, params: Any) -> None:
        super().__init__(params, {})
        params[0].grad = cd.ones_like(params[0])


class _Argued(_Batched):
    def batches(self, group: dict[str, Any], parameters: list[Any]) -> list[Any]:
        return [optim.batches.StepBatch([], [])]


class _Applied(_Argued):
    def arguments(self, group: dict[str, Any], batch: Any) -> tuple[Any, ...]:
        return ()


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_complex_parameters_are_refused_by_two(name: str) -> None:
    """Their steps have no meaning for complex numbers, and nothing changes before the error."""
    p = nn.Parameter(cd.ones(2, 2, dtype=cd.complex64))
    p.grad = cd.ones(2, 2, dtype=cd.complex64)
    optimizer = getattr(optim, name)([p])
    with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
        optimizer.step()
    assert not optimizer.state

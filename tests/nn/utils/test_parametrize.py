"""Parametrizations: registration, assignment, removal, transfer, and the checks of results and inverses."""

from __future__ import annotations

import copy
import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn.utils import parametrize


class Symmetric(nn.Module):
    """The symmetric matrix of an upper triangle."""

    def forward(self, x: Any) -> Any:
        return x.triu() + x.triu(1).T

    def right_inverse(self, x: Any) -> Any:
        return x.triu()


class RankOne(nn.Module):
    """A matrix from two vectors."""

    def forward(self, x: Any, y: Any) -> Any:
        return x.unsqueeze(-1) @ y.unsqueeze(-2)

    def right_inverse(self, z: Any) -> Any:
        return z[0].clone(), z[1].clone()


class Scaled(nn.Module):
    """Twice the original, without an inverse."""

    def forward(self, x: Any) -> Any:
        return x * 2


class Computed(nn.Module):
    """A parametrization by two functions."""

    def __init__(self, forward: Any, inverse: Any = None) -> None:
        super().__init__()
        self.function = forward
        if inverse is not None:
            self.right_inverse = inverse

    def forward(self, *x: Any) -> Any:
        return self.function(*x)


def linear(*parametrizations: nn.Module) -> Any:
    """Return a layer of size 2 by 2 with these parametrizations of its weight."""
    m = nn.Linear(2, 2)
    with cd.no_grad():
        m.weight.copy_(cd.tensor([[1.0, 2.0], [3.0, 4.0]]))
    for p in parametrizations:
        parametrize.register_parametrization(m, "weight", p)
    return m


def test_the_tensor_is_computed_from_the_original() -> None:
    """The original is the former parameter, which gets the gradient; the attribute is the result."""
    m = linear()
    weight = m.weight
    assert parametrize.register_parametrization(m, "weight", Symmetric()) is m
    assert m.weight.tolist() == [[1, 2], [2, 4]]
    assert m.parametrizations.weight.original is weight
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    m(cd.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1, 2], [0, 1]]
    assert parametrize.is_parametrized(m)
    assert parametrize.is_parametrized(m, "weight")
    assert not parametrize.is_parametrized(m, "bias")
    assert parametrize.type_before_parametrizations(m) is nn.Linear
    assert parametrize.type_before_parametrizations(nn.ReLU()) is nn.ReLU
    assert type(m).__name__ == "ParametrizedLinear"


def test_assignment_goes_through_the_inverse() -> None:
    """A value that is assigned is stored in the original, which keeps its identity."""
    m = linear(Symmetric())
    original = m.parametrizations.weight.original
    m.weight = cd.ones(2, 2)
    assert original.tolist() == [[1, 1], [0, 1]]
    assert m.weight.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(RuntimeError, match="parametrization Scaled does not implement right_inverse"):
        linear(Scaled()).weight = cd.ones(2, 2)


def test_several_parametrizations_are_applied_in_order() -> None:
    """The second one gets the result of the first; the list contains both."""
    m = linear(Symmetric(), Scaled())
    assert m.weight.tolist() == [[2, 4], [4, 8]]
    assert [type(p) for p in m.parametrizations.weight] == [Symmetric, Scaled]


def test_a_tensor_may_depend_on_several_originals() -> None:
    """They are named original0, original1, …, and are parameters."""
    m = linear(RankOne())
    assert m.weight.tolist() == [[3, 4], [6, 8]]
    assert [n for n, _ in m.named_parameters()] == [
        "bias", "parametrizations.weight.original0", "parametrizations.weight.original1",
    ]  # fmt: skip
    m.weight = cd.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert m.weight.tolist() == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match=re.escape("Cannot leave unparametrized (`leave_parametrized=False`)")):
        parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(m, "weight")
    assert isinstance(m.weight, nn.Parameter)


def test_removal_restores_the_class_and_the_parameter() -> None:
    """The tensor keeps its present value, or gets that of the original."""
    m = linear()
    weight = m.weight
    parametrize.register_parametrization(m, "weight", Scaled())
    parametrize.register_parametrization(m, "bias", Scaled())
    parametrize.remove_parametrizations(m, "bias", leave_parametrized=False)
    assert type(m).__name__ == "ParametrizedLinear"
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear
    assert m.weight is weight
    assert weight.tolist() == [[2, 4], [6, 8]]
    assert not hasattr(m, "parametrizations")
    with pytest.raises(ValueError, match=r"does not have a parametrization on weight"):
        parametrize.remove_parametrizations(m, "weight")


def test_buffers_can_be_parametrized() -> None:
    """The original of a buffer is a buffer."""
    m = nn.BatchNorm1d(2)
    parametrize.register_parametrization(m, "running_mean", Scaled())
    assert "parametrizations.running_mean.original" in dict(m.named_buffers())


def test_values_are_cached_inside_the_block_only() -> None:
    """Inside cached(), also nested, a tensor is computed once."""
    m = linear(Scaled())
    with parametrize.cached():
        first = m.weight
        with parametrize.cached():
            assert m.weight is first
        assert m.weight is first
    assert m.weight is not first


def test_copies_have_originals_of_their_own_and_pickles_are_refused() -> None:
    """deepcopy works; a pickle would name a class that no module contains."""
    m = linear(Scaled())
    other = copy.deepcopy(m)
    assert other.weight.tolist() == m.weight.tolist()
    assert other.parametrizations.weight.original is not m.parametrizations.weight.original
    twice = copy.deepcopy([m, m])
    assert twice[0] is twice[1]
    with pytest.raises(RuntimeError, match=r"Serialization of parametrized modules is only supported through state_di"):
        m.__reduce_ex__(2)


def test_the_mode_of_a_parametrization_is_that_of_the_module() -> None:
    """A parametrization of a module in evaluation mode is in evaluation mode."""
    m = nn.Linear(2, 2).eval()
    parametrize.register_parametrization(m, "weight", Scaled())
    assert not m.parametrizations.weight[0].training


def test_parametrizations_are_transferred_with_their_originals() -> None:
    """The other module shares the originals, and gets tensors that it lacks."""
    m, other = linear(Symmetric()), nn.Linear(2, 2)
    assert parametrize.transfer_parametrizations_and_params(m, other) is other
    assert other.parametrizations.weight.original is m.parametrizations.weight.original
    empty = parametrize.transfer_parametrizations_and_params(m, nn.Module(), "weight")
    assert empty.weight.tolist() == m.weight.tolist()
    several = parametrize.transfer_parametrizations_and_params(linear(RankOne()), nn.Linear(2, 2))
    assert "parametrizations.weight.original1" in several.state_dict()
    assert type(parametrize.transfer_parametrizations_and_params(nn.ReLU(), nn.Tanh())) is nn.Tanh


def test_unsafe_parametrizations_may_change_the_shape() -> None:
    """With unsafe=True the result is not checked."""
    m = parametrize.register_parametrization(linear(), "weight", Computed(lambda x: x[0]), unsafe=True)
    assert m.weight.shape == (2,)
    assert m.parametrizations.weight.unsafe


def test_an_inverse_that_is_not_implemented_counts_as_the_identity() -> None:
    """A right_inverse that raises NotImplementedError is skipped at registration."""

    def missing(x: Any) -> Any:
        raise NotImplementedError

    m = linear(Computed(lambda x: x, missing), Computed(lambda x: x, missing))
    assert m.weight.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("parametrization", "text"),
    [
        (Computed(lambda x: x[0]), "Registering a parametrization may not change the shape of the tensor, unless"),
        (
            Computed(lambda x: x.double()),
            "Registering a parametrization may not change the dtype of the tensor, unless",
        ),
        (Computed(lambda x: 3), "A parametrization must return a tensor. Got int."),
        (Computed(lambda x: x, lambda x: 3), "right_inverse"),
        (Computed(lambda x: x, lambda x: x.double()), "dtype"),
        (Computed(lambda x: x, lambda x: x[0]), "shape"),
    ],
)
@pytest.mark.parametrize("before", [(), (Scaled(),)], ids=["first", "second"])
def test_results_and_inverses_that_do_not_fit_are_refused(parametrization: Any, text: str, before: Any) -> None:
    """The error says whether the result or the inverse is wrong, and what it is."""
    m = linear(*before)
    with pytest.raises(ValueError, match=re.escape(text)):
        parametrize.register_parametrization(m, "weight", parametrization)
    assert parametrize.is_parametrized(m) == bool(before)


def test_wrong_names_and_sequences_are_refused() -> None:
    """An unknown name, an empty list, and a sequence with another object than a tensor are errors."""
    with pytest.raises(
        ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'q'"
    ):
        parametrize.register_parametrization(nn.ReLU(), "q", Scaled())
    with pytest.raises(ValueError, match="ParametrizationList requires one or more modules"):
        parametrize.ParametrizationList([], cd.ones(1))
    with pytest.raises(ValueError, match="Got element 1 of the sequence with type int"):
        linear(Computed(lambda x, y: x, lambda x: (x, 3)))


@pytest.mark.usefixtures("lantern")
def test_an_inverse_may_not_change_the_device() -> None:
    """The original stays on its device."""
    with pytest.raises(ValueError, match="it may not change the device"):
        linear(Computed(lambda x: x, lambda x: x.to("lantern:0")))


@pytest.mark.parametrize(
    ("first", "later", "text"),
    [
        (lambda x: x, lambda x: 3, "`right_inverse` should return a tensor. Got int"),
        (lambda x: x, lambda x: x.double(), "has dtype candelabra.float64 while `original` has dtype"),
        (lambda x: (x, x), lambda x: 3, "'right_inverse' must return a sequence of tensors. Got int."),
        (lambda x: (x, x), lambda x: (x,), "a sequence of tensors of length 2. Got a sequence of length 1."),
        (lambda x: (x, x), lambda x: (x, 3), "Got element 1 of type int"),
        (lambda x: (x, x), lambda x: (x.double(), x), "Tensor 0 returned by `right_inverse` has dtype"),
    ],
)
def test_inverses_that_change_their_result_later_are_refused(first: Any, later: Any, text: str) -> None:
    """An assignment checks what the inverse returns this time."""
    inverses = [first, later]
    parametrization = Computed(lambda x, *y: x, lambda x: inverses.pop(0)(x))
    m = parametrize.register_parametrization(linear(), "weight", parametrization, unsafe=True)
    with pytest.raises(ValueError, match=re.escape(text)):
        m.weight = cd.ones(2, 2)

"""Pruning: each method, several after one another, over several parameters, and removal."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn.utils import prune


def layer() -> Any:
    """Return a Linear with known weights."""
    m = nn.Linear(4, 3)
    with cd.no_grad():
        m.weight.copy_(cd.tensor([[1.0, -5.0, 2.0, 0.1], [3.0, 0.2, -0.3, 4.0], [6.0, -7.0, 0.4, 8.0]]))
        m.bias.copy_(cd.tensor([1.0, 2.0, 3.0]))
    return m


def rounded(x: Any) -> Any:
    """Return the elements with one digit, and -0 as 0."""
    return [[round(v, 1) + 0.0 for v in row] for row in x.tolist()]


def test_the_smallest_elements_become_zero() -> None:
    """The parameter is weight_orig, the mask a buffer, and the gradient of pruned elements is zero."""
    m = layer()
    assert prune.l1_unstructured(m, "weight", 0.25) is m
    assert rounded(m.weight) == [[1, -5, 2, 0], [3, 0, 0, 4], [6, -7, 0.4, 8]]
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_orig"]
    assert [n for n, _ in m.named_buffers()] == ["weight_mask"]
    m(cd.ones(1, 4)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[1, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]]
    assert prune.is_pruned(nn.Sequential(m))
    assert not prune.is_pruned(layer())


def test_a_second_method_prunes_what_is_left() -> None:
    """The methods of one parameter are combined in a container; removal leaves a parameter with zeros."""
    m = layer()
    original = m.weight
    prune.l1_unstructured(m, "weight", 3)
    prune.l1_unstructured(m, "weight", 1)
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    assert rounded(m.weight) == [[1, -5, 2, 0], [0, 0, 0, 0], [6, -7, 0, 8]]
    (container,) = m._forward_pre_hooks.values()
    assert [type(method) for method in container] == [prune.L1Unstructured, prune.L1Unstructured, prune.LnStructured]
    assert len(container) == 3
    assert type(container[2]) is prune.LnStructured
    prune.remove(m, "weight")
    assert m.weight is original
    assert rounded(m.weight) == [[1, -5, 2, 0], [0, 0, 0, 0], [6, -7, 0, 8]]
    assert list(m.state_dict()) == ["bias", "weight"]
    with pytest.raises(
        ValueError, match=r"Parameter 'weight' of module Linear\(.*\) has to be pruned before pruning can"
    ):
        prune.remove(m, "weight")


def test_structured_methods_prune_whole_indices() -> None:
    """The indices with the smallest norms, or importances, become zero; an amount of 0 changes nothing."""
    m = layer()
    prune.ln_structured(m, "weight", 0.5, n=2, dim=1)
    assert rounded(m.weight) == [[0, -5, 0, 0.1], [0, 0.2, 0, 4], [0, -7, 0, 8]]
    m = layer()
    prune.ln_structured(m, "weight", 1, n=1, dim=-1, importance_scores=cd.arange(12.0).view(3, 4))
    assert [row[0] for row in rounded(m.weight)] == [0, 0, 0]
    m = layer()
    prune.ln_structured(m, "weight", 0, n=2, dim=0)
    assert m.weight_mask.all()


def test_random_methods_prune_the_given_number() -> None:
    """The number of zeros is exact, for elements and for indices."""
    m = layer()
    prune.random_unstructured(m, "weight", 5)
    assert int(m.weight_mask.sum()) == 7
    m = layer()
    prune.random_structured(m, "weight", 2, dim=1)
    assert sorted(m.weight_mask.sum(0).tolist()) == [0, 0, 3, 3]
    prune.random_unstructured(m, "weight", 0.5)
    assert int(m.weight_mask.sum()) == 3


def test_masks_can_be_given() -> None:
    """identity adds a mask of ones, custom_from_mask multiplies by another."""
    m = layer()
    prune.identity(m, "bias")
    assert m.bias_mask.tolist() == [1, 1, 1]
    prune.custom_from_mask(m, "bias", cd.tensor([1, 0, 1]))
    assert m.bias.tolist() == [1, 0, 3]


def test_several_parameters_are_pruned_as_one() -> None:
    """The smallest elements of all together become zero; a second call prunes the rest."""
    m = layer()
    pairs = [(m, "weight"), (m, "bias")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=5)
    assert rounded(m.weight) == [[0, -5, 2, 0], [3, 0, 0, 4], [6, -7, 0, 8]]
    assert m.bias.tolist() == [1, 2, 3]
    prune.global_unstructured(pairs, prune.L1Unstructured, {(m, "bias"): cd.full((3,), 9.0)}, amount=1)
    assert rounded(m.weight)[0] == [0, -5, 0, 0]


def test_a_tensor_can_be_pruned_without_a_module() -> None:
    """prune() returns the tensor with zeros, by its values or by importances."""
    method = prune.L1Unstructured(2)
    t = cd.tensor([1.0, -0.5, 3.0, 0.2])
    assert method.prune(t).tolist() == [1, 0, 3, 0]
    assert method.prune(t, importance_scores=cd.tensor([0.0, 1.0, 2.0, 3.0]))[0] == 0


class EverySecond(prune.BasePruningMethod):
    """Prunes every second element."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def test_users_can_write_methods() -> None:
    """A subclass defines compute_mask; its second use sees the remaining elements."""
    m = layer()
    EverySecond.apply(m, "bias")
    assert m.bias.tolist() == [0, 2, 0]
    EverySecond.apply(m, "bias")
    assert m.bias.tolist() == [0, 0, 0]


def typed(kind: str) -> Any:
    """Return a method of another PRUNING_TYPE, for the second use."""
    made: Any = type("Typed", (EverySecond,), {"PRUNING_TYPE": kind})
    return made


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", "x"), TypeError, "Invalid type for amount: x. Must be int or"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "amount=-1 should either be a float in the"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount=1.5 should either be a float in the"),
        (
            lambda m: prune.l1_unstructured(m, "weight", 13),
            ValueError,
            "amount=13 should be smaller than the number of parameters to prune=12",
        ),
        (
            lambda m: prune.ln_structured(m, "bias", 1, 2, 0),
            ValueError,
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape",
        ),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "Invalid index 2 for tensor of size"),
        (
            lambda m: prune.l1_unstructured(m, "weight", 1, cd.ones(2)),
            AssertionError,
            "importance_scores should have the same shape as parameter weight of Linear(",
        ),
        (
            lambda m: prune.custom_from_mask(m, "bias", cd.ones(2)),
            AssertionError,
            "default_mask shape candelabra.Size([3]) must match self.mask shape candelabra.Size([2])",
        ),
        (
            lambda m: prune.global_unstructured(3, prune.L1Unstructured),
            TypeError,
            "global_unstructured(): parameters is not an Iterable",
        ),
        (
            lambda m: prune.global_unstructured([(m, "bias")], prune.L1Unstructured, 3, amount=1),
            TypeError,
            "global_unstructured(): importance_scores must be of type dict",
        ),
        (
            lambda m: prune.global_unstructured([(m, "bias")], prune.RandomStructured, amount=1),
            TypeError,
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method',
        ),
        (
            lambda m: prune.PruningContainer().add_pruning_method(3),
            TypeError,
            "<class 'int'> is not a BasePruningMethod subclass",
        ),
        (
            lambda m: prune.PruningContainer(EverySecond.apply(layer(), "bias"), EverySecond.apply(layer(), "weight")),
            ValueError,
            "Can only add pruning methods acting on the parameter named 'None' to PruningContainer",
        ),
        (
            lambda m: prune.L1Unstructured(1).prune(cd.ones(3), importance_scores=cd.ones(2)),
            AssertionError,
            "importance_scores should have the same shape as tensor t, got",
        ),
        (lambda m: prune.L1Unstructured(1).apply_mask(m), AssertionError, "has to be pruned"),
        (lambda m: prune.L1Unstructured(1).remove(m), AssertionError, "has to be pruned before pruning can be removed"),
        (
            lambda m: [prune._Unstructured.apply(m, "bias", amount=1)],
            NotImplementedError,
            "a subclass of _Unstructured must define _scores",
        ),
        (
            lambda m: [prune._Structured.apply(m, "weight", amount=1)],
            NotImplementedError,
            "a subclass of _Structured must define _kept",
        ),
    ],
)
def test_wrong_calls_are_errors_and_change_nothing(call: Any, error: type[Exception], text: str) -> None:
    """Each error has PyTorch's class and text, and the parameters remain."""
    m = layer()
    with pytest.raises(error, match=re.escape(text)):
        call(m)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    assert isinstance(m.weight, nn.Parameter)


@pytest.mark.parametrize(
    ("method", "error", "text"),
    [
        (typed("structured"), AttributeError, 'of PRUNING_TYPE "structured" need to have the attribute `dim` defined'),
        (typed("nothing"), ValueError, "Unrecognized PRUNING_TYPE nothing"),
        (
            type("Far", (typed("structured"),), {"dim": -3}),
            IndexError,
            "Index is out of bounds for tensor with dimensions 2",
        ),
    ],
)
def test_methods_of_users_are_checked_at_their_second_use(method: Any, error: type[Exception], text: str) -> None:
    """The type of a method decides what it sees of a pruned tensor."""
    m = layer()
    prune.identity(m, "weight")
    with pytest.raises(error, match=re.escape(text)):
        method.apply(m, "weight")


def test_two_hooks_of_one_parameter_are_refused() -> None:
    """Methods are combined in a container, so a second hook was added by hand."""
    m = layer()
    method = EverySecond.apply(m, "bias")
    m.register_forward_pre_hook(method)
    with pytest.raises(AssertionError, match="Avoid adding multiple pruning hooks to the same tensor bias of module"):
        EverySecond.apply(m, "bias")

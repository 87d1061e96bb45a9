"""``candelabra.func``: calls of modules with other tensors."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra.func import (
    debug_unwrap,
    functional_call,
    grad,
    jacrev,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vmap,
)


def test_a_module_is_called_with_other_tensors() -> None:
    """The tensors of one dictionary, or of several without a common name, replace the module's own; gradients flow."""
    module = cd.nn.Linear(2, 2)
    weight = cd.eye(2, requires_grad=True)
    bias = cd.tensor([1.0, -1.0])
    x = cd.tensor([[2.0, 3.0]])
    out = functional_call(module, {"weight": weight, "bias": bias}, (x,))
    assert out.tolist() == [[3, 2]]
    assert cd.equal(functional_call(module, ({"weight": weight}, {"bias": bias}), x), out)
    out.sum().backward()
    assert weight.grad.tolist() == [[2, 3], [2, 3]]
    assert module.weight.grad is None
    with pytest.raises(ValueError, match=r"\['bias'\] appeared in multiple dictionaries"):
        functional_call(module, ({"bias": bias}, {"bias": bias}), x)


def test_batch_norms_without_running_statistics() -> None:
    """They can run under vmap, where running statistics cannot be written."""
    net = cd.nn.Sequential(cd.nn.Conv2d(1, 2, 3), cd.nn.BatchNorm2d(2))
    x = cd.randn(3, 4, 1, 5, 5)
    with pytest.raises(RuntimeError, match="running"):
        vmap(net)(x)
    assert replace_all_batch_norm_modules_(net) is net
    assert [name for name, _ in net[1].named_buffers()] == []
    assert cd.allclose(vmap(net)(x)[1], net(x[1]), atol=1e-6)


def test_a_debugger_sees_the_tensors_of_transforms() -> None:
    """debug_unwrap returns the tensor of the device, or the one of the next level."""
    seen = []

    def f(x: cd.Tensor) -> cd.Tensor:
        seen.extend([debug_unwrap(x), debug_unwrap(debug_unwrap(x, recurse=False)), debug_unwrap(x, recurse=False)])
        return x.sum()

    x = cd.ones(2, 3, 4)
    vmap(vmap(f))(x)
    assert [tuple(t.shape) for t in seen] == [(2, 3, 4), (2, 3, 4), (3, 4)]
    assert debug_unwrap(x) is x


def test_missing_names_are_refused() -> None:
    """The error names the function and what to use instead."""
    assert "jvp" in dir(cd.func)
    with pytest.raises(NotImplementedError, match=r"func\.functionalize\(\): graphs keep in-place writes"):
        cd.func.functionalize(abs)
    with pytest.raises(AttributeError, match=r"module 'candelabra\.func' has no attribute 'nothing'"):
        _ = cd.func.nothing


# -- the examples of torch.func's tutorials ---------------------------------------------------------------------------
class Net(cd.nn.Module):
    """A small convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = cd.nn.Conv2d(1, 4, 3)
        self.fc = cd.nn.Linear(4 * 9, 3)

    def forward(self, x: cd.Tensor) -> cd.Tensor:
        x = cd.nn.functional.max_pool2d(self.conv(x).relu(), 2)
        return self.fc(x.flatten(1))


def test_the_neural_tangent_kernel() -> None:
    """The contraction of Jacobians of single examples is the product of the gradients of all pairs of examples."""
    net = Net().double()
    params = {name: p.detach() for name, p in net.named_parameters()}
    x1, x2 = cd.randn(3, 1, 8, 8, dtype=cd.float64), cd.randn(2, 1, 8, 8, dtype=cd.float64)

    def single(params: dict[str, cd.Tensor], x: cd.Tensor) -> cd.Tensor:
        return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    def flat(x: cd.Tensor) -> list[cd.Tensor]:
        return [j.flatten(2) for j in vmap(jacrev(single), (None, 0))(params, x).values()]

    kernel = cd.stack([cd.einsum("naf,mbf->nmab", a, b) for a, b in zip(flat(x1), flat(x2), strict=True)]).sum(0)
    assert kernel.shape == (3, 2, 3, 3)
    for n in range(3):
        for m in range(2):
            first, second = (
                [cd.autograd.grad(net(x.unsqueeze(0))[0, i], list(net.parameters())) for i in range(3)]
                for x in (x1[n], x2[m])
            )
            due = cd.stack([cd.stack([_inner(a, b) for b in second]) for a in first])
            assert cd.allclose(kernel[n, m], due)


def _inner(a: tuple[cd.Tensor, ...], b: tuple[cd.Tensor, ...]) -> cd.Tensor:
    """Return the inner product of two gradients."""
    return cd.stack([(p * q).sum() for p, q in zip(a, b, strict=True)]).sum()


def test_an_ensemble_is_trained_together() -> None:
    """vmap(grad) over stacked parameters gives every model its own gradients, from one batch or from its own."""
    nets = [Net() for _ in range(3)]
    params, buffers = stack_module_state(nets)
    assert buffers == {}
    x, y = cd.randn(3, 5, 1, 8, 8), cd.randint(0, 3, (3, 5))

    def loss(params: dict[str, cd.Tensor], x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
        return cd.nn.functional.cross_entropy(functional_call(nets[0], params, (x,)), y)

    own = vmap(grad(loss))(params, x, y)
    shared = vmap(grad(loss), in_dims=(0, None, None))(params, x[0], y[0])
    for i, net in enumerate(nets):
        for inputs, targets, found in ((x[i], y[i], own), (x[0], y[0], shared)):
            net.zero_grad()
            cd.nn.functional.cross_entropy(net(inputs), targets).backward()
            for name, p in net.named_parameters():
                assert cd.allclose(found[name][i], p.grad, atol=1e-6)

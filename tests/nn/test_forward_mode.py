"""Forward mode through networks: convolutions, norms, recurrent layers, losses."""

from __future__ import annotations

import candelabra as cd
from candelabra.func import functional_call, grad, hessian, jacrev, jvp


def test_forward_mode_of_a_network_is_its_derivative() -> None:
    """Tangents of all parameters of a network with convolutions and norms; forward and reverse mode agree."""
    module = cd.nn.Sequential(
        cd.nn.Conv2d(1, 3, 3), cd.nn.BatchNorm2d(3), cd.nn.GELU(), cd.nn.MaxPool2d(2), cd.nn.Flatten(),
        cd.nn.Linear(12, 4), cd.nn.LayerNorm(4),
    ).double().eval()  # fmt: skip
    x, y = cd.randn(5, 1, 6, 6, dtype=cd.float64), cd.tensor([0, 1, 2, 3, 0])
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    tangents = {name: cd.randn_like(p) for name, p in parameters.items()}

    def loss(parameters: dict[str, cd.Tensor]) -> cd.Tensor:
        return cd.nn.functional.cross_entropy(functional_call(module, parameters, (x,)), y)

    value, along = jvp(loss, (parameters,), (tangents,))
    gradients = grad(loss)(parameters)
    assert cd.allclose(value, loss(parameters))
    assert cd.allclose(along, sum((gradients[name] * tangents[name]).sum() for name in parameters))
    product = jvp(grad(loss), (parameters,), (tangents,))[1]
    step = 1e-6  # the error of the differences is of second order in it
    ends = [grad(loss)({n: p + s * tangents[n] for n, p in parameters.items()}) for s in (step, -step)]
    assert all(cd.allclose(product[n], (ends[0][n] - ends[1][n]) / (2 * step), atol=1e-7) for n in parameters)


def test_hessian_of_a_network() -> None:
    """The Hessian with respect to the parameters is symmetric, and equal to that of reverse mode twice."""
    module = cd.nn.Sequential(cd.nn.Linear(3, 4), cd.nn.Tanh(), cd.nn.Linear(4, 1)).double()
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    x = cd.randn(6, 3, dtype=cd.float64)
    found = hessian(lambda p: functional_call(module, p, (x,)).square().mean())(parameters)
    again = jacrev(jacrev(lambda p: functional_call(module, p, (x,)).square().mean()))(parameters)
    assert found["0.weight"]["2.bias"].shape == (4, 3, 1)
    assert all(cd.allclose(found[a][b], again[a][b]) for a in parameters for b in parameters)
    assert cd.allclose(found["0.bias"]["0.weight"].movedim(0, -1), found["0.weight"]["0.bias"])


def test_recurrent_networks_have_tangents() -> None:
    """An LSTM and a GRU: forward mode is the adjoint of reverse mode."""
    for kind in (cd.nn.LSTM, cd.nn.GRU, cd.nn.RNN):
        module = kind(3, 4).double()
        x, t = cd.randn(5, 2, 3, dtype=cd.float64), cd.randn(5, 2, 3, dtype=cd.float64)
        f = lambda x, module=module: module(x)[0].sum()  # noqa: E731
        assert cd.allclose(jvp(f, (x,), (t,))[1], (grad(f)(x) * t).sum())

"""Forward mode through networks: convolutions, norms, recurrent layers, losses."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra.func import functional_call, grad, hessian, jacrev, jvp
from candelabra.library import record


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


@pytest.mark.parametrize("shape", [(4, 6), (40, 300)])
@pytest.mark.parametrize("dims", [(0,), (1,)])
@pytest.mark.parametrize("affine", [True, False])
def test_normalizations_have_tangents_of_all_results(shape: tuple[int, int], dims: tuple[int], affine: bool) -> None:
    """Values, means and deviations, along input, weight and bias, with and without an input's tangent."""
    normalize = record("normalize")
    kept = [1 if i in dims else size for i, size in enumerate(shape)]
    primals = [cd.randn(*s, dtype=cd.float64) for s in (shape, *[kept] * (2 * affine))]
    tangents = [cd.randn_like(p) for p in primals]

    def results(*some: cd.Tensor) -> tuple[cd.Tensor, ...]:
        x, *parameters = [*some, *primals[len(some) :]]
        return tuple(normalize.canonical(x, *(parameters or (None, None)), dims, 1e-3))

    step = 1e-6
    for active in (1, len(primals)):
        chosen, along = tuple(primals[:active]), tuple(tangents[:active])
        values, slopes = jvp(results, chosen, along)
        ends = [results(*[p + sign * step * t for p, t in zip(chosen, along, strict=True)]) for sign in (1.0, -1.0)]
        for value, slope, plus, minus, expected in zip(values, slopes, *ends, results(*chosen), strict=True):
            assert cd.allclose(value, expected)
            assert cd.allclose(slope, (plus - minus) / (2 * step), atol=1e-6, rtol=1e-6)
    if affine:
        found = jvp(lambda w: results(primals[0], w, primals[2]), (primals[1],), (tangents[1],))[1]
        distance = (primals[0] - primals[0].mean(dims, True)) * results(*primals)[2]
        assert cd.allclose(found[0], distance * tangents[1])
        assert not found[1].any()


def test_tangents_of_another_shape_are_refused_in_normalizations() -> None:
    """The error names both shapes; weight and bias must not be larger than the input."""
    jointly = record("normalize_jointly").canonical
    with pytest.raises(RuntimeError, match=r"the tangent must have the shape of the input, \[2, 3\], got \[3\]"):
        jointly(cd.ones(3), cd.ones(2, 3), None, None, (1,), 1e-5)
    with pytest.raises(RuntimeError, match=r"normalize: weight and bias must broadcast to the input, \[2, 3\]"):
        jointly(cd.ones(2, 3), cd.ones(2, 3), cd.ones(2, 2, 3), None, (1,), 1e-5)

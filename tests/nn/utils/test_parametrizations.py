"""Orthogonal weights, weight normalization and spectral normalization, as parametrizations and as hooks."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn.utils import parametrizations
from candelabra.nn.utils.spectral_norm import SpectralNorm, SpectralNormStateDictHook

WEIGHT = (np.arange(6.0, dtype=np.float32).reshape(2, 3) - 2) / 3


def layer(weight: Any = WEIGHT) -> Any:
    """Return a Linear with these weights."""
    m = nn.Linear(weight.shape[1], weight.shape[0])
    with cd.no_grad():
        m.weight.copy_(cd.tensor(weight))
    return m


def largest_singular_value(weight: Any) -> float:
    """Return the largest singular value, by NumPy."""
    return float(np.linalg.svd(weight.detach().numpy(), compute_uv=False)[0])


# -- orthogonal -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("trivialization", [True, False])
def test_the_weight_is_orthogonal_before_and_after_a_step(
    shape: Any, orthogonal_map: Any, trivialization: bool
) -> None:
    """Columns, or rows of a wide matrix, are orthonormal; an orthogonal weight can be assigned."""
    m: Any = nn.Linear(shape[1], shape[0])
    parametrizations.orthogonal(m, orthogonal_map=orthogonal_map, use_trivialization=trivialization)
    optimizer = cd.optim.SGD(m.parameters(), 0.5)
    for _ in range(2):
        w = m.weight.detach().numpy()
        small = w @ w.T if shape[0] <= shape[1] else w.T @ w
        np.testing.assert_allclose(small, np.eye(min(shape)), atol=2e-6)
        m(cd.ones(1, shape[1])).square().sum().backward()
        optimizer.step()
    new, _ = np.linalg.qr(np.random.Generator(np.random.Philox(3)).normal(size=(5, 5)))
    new = new[: shape[0], :][:, : shape[1]] if shape == (5, 3) or shape == (3, 5) else np.linalg.qr(new[:4, :4])[0]
    value = cd.tensor(new.astype(np.float32))
    if not trivialization and (orthogonal_map in ("matrix_exp", "cayley") or (orthogonal_map, shape) == (None, (4, 4))):
        with pytest.raises(NotImplementedError, match="It is not possible to assign to the matrix exponential"):
            m.weight = value
    else:
        m.weight = value
        np.testing.assert_allclose(m.weight.detach().numpy(), new, atol=2e-6)


def test_complex_weights_are_unitary() -> None:
    """The default map makes a complex matrix unitary; reflections of Householder are refused."""
    m: Any = nn.Module()
    m.register_parameter("w", nn.Parameter(cd.randn(3, 3, dtype=cd.complex64)))
    parametrizations.orthogonal(m, "w")
    w = m.w.detach().numpy()
    np.testing.assert_allclose(w.conj().T @ w, np.eye(3), atol=2e-6)
    m = nn.Module()
    m.register_parameter("w", nn.Parameter(cd.randn(3, 3, dtype=cd.complex64)))
    with pytest.raises(ValueError, match="The householder parametrization does not support complex tensors"):
        parametrizations.orthogonal(m, "w", "householder")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: parametrizations.orthogonal(nn.Linear(2, 2), "bias"), ValueError, "Got a tensor of 1 dimensions"),
        (lambda: parametrizations.orthogonal(nn.Linear(2, 2), "q"), ValueError, "no parameter or buffer with name 'q'"),
        (
            lambda: parametrizations.orthogonal(nn.Linear(2, 2), "weight", "polar"),
            ValueError,
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: polar',
        ),
        (
            lambda: setattr(parametrizations.orthogonal(nn.Linear(2, 2)), "weight", cd.ones(3, 3)),
            ValueError,
            "Expected a matrix or batch of matrices of shape candelabra.Size([2, 2]). Got a tensor of shape",
        ),
        (
            lambda: parametrizations.spectral_norm(nn.Linear(2, 2), dim=2),
            IndexError,
            "Dimension out of range (expected to be in range of [-2, 1] but got 2)",
        ),
        (
            lambda: parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
            ValueError,
            "Expected n_power_iterations to be positive, but got n_power_iterations=0",
        ),
        (
            lambda: nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
            ValueError,
            "Expected n_power_iterations to be positive, but got n_power_iterations=0",
        ),
        (
            lambda: nn.utils.spectral_norm(nn.Linear(2, 2, bias=False), "bias"),
            ValueError,
            "`SpectralNorm` cannot be applied as parameter `bias` is None",
        ),
        (
            lambda: nn.utils.spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 2))),
            RuntimeError,
            "Cannot register two spectral_norm hooks on the same parameter weight",
        ),
        (lambda: nn.utils.remove_spectral_norm(nn.ReLU()), ValueError, "spectral_norm of 'weight' not found in ReLU()"),
        (lambda: nn.utils.remove_weight_norm(nn.ReLU()), ValueError, "weight_norm of 'weight' not found in ReLU()"),
        (
            lambda: SpectralNormStateDictHook(SpectralNorm())(
                nn.ReLU(), {}, "", {"spectral_norm": {"weight.version": 1}}
            ),
            RuntimeError,
            "Unexpected key in metadata['spectral_norm']: weight.version",
        ),
    ],
)
def test_wrong_calls_are_errors(call: Any, error: type[Exception], text: str) -> None:
    """Each error has PyTorch's class and text."""
    with pytest.raises(error, match=re.escape(text)):
        call()


# -- weight norm ------------------------------------------------------------------------------------------------------
def test_weight_norm_separates_norms_and_direction() -> None:
    """The weight does not change; original0 has one norm per row, and both get gradients."""
    m: Any = parametrizations.weight_norm(layer())
    norms = np.linalg.norm(WEIGHT, axis=1, keepdims=True)
    np.testing.assert_allclose(m.parametrizations.weight.original0.detach().numpy(), norms, rtol=1e-6)
    np.testing.assert_allclose(m.weight.detach().numpy(), WEIGHT, rtol=1e-6)
    m(cd.ones(1, 3)).sum().backward()
    np.testing.assert_allclose(
        m.parametrizations.weight.original0.grad.numpy(), (WEIGHT / norms).sum(1, keepdims=True), rtol=1e-5
    )
    shapes = [parametrizations.weight_norm(layer(), dim=d).parametrizations.weight.original0.shape for d in (1, None)]
    assert shapes == [(1, 3), ()]
    bias: Any = parametrizations.weight_norm(nn.Linear(2, 2), "bias")
    assert bias.parametrizations.bias.original0.shape == (2,)


def test_weight_norm_loads_states_of_the_older_function() -> None:
    """Keys weight_g and weight_v are renamed."""
    with pytest.warns(FutureWarning, match=r"`candelabra\.nn\.utils\.weight_norm` is deprecated"):
        old: Any = nn.utils.weight_norm(layer(WEIGHT * 2))
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    new: Any = parametrizations.weight_norm(layer())
    new.load_state_dict(old.state_dict())
    np.testing.assert_allclose(new.weight.detach().numpy(), WEIGHT * 2, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
def test_the_older_weight_norm_computes_the_weight_before_each_call() -> None:
    """weight_g scales the weight; removal makes it a parameter with that value."""
    m: Any = nn.utils.weight_norm(layer())
    with cd.no_grad():
        m.weight_g.mul_(3)
    m(cd.ones(1, 3)).sum().backward()
    np.testing.assert_allclose(m.weight.detach().numpy(), WEIGHT * 3, rtol=1e-6)
    assert m.weight_g.grad.shape == (2, 1)
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks on the same parameter weight"):
        nn.utils.weight_norm(m)
    nn.utils.remove_weight_norm(m)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    assert isinstance(m.weight, nn.Parameter)
    np.testing.assert_allclose(m.weight.detach().numpy(), WEIGHT * 3, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
def test_parameters_without_a_shape_are_refused() -> None:
    """A lazy parameter must get its shape first."""

    class Lazy(nn.Parameter):
        __slots__ = ()
        cls_to_become = nn.Parameter

    for function, name in ((nn.utils.weight_norm, "WeightNorm"), (nn.utils.spectral_norm, "SpectralNorm")):
        m = nn.Module()
        m.weight = Lazy(cd.ones(1))
        with pytest.raises(ValueError, match=f"The module passed to `{name}` can't have uninitialized parameters"):
            function(m)


# -- spectral norm ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dim", [0, 1])
def test_spectral_norm_makes_the_largest_singular_value_one(dim: int) -> None:
    """Uses in training mode improve the estimate, uses in evaluation mode do not."""
    m: Any = parametrizations.spectral_norm(layer(), dim=dim)
    assert sorted(m.state_dict())[1:] == [
        "parametrizations.weight.0._u", "parametrizations.weight.0._v", "parametrizations.weight.original",
    ]  # fmt: skip
    for _ in range(20):
        assert m.weight.shape == (2, 3)
    assert abs(largest_singular_value(m.weight) - 1) < 1e-5
    m.eval()
    u = m.parametrizations.weight[0]._u.tolist()
    assert m.weight.tolist() == m.weight.tolist()
    assert m.parametrizations.weight[0]._u.tolist() == u
    m.train()
    (m(cd.ones(1, 3)) + m(cd.ones(1, 3))).sum().backward()
    assert m.parametrizations.weight.original.grad.shape == (2, 3)
    m.weight = cd.ones(2, 3)
    assert m.parametrizations.weight.original.tolist() == [[1] * 3] * 2


def test_spectral_norm_of_a_vector_is_its_norm() -> None:
    """A vector is divided by its norm."""
    m: Any = nn.LayerNorm(3)
    with cd.no_grad():
        m.weight.copy_(cd.tensor([3.0, 4.0, 0.0]))
    parametrizations.spectral_norm(m)
    np.testing.assert_allclose(m.weight.detach().numpy(), [0.6, 0.8, 0], rtol=1e-6)


def test_the_older_spectral_norm_is_a_hook() -> None:
    """Each call in training mode improves the estimate; the state has the version, and removal restores the weight."""
    m: Any = nn.utils.spectral_norm(layer())
    assert sorted(m.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert m.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    for _ in range(20):
        m(cd.ones(1, 3))
    assert abs(largest_singular_value(m.weight) - 1) < 1e-5
    (m(cd.ones(1, 3)) + m(cd.ones(1, 3))).sum().backward()
    assert m.weight_orig.grad.shape == (2, 3)
    other: Any = nn.utils.spectral_norm(layer())
    other.load_state_dict(m.state_dict())
    other.load_state_dict(dict(m.state_dict()))
    assert other.weight_u.tolist() == m.weight_u.tolist()
    nn.utils.remove_spectral_norm(m)
    assert sorted(m.state_dict()) == ["bias", "weight"]
    for hooks in (m._forward_pre_hooks, m._state_dict_hooks, m._load_state_dict_pre_hooks):
        assert len(hooks) == 0


def test_states_without_v_are_completed() -> None:
    """A state of the first version has the weight instead of v, from which v is solved."""
    m: Any = nn.utils.spectral_norm(layer())
    state = m.state_dict()
    original = np.array([[1.0, 0, 0], [0, 0.5, 0]], dtype=np.float32)
    state["weight_orig"], state["weight_u"] = cd.tensor(original), cd.tensor([1.0, 0.0])
    state["weight"] = cd.tensor(original / 2)
    del state["weight_v"]
    state._metadata[""] = {"version": 1}
    # 0 / 0 outside the support of the weight would make the mean nan
    state["weight_orig"] = state["weight_orig"] + 1
    state["weight"] = state["weight_orig"] / 2
    m.load_state_dict(state)
    m.eval()
    m(cd.ones(1, 3))
    np.testing.assert_allclose((m.weight_orig / m.weight).detach().numpy(), np.full((2, 3), 2), rtol=1e-4)
    del state["weight_u"]
    state["weight"] = state["weight_orig"]
    with pytest.raises(RuntimeError, match=re.escape('Missing key(s) in state_dict: "weight_u"')):
        m.load_state_dict(state)


def test_transposed_convolutions_have_their_outputs_in_dim_1() -> None:
    """The default dim depends on the class."""

    class ConvTranspose1d(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(cd.randn(2, 3, 4))

    m: Any = nn.utils.spectral_norm(ConvTranspose1d())
    assert m.weight_u.shape == (3,)

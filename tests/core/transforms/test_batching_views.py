"""Views of the results of a block of ``batching()``: values, layouts, gradients."""

from __future__ import annotations

from collections.abc import Callable

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, batching

from tests.core.transforms.comparing import recorded, tensor


def test_views_know_their_layout_and_are_copied_to_c_order(rng: np.random.Generator) -> None:
    """``stride()``, ``is_contiguous()`` and ``contiguous()`` of a deferred view are those of the view."""
    x = tensor(rng, 3, 4)
    eager = ((x * 2).T.contiguous().view(-1), (x * 2)[1:, 2], (x * 2).T.contiguous().view(2, 6).sum(0))
    with batching():
        y = x * 2
        assert not y.T.is_contiguous()
        assert y.T.stride() == (1, 4)
        assert y.T.contiguous().is_contiguous()
        assert y.contiguous() is y
        assert y[1:, 2].stride() == (4,)
        assert y[1:, 2].storage_offset() == 6
        found = (y.T.contiguous().view(-1), y[1:, 2], y.T.contiguous().view(2, 6).sum(0))
    for got, expected in zip(found, eager, strict=True):
        assert cd.equal(got, expected)
        assert got.stride() == expected.stride()


@pytest.mark.parametrize("use", [
    lambda h: h.chunk(2)[0].t().tanh().sum() + h.chunk(2)[1].exp().sum(),  # views of views, from the second call on
    lambda h: h.max(1).values.sum() + h.var_mean(0)[1].prod(),  # an operator of several results
    lambda h: h.sort(1).values[:, :2].square().sum() + h.sort(1).values.split(1, 1)[0].exp().sum(),  # views of those
    lambda h: h.unsqueeze(0).expand(3, -1, -1).transpose(0, 2).cumsum(0)[1].sum(),
    lambda h: (h.double() * h[0] + h[:, :1] * 2).view(-1).narrow(0, 1, 3).sin().sum(),
    lambda h: cd.stack([h[0] * h[1], h[1].flip(0), h[0]])[1:].logsumexp(1).sum(),  # rows of several groups
])  # fmt: skip
def test_views_of_results_follow_their_group(use: Callable[[Tensor], Tensor], rng: np.random.Generator) -> None:
    """Views of results, of single outputs and of views have the values and the gradients of the loop."""
    w = tensor(rng, 4, 4, leaf=True)
    examples = [tensor(rng, 2, 4) for _ in range(5)]

    def run() -> list[Tensor]:
        loss = cd.stack([use((x @ w).sigmoid() if i % 2 else (x @ w).sin() @ w) for i, x in enumerate(examples)])
        return [loss, *cd.autograd.grad(loss.sum(), [w])]

    expected = run()
    with batching():
        found = run()
    assert all(cd.allclose(a, b, 1e-12, 1e-12) for a, b in zip(found, expected, strict=True))


def test_views_of_results_are_no_calls(rng: np.random.Generator) -> None:
    """All examples share one view of their results, and each of its uses is one call."""
    w = tensor(rng, 4, 4, leaf=True)
    with batching():
        losses = []
        for _ in range(5):
            first, second = (tensor(rng, 4) @ w).chunk(2)
            losses.append((first * second).sum())
        loss = cd.stack(losses).sum()
    names = recorded(loss)
    assert len([name for name in names if name.startswith("BasicIndex")]) == 2
    assert len([name for name in names if name.startswith("Mul")]) == 1


def test_a_view_has_the_modes_of_its_call(rng: np.random.Generator) -> None:
    """A view that is taken under ``no_grad`` is not recorded, and the same view outside of it is."""
    w = tensor(rng, 4, leaf=True)
    with batching():
        out = []
        for _ in range(3):
            h = tensor(rng, 4) * w
            with cd.no_grad():
                fixed = h[:2].exp()
            out.append((h[:2] * fixed).sum())
        total = cd.stack(out).sum()
    assert not fixed.requires_grad
    assert total.requires_grad
    assert len([name for name in recorded(total) if name.startswith("BasicIndex")]) == 1


def test_views_of_a_result_that_was_computed_before(rng: np.random.Generator) -> None:
    """After a value was needed, views of earlier results are taken as before, also of calls that fail."""
    w = tensor(rng, 4, leaf=True)
    with batching():
        a, b = (tensor(rng, 4) * w for _ in range(2))
        early = a[:2]
        kept = a.sum().item()
        late = [a[:2] + 0, b[2:] + 0, early + 0]
    assert cd.equal(late[0], late[2])
    assert cd.allclose(late[0].sum() + a[2:].sum(), cd.tensor(kept, dtype=cd.float64))
    assert cd.equal(late[1], b[2:])

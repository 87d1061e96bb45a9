"""``batching()`` collects the calls of a block and runs equal ones as one: results, gradients, errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, batching

from tests.core.transforms.comparing import recorded, tensor


class Network:
    """A recurrent network whose steps depend on the example: a chain of as many steps as the example is long."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.w = tensor(rng, 4, 4, leaf=True)
        self.b = tensor(rng, 4, leaf=True)
        self.words = tensor(rng, 7, 4, leaf=True)

    def __call__(self, words: list[int]) -> Tensor:
        h = self.words[words[0]]
        for word in words[1:]:
            h = (h @ self.w + self.b).tanh() * self.words[word]
            first, second = h.chunk(2)
            h = cd.cat((second.sigmoid(), first))
        return h

    def gradients(self, examples: list[list[int]], block: Any) -> list[Tensor]:
        """Return the loss, and the gradients of the parameters."""
        parameters = [self.w, self.b, self.words]
        with block:
            loss = cd.stack([self(words).square().sum() for words in examples]).mean()
        return [loss, *cd.autograd.grad(loss, parameters)]


def test_results_and_gradients_are_those_of_the_loop(rng: np.random.Generator) -> None:
    """Examples of different lengths have the same loss and gradients with and without the block."""
    network = Network(rng)
    examples = [rng.integers(0, 7, n).tolist() for n in (1, 5, 3, 3, 4, 1)]
    found = network.gradients(examples, batching())
    for a, b in zip(found, network.gradients(examples, nullcontext()), strict=True):
        assert cd.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_equal_calls_of_different_examples_run_as_one(rng: np.random.Generator) -> None:
    """Chains of 1 to 5 steps take one product for each step of the longest chain."""
    network = Network(rng)
    counts = []
    for block in (nullcontext(), batching()):
        with block:
            out = cd.stack([network([0, 1, 2, 3, 4, 5][: n + 1]) for n in range(1, 6)]).sum()
        counts.append(recorded(out).count("MatmulBackward"))
    assert counts == [15, 5]


def test_rows_of_a_parameter_are_one_lookup(rng: np.random.Generator) -> None:
    """Different numbers, also negative ones, select rows of a parameter by one call; other indices work as usual."""
    w = tensor(rng, 5, 3, leaf=True)
    with batching():
        out = cd.stack([w[0], w[-1], w[3], w[0]])
        with pytest.raises(IndexError, match="index 5 is out of"):
            w[5]
    assert recorded(out).count("IndexSelectBackward") == 1
    out.sum().backward()
    assert w.grad is not None
    assert w.grad[:, 0].tolist() == [2, 0, 0, 1, 1]


def test_parameters_are_shared_and_other_tensors_are_stacked(rng: np.random.Generator) -> None:
    """Two weights of one shape are two groups; a few frozen weights of one shape are not copied for each call."""
    first, second = tensor(rng, 3, 3, leaf=True), tensor(rng, 3, 3, leaf=True)
    frozen = [tensor(rng, 3, 3), tensor(rng, 3, 3)]
    xs = [tensor(rng, 3) for _ in range(6)]
    with batching():
        outs = [(x @ (first, second)[i % 2]) @ frozen[i % 2] for i, x in enumerate(xs)]
        total = cd.stack(outs).sum()
    assert recorded(total).count("MatmulBackward") == 4
    for i, (x, out) in enumerate(zip(xs, outs, strict=True)):
        assert cd.allclose(out, (x @ (first, second)[i % 2]) @ frozen[i % 2])


def test_a_result_is_known_before_it_is_computed(rng: np.random.Generator) -> None:
    """Shape, dtype, device and strides are those of the call, and the value is computed when it is asked for."""
    x = tensor(rng, 2, 3)
    with batching():
        y = (x * 2).t().float()
        assert (y.shape, y.dtype, y.device, y.ndim) == ((3, 2), cd.float32, x.device, 2)
        assert y.is_contiguous()
        assert y.tolist() == (x * 2).t().float().tolist()
    assert cd.equal(y, (x * 2).t().float())


@pytest.mark.parametrize("use", [
    lambda t: t.sum().item(), repr, lambda t: t.tolist(), lambda t: bool((t > 0).any()), lambda t: t.numpy().tolist(),
    lambda t: t.nonzero().tolist(), lambda t: t[t > 0].tolist(), lambda t: f"{t.sum():.3f}",
    lambda t: t.unique().tolist(),
])  # fmt: skip
def test_a_value_that_is_needed_is_computed(use: Callable[[Tensor], Any], rng: np.random.Generator) -> None:
    """Whatever reads elements in the block gets them."""
    x = tensor(rng, 3)
    with batching():
        found = use(x * 3 - 1)
    assert found == use(x * 3 - 1)


def test_errors_are_raised_in_the_line_that_makes_them(rng: np.random.Generator) -> None:
    """Shapes that do not fit raise when the operator is called, not when the block ends."""
    with batching():
        x = tensor(rng, 2, 3) * 1
        with pytest.raises(RuntimeError, match="shapes"):
            x @ tensor(rng, 2, 3)
        assert (x + 1).shape == (2, 3)


def test_a_block_that_fails_computes_nothing_more(rng: np.random.Generator) -> None:
    """After an error in the block, its tensors say that they were not computed; tensors from outside are as before."""
    total = cd.zeros(3, dtype=cd.float64)
    made: list[Tensor] = []

    @batching()
    def failing() -> None:
        made.append(tensor(rng, 3) * 2)
        total.add_(made[0])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with pytest.raises(RuntimeError, match="was not computed: an operator failed"):
        made[0].tolist()
    assert total.tolist() == [0, 0, 0]


def test_another_thread_cannot_run_the_block(rng: np.random.Generator) -> None:
    """A tensor that is not computed raises in another thread; a computed one does not."""
    x = tensor(rng, 3)
    errors: list[str] = []

    def read(t: Tensor) -> None:
        try:
            t.tolist()
        except RuntimeError as error:
            errors.append(str(error))

    with batching():
        y = x * 2
        for _ in range(2):
            thread = threading.Thread(target=read, args=(y,))
            thread.start()
            thread.join()
            assert y.sum().item() == pytest.approx((x * 2).sum().item())
    assert len(errors) == 1
    assert "used in another thread before its value was computed" in errors[0]


def test_results_of_many_rows_are_selected_before_they_are_joined(rng: np.random.Generator) -> None:
    """A call that uses few results of large groups copies only these."""
    w = tensor(rng, 300, leaf=True)
    xs = [tensor(rng, 300) for _ in range(300)]

    def run() -> list[Tensor]:
        wide, others = [x * w for x in xs], [x.sin() * w for x in xs]
        chosen = [wide[7], others[200], wide[3], xs[0] * w]
        loss = cd.stack([h.square().sum() for h in chosen])
        return [loss, *cd.autograd.grad(loss.sum(), [w])]

    expected = run()
    with batching():
        found = run()
    assert all(cd.allclose(a, b) for a, b in zip(found, expected, strict=True))
    with batching():
        few = [(x * w, x.cos() * w) for x in xs]
        rows = [few[0][0], few[5][1], few[9][0].exp()]
        out = [row.square() for row in rows]
    assert cd.allclose(out[1], (xs[5].cos() * w).square())


def test_operands_of_several_dtypes_are_promoted_as_one_by_one(rng: np.random.Generator) -> None:
    """Numbers and vectors of several dtypes have the dtypes of single calls: ranks are those of an example."""
    xs = [(cd.tensor(float(i), dtype=cd.float64), cd.full((3,), i + 0.5, dtype=cd.float32)) for i in range(4)]

    def run() -> list[Tensor]:
        return [op(a * 1, b * 1) for op in (cd.add, cd.maximum) for a, b in xs]

    expected = run()
    with batching():
        found = run()
    assert [t.dtype for t in found] == [t.dtype for t in expected] == [cd.float32] * 8
    assert all(cd.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_the_first_block_of_a_process_batches_all_operators() -> None:
    """Rules that are declared apart from the records serve before any call of ``vmap`` has loaded them."""
    program = (
        "import candelabra as cd\n"
        "w = cd.ones(3, 3, requires_grad=True)\n"
        "with cd.batching():\n"
        "    outs = [cd.cat((x @ w, x)) for x in cd.ones(4, 3)]\n"
        "    out = cd.stack(outs)\n"
        "print(out.grad_fn.name(), out.grad_fn.next_functions[0][0].name())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["CatBackward", "MatmulBackward"]

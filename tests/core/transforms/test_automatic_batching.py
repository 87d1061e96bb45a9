"""``batching()`` collects the calls of a block and runs equal ones as one: results, gradients, limits."""

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
from candelabra.func import grad, jvp, vmap

from tests.core.transforms.loops import Cube


def tensor(rng: np.random.Generator, *shape: int, leaf: bool = False) -> Tensor:
    """Return float64 numbers, so that the order of sums does not matter."""
    return cd.tensor(rng.standard_normal(shape), requires_grad=leaf)


def recorded(out: Tensor) -> list[str]:
    """Return the names of all nodes of a graph."""
    stack, seen = [out.grad_fn], []
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.append(node)
            stack += [before for before, _ in node.next_functions]
    return [node.name() for node in seen]


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


# -- in place ---------------------------------------------------------------------------------------------------------
def test_sums_in_place_are_collected(rng: np.random.Generator) -> None:
    """``total += x`` waits with the block, for totals from inside and outside, whose views see the sum."""
    w = tensor(rng, 3, leaf=True)
    outside = cd.zeros(3, dtype=cd.float64)
    view = outside[1:]
    with batching():
        inside = w * 0
        for _ in range(3):
            inside += w.exp()
            outside += w.exp()
    assert cd.allclose(inside, 3 * w.exp())
    assert cd.allclose(outside, 3 * w.exp())
    assert cd.allclose(view, 3 * w.exp()[1:])
    (outside.sum() + inside.sum()).backward()
    assert w.grad is not None
    assert cd.allclose(w.grad, 6 * w.exp())


def test_views_of_deferred_tensors_share_their_memory(rng: np.random.Generator) -> None:
    """A write through a view, or to its base, shows in the other, as outside of the block."""

    def run() -> list[Any]:
        x = start * 2
        row, column = x[0], x.t()[1]
        x.add_(1)
        row.mul_(3)
        kept = row + 1
        column.zero_()
        return [t.tolist() for t in (x, row, column, kept)]

    start = tensor(rng, 2, 3)
    with batching():
        found = run()
    assert found == run()


def test_a_write_does_not_affect_calls_before_it(rng: np.random.Generator) -> None:
    """A call uses the value that its operand had when it was made, whatever writes follow."""
    x, w = tensor(rng, 3), tensor(rng, 3, leaf=True)
    expected = (x * 2).tolist(), (w * 2).tolist()
    with batching():
        y, z = x * 2, w * 2
        x.zero_()
        with cd.no_grad():
            w.fill_(0)
        assert (x * 2).tolist() == [0, 0, 0]
    assert (y.tolist(), z.tolist()) == expected
    with batching():
        y = w * 2
        w.data = cd.ones(3, dtype=cd.float64)
        with pytest.raises(RuntimeError, match="changed in place in a block of batching"):
            y.tolist()


def test_results_of_equal_calls_have_memory_of_their_own(rng: np.random.Generator) -> None:
    """Two calls with the same operands, which run once, do not share their result."""
    w, x = tensor(rng, 3, leaf=True), tensor(rng, 3)
    with batching():
        for operand in (w, x):
            with cd.no_grad():
                a, b = operand * 2, operand * 2
                a.sum().item()
                a.zero_()
                assert cd.equal(b, operand * 2)


# -- modes and transforms ---------------------------------------------------------------------------------------------
def test_modes_belong_to_the_call(rng: np.random.Generator) -> None:
    """A call under ``no_grad`` is not recorded, one outside of it is, though both run later."""
    w = tensor(rng, 3, leaf=True)
    with batching():
        with cd.no_grad():
            a = w * 2
        b = w * 2
    assert (a.requires_grad, b.requires_grad) == (False, True)
    with batching(), cd.autocast("cpu", cd.bfloat16):
        c = cd.ones(2, 2) @ cd.ones(2, 2)
        d = c.float().softmax(0)
    assert (c.dtype, d.dtype) == (cd.bfloat16, cd.float32)


def test_random_numbers_are_those_of_the_loop() -> None:
    """Draws take their numbers when they are called, so that a seed gives the same with and without the block."""

    def run() -> Tensor:
        cd.manual_seed(3)
        x = cd.ones(4)
        return cd.stack([cd.nn.functional.dropout(x * i + cd.rand(4), 0.5) for i in range(3)])

    with batching():
        found = run()
    assert cd.equal(found, run())


def test_transforms_work_inside_and_around_a_block(rng: np.random.Generator) -> None:
    """vmap, grad and jvp of a function with a block, and in a block, are those of the function alone."""
    w = tensor(rng, 3, 3)

    def f(x: Tensor) -> Tensor:
        return ((x @ w).tanh()[1:].sum() * 2 + (x @ w).sin().sum()).exp()

    def blocked(x: Tensor) -> Tensor:
        with batching():
            return f(x)

    x, t = tensor(rng, 4, 3), tensor(rng, 4, 3)
    for g in (blocked, batching()(f)):
        assert cd.allclose(vmap(g)(x), vmap(f)(x))
        assert cd.allclose(grad(g)(x[0]), grad(f)(x[0]))
        assert cd.allclose(vmap(grad(g))(x), vmap(grad(f))(x))
        for a, b in zip(jvp(g, (x[0],), (t[0],)), jvp(f, (x[0],), (t[0],)), strict=True):
            assert cd.allclose(a, b)
    with batching():
        outs = [vmap(f)(x), grad(f)(x[0]), vmap(grad(f))(x), jvp(f, (x[0],), (t[0],))[1]]
        outs.append(cd.stack([jvp(f, (a,), (b,))[1] for a, b in zip(x, t, strict=True)]))
    tangent = jvp(f, (x[0],), (t[0],))[1]
    expected = [vmap(f)(x), grad(f)(x[0]), vmap(grad(f))(x), tangent, jvp(vmap(f), (x,), (t,))[1]]
    for a, b in zip(outs, expected, strict=True):
        assert cd.allclose(a, b)


def test_backward_steps_and_custom_functions_work_in_a_block(rng: np.random.Generator) -> None:
    """A loop of training inside the block has the same parameters as outside; a custom Function is called at once."""
    start = tensor(rng, 3)

    def run() -> Tensor:
        w = start.clone().requires_grad_()
        optimizer = cd.optim.Adam([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (Cube.apply(w * 2) + w).sum().backward()
            optimizer.step()
        return w.detach()

    with batching():
        found = run()
    assert cd.allclose(found, run())


def test_a_block_in_a_block_is_part_of_it(rng: np.random.Generator) -> None:
    """The calls of an inner block are computed with those of the outer one."""
    w, x = tensor(rng, 3, leaf=True), tensor(rng, 2, 3)
    with batching():
        a = x[0] * w
        with batching():
            b = x[1] * w
        total = cd.stack([a.sin(), b.sin()]).sum()
    assert recorded(total).count("SinBackward") == 1
    assert cd.allclose(total, (x * w).sin().sum())


def test_random_numbers_fill_tensors_of_a_block() -> None:
    """In-place draws have the numbers of eager calls, in results that wait and in their views."""

    def run() -> Tensor:
        cd.manual_seed(7)
        x = cd.zeros(4) + 1
        x.normal_()
        y = x * 2
        y[:2].bernoulli_(0.5)
        y[2:].uniform_().random_(0, 9)
        return x + y

    with batching():
        found = run()
    assert cd.equal(found, run())


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


def test_a_chain_of_additions_runs_as_one_call(rng: np.random.Generator) -> None:
    """The partial sums of a loop are cumulative sums: one call, in any form of addition."""
    w, xs = tensor(rng, 4, leaf=True), [tensor(rng, 4) for _ in range(9)]

    def total() -> tuple[Tensor, Tensor]:
        first = sum((w * x).sum() for x in xs)
        second = (w * xs[0]).clone()
        for x in xs[1:]:
            second += (w * x).tanh()
        return first, second

    eager = total()
    (eager[0] + (eager[1] ** 2).sum()).backward()
    expected, w.grad = w.grad, None
    with batching():
        found = total()
    nodes = recorded(found[0] + found[1].sum())
    assert nodes.count("CumsumBackward") == 2
    assert nodes.count("AddBackward") <= 2
    (found[0] + (found[1] ** 2).sum()).backward()
    for got, value in zip(found, eager, strict=True):
        assert cd.allclose(got, value)
    assert cd.allclose(w.grad, expected)


def test_terms_that_depend_on_a_partial_sum_stay_in_order(rng: np.random.Generator) -> None:
    """In ``x = x + f(x)`` each term needs the sum so far, so that the chain is not one call."""
    start = tensor(rng, 5)

    def residual(x: Tensor) -> Tensor:
        for _ in range(6):
            x = x + (x * 0.5).tanh()
        return x

    with batching():
        found = [residual(start + i) for i in range(3)]
        alone = residual(start)
    for i, got in enumerate(found):
        assert cd.allclose(got, residual(start + i))
    assert cd.allclose(alone, residual(start))


def test_each_partial_sum_of_a_chain_can_be_used(rng: np.random.Generator) -> None:
    """Partial sums that the program keeps have their values, and calls that need them run after the chain."""
    xs = [tensor(rng, 2) for _ in range(6)]
    with batching():
        partial = [xs[0] * 1]
        for x in xs[1:]:
            partial.append(partial[-1] + x * 1)
        products = cd.stack([p * 2 for p in partial])
    assert cd.allclose(products, cd.stack(xs).cumsum(0) * 2)
    for i, p in enumerate(partial):
        assert cd.allclose(p, cd.stack(xs[: i + 1]).sum(0))


def test_dropout_is_batched_around_its_draws(rng: np.random.Generator) -> None:
    """Each draw has the numbers of the loop; the operators after it are one call for all examples."""
    w, xs = tensor(rng, 4, leaf=True), [tensor(rng, 4) for _ in range(5)]

    def losses() -> list[Tensor]:
        cd.manual_seed(5)
        return [cd.nn.functional.dropout(w * x, 0.5).sum() for x in xs]

    cd.stack(losses()).sum().backward()
    expected, w.grad = w.grad, None
    with batching():
        found = losses()
        total = cd.stack(found).sum()
    assert recorded(total).count("MulBackward") == 2  # of all five dropouts, and of w * x
    total.backward()
    assert cd.allclose(w.grad, expected)
    assert cd.equal(cd.stack(found), cd.stack(losses()))


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

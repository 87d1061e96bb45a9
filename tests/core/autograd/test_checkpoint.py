"""checkpoint, saved-tensor hooks and anomaly mode."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import Function, checkpoint, checkpoint_sequential, detect_anomaly, grad, graph


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


def test_the_gradient_is_the_same_and_the_function_runs_twice() -> None:
    """Keyword arguments and closures work too, and so does grad."""
    runs = []
    w = leaf([2.0, 3.0])

    def f(x: Any, *, power: int) -> Any:
        runs.append(1)
        return (x * w).exp().sin() ** power

    x = leaf([0.1, 0.2])
    want = grad(f(x, power=2).sum(), (x, w))
    runs.clear()
    got = grad(checkpoint(f, x, power=2).sum(), (x, w))
    assert len(runs) == 2
    assert [g.tolist() for g in got] == [g.tolist() for g in want]


def test_nested_sequential_and_second_derivatives() -> None:
    """A checkpoint may contain another, a chain may be split into segments, and create_graph is supported."""
    x = leaf([0.3])
    f = lambda v: checkpoint(lambda u: u.sin().exp(), v).cos()  # noqa: E731
    assert grad(checkpoint(f, x).sum(), x)[0].tolist() == grad(x.sin().exp().cos().sum(), x)[0].tolist()
    chain = [cd.sin, cd.exp, cd.cos]
    assert grad(checkpoint_sequential(chain, 2, x).sum(), x)[0].tolist() == grad(f(x).sum(), x)[0].tolist()
    (first,) = grad(checkpoint(lambda v: v.sin() * v, x).sum(), x, create_graph=True)
    (want,) = grad((x.sin() * x).sum(), x, create_graph=True)
    assert grad(first.sum(), x)[0].tolist() == pytest.approx(grad(want.sum(), x)[0].tolist())


def test_random_numbers_are_drawn_again() -> None:
    """The second run uses the random state of the first one, and restores the current state afterwards."""
    x = leaf([1.0] * 8)
    kept = []

    def f(v: Any) -> Any:
        noise = cd.rand(8, dtype=cd.float64)
        kept.append(noise.tolist())
        return (v * noise).exp()

    y = checkpoint(f, x)
    cd.rand(3)
    state = cd.get_rng_state().tolist() if hasattr(cd, "get_rng_state") else None
    y.sum().backward()
    assert kept[0] == kept[1]
    assert state is None or cd.get_rng_state().tolist() == state


def test_another_run_that_differs_is_an_error() -> None:
    """The error shows both metadata."""
    sizes = iter([2, 3])
    w = leaf([1.0])
    y = checkpoint(lambda: w * cd.ones(next(sizes), dtype=cd.float64))
    with pytest.raises(RuntimeError, match="Recomputed values for the following tensors have different metadata"):
        y.sum().backward()
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(lambda: w, determinism_check="maybe")


def test_saved_tensor_hooks_see_inputs_and_outputs() -> None:
    """The tensors that operators save are packed by one hook and unpacked by the other."""
    packed = []
    x = leaf([1.0, 2.0])

    def pack(t: Any) -> Any:
        packed.append(t.tolist())
        return t.tolist()

    with graph.saved_tensors_hooks(pack, lambda v: cd.tensor(v, dtype=cd.float64)):
        y = (x * x).exp()
    y.sum().backward()
    assert len(packed) >= 2
    assert x.grad.tolist() == pytest.approx([2 * 1 * 2.718281828459045, 4 * 54.598150033144236])
    with graph.save_on_cpu():
        z = x * x
    assert grad(z.sum(), x)[0].tolist() == [2.0, 4.0]


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_shows_where_the_node_was_made() -> None:
    """NaN in a gradient is an error, and a warning shows the traceback of the forward call."""
    x = leaf([0.0])
    with (
        pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
        pytest.warns(UserWarning, match="test_anomaly_mode_shows_where_the_node_was_made"),
        detect_anomaly(),
    ):
        (x.sqrt() * 0).sum().backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_lets_an_error_of_a_rule_pass_and_says_where_its_node_was_made() -> None:
    """The rule's own error is raised, and a warning shows the forward call."""
    x = leaf([1.0])
    with (
        pytest.raises(RuntimeError, match="no way back"),
        pytest.warns(UserWarning, match="test_anomaly_mode_lets_an_error"),
        detect_anomaly(),
    ):
        FailingBackward.apply(x).sum().backward()
    assert x.grad is None


class FailingBackward(Function):
    """A function whose derivative raises."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise RuntimeError("no way back")


def test_a_run_that_saves_less_the_second_time_is_an_error() -> None:
    """The error has the number of saved tensors, and no gradient is accumulated."""
    more = iter([True, False])
    w = leaf([1.0])
    y = checkpoint(lambda: (w * 2).sin().exp() if next(more) else w * 2)
    with pytest.raises(RuntimeError, match=r"A different number of tensors was saved during the original forward"):
        y.sum().backward()
    assert w.grad is None


def test_saved_tensors_that_changed_are_noticed_behind_hooks_and_in_lists() -> None:
    """The error names the operator and both versions, also if a hook holds the tensor or a list is saved."""
    x, scale = leaf([1.0, 2.0]), cd.ones(2, dtype=cd.float64)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * scale
    scale.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        y.sum().backward()
    index = cd.tensor([0, 1])
    z = x[index]
    index.zero_()
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        z.sum().backward()
    assert x.grad is None


def test_an_unpack_hook_must_return_a_tensor() -> None:
    """The error names the returned type."""
    x = leaf([1.0, 2.0])
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError, match="an unpack hook must return a Tensor, got int"):
        y.sum().backward()
    assert x.grad is None

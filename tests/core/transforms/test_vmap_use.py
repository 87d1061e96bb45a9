"""``vmap``: wrong use raises functorch's errors, and levels are kept apart in time, threads and modes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, vmap
from candelabra.func import grad
from candelabra.library import Layer

from tests.core.transforms.comparing import Cube, tensor


def _identity(x: Any) -> Any:
    return x


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no inputs": (lambda: vmap(_identity)(), ValueError, "got no inputs. Maybe you forgot to add inputs"),
    "in_dims of another type": (
        lambda: vmap(_identity, [0])(cd.ones(2)), ValueError, "expected `in_dims` to be int or a .potentially nested."
    ),
    "another structure": (
        lambda: vmap(_identity, (0, 0))(cd.ones(2)), ValueError, "in_dims is not compatible with the structure of"
    ),
    "a dim that is a float": (
        lambda: vmap(_identity, (1.5,))(cd.ones(2)), ValueError, "in_dim must be either an integer dimension or None"
    ),
    "an input that is no tensor": (
        lambda: vmap(_identity)(3), ValueError, "Got in_dim=0 for an input but the input is of type <class 'int'>"
    ),
    "a dim out of range": (
        lambda: vmap(_identity, 1)(cd.ones(2)), ValueError, "is a Tensor of dimensionality 1 so expected in_dim to"
    ),
    "nothing to map": (
        lambda: vmap(_identity, None)(cd.ones(2)), ValueError, "expected `in_dims` to be int or"
    ),
    "all None": (
        lambda: vmap(_identity, (None,))(cd.ones(2)), ValueError, "Expected at least one Tensor to vmap over"
    ),
    "different sizes": (
        lambda: vmap(lambda a, b: a)(cd.ones(2), cd.ones(3)), ValueError,
        r"Expected all tensors to have the same size in the mapped dimension, got sizes \[2, 3\]",
    ),
    "an output that is no tensor": (
        lambda: vmap(lambda a: 3)(cd.ones(2)), ValueError, "must only return Tensors, got type <class 'int'>"
    ),
    "out_dims None for a batched output": (
        lambda: vmap(_identity, out_dims=None)(cd.ones(2)), ValueError, "can not return a BatchedTensor when out_dim is"
    ),
    "out_dims of another structure": (
        lambda: vmap(_identity, out_dims=(0, 0))(cd.ones(2)), ValueError, "out_dims is not compatible with the"
    ),
    "out_dims of another type": (
        lambda: vmap(_identity, out_dims="x")(cd.ones(2)), ValueError, "`out_dims` must be an int, None or a python"
    ),
    "out_dims out of range": (
        lambda: vmap(_identity, out_dims=3)(cd.ones(2)), IndexError, "Dimension out of range"
    ),
    "randomness": (lambda: vmap(_identity, randomness="some"), RuntimeError, "Only allowed values for randomness are"),
    "chunk_size": (lambda: vmap(_identity, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
    "item": (lambda: vmap(lambda a: cd.tensor(a.item()))(cd.ones(2)), RuntimeError, "looks like you're calling .item"),
    "numpy": (lambda: vmap(lambda a: a.numpy())(cd.ones(2)), RuntimeError, r"calling .item\(\) or .numpy\(\)"),
    "numpy of a copy": (
        lambda: vmap(lambda a: a.numpy(force=True))(cd.ones(2)), RuntimeError, r"calling .item\(\) or .numpy\(\)"
    ),
    "control flow": (
        lambda: vmap(lambda a: a if a > 0 else -a)(cd.ones(2)), RuntimeError, "data-dependent control flow"
    ),
    "a result of dynamic shape": (
        lambda: vmap(lambda a: a.nonzero())(cd.ones(2, 3)), RuntimeError, "batching operators that can output dynamic"
    ),
    "a batched mask": (
        lambda: vmap(lambda a: a.expand(2, 3)[a > 0, 0])(cd.ones(2, 3)), (RuntimeError, IndexError), "mask"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(name: str) -> None:
    """The errors are functorch's."""
    call, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("use", [lambda a: a.item(), lambda a: bool(a > 0), lambda a: a.expand(2).nonzero()])
def test_errors_name_the_line_that_reads_values(use: Callable[[Tensor], Any]) -> None:
    """The message ends with file, line and source of the user's function."""
    with pytest.raises(RuntimeError, match="vmap: ") as error:
        vmap(lambda a: use(a))(cd.ones(2))
    location, source = str(error.value).splitlines()[-2:]
    assert location.startswith(f'  File "{__file__}", line {use.__code__.co_firstlineno}, in <lambda>')
    assert source.startswith("    @pytest.mark.parametrize")


def disabling(a: Tensor) -> Tensor:
    """Call ``set_grad_enabled`` as a function."""
    cd.set_grad_enabled(False)
    return a.square().sum()


def disabling_in_a_block(a: Tensor) -> Tensor:
    """Use ``set_grad_enabled`` as a context manager."""
    with cd.set_grad_enabled(False):
        constant = a.square().sum()
    return constant + a.sum()


@pytest.mark.parametrize(("f", "slope"), [(disabling, 0), (disabling_in_a_block, 1)])
def test_set_grad_enabled_affects_all_levels(
    f: Callable[[Tensor], Tensor], slope: int, rng: np.random.Generator
) -> None:
    """Until the transformed function ends, nothing is recorded on any level; as a block, until the block ends."""
    x = cd.tensor(rng.standard_normal((2, 3)))
    for found in (vmap(grad(f))(x), grad(lambda x: vmap(f)(x).sum())(x)):
        assert found.eq(slope).all()
    assert cd.is_grad_enabled()


def test_a_batched_value_cannot_be_written_into_a_shared_tensor() -> None:
    """functorch's error; the shared tensor does not change."""
    target = cd.zeros(3)
    with pytest.raises(RuntimeError, match=r"vmap: inplace arithmetic.*is not possible because there exists a Tensor"):
        vmap(lambda a: target.add_(a))(cd.ones(2, 3))
    assert target.tolist() == [0, 0, 0]
    vmap(lambda a: target.add_(1) + a)(cd.ones(2, 3))
    assert target.tolist() == [1, 1, 1]


def test_a_tensor_must_not_outlive_its_block() -> None:
    """The error says so, also inside a later call of vmap."""
    kept: list[Tensor] = []
    vmap(lambda a: kept.append(a) or a)(cd.ones(2, 3))
    with pytest.raises(RuntimeError, match="used after the function that vmap transforms had returned"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="used after the function that vmap transforms had returned"):
        vmap(lambda a: a + kept[0])(cd.ones(2, 3))


def test_an_operator_without_a_rule_runs_in_a_loop_with_one_warning(rng: np.random.Generator) -> None:
    """The results are right; the warning names the operator once."""
    from candelabra._transforms import looping
    from candelabra._transforms.batching_kernels import with_frame
    from candelabra.library import OPERATORS

    op = OPERATORS["cumprod"]
    kernel = with_frame(op, looping.looped(op))
    from candelabra._transforms.batching import VMAP

    table = VMAP.at(1).kernels
    before = table.get("cumprod")
    looping.counts.pop("cumprod", None)
    dict.__setitem__(table, "cumprod", kernel)
    op.clear()
    try:
        x = tensor(rng, 5, 3)
        with pytest.warns(UserWarning, match="vmap has no batching rule for cumprod"):
            found = vmap(lambda a: a.cumprod(0))(x)
        vmap(lambda a: a.cumprod(0))(x)
        assert cd.allclose(found, x.cumprod(1))
        assert looping.counts["cumprod"] == 2
    finally:
        dict.__setitem__(table, "cumprod", before)
        op.clear()


def test_threads_use_the_same_depth(rng: np.random.Generator) -> None:
    """Each thread has levels of its own. A tensor of another thread's level is refused."""
    x = tensor(rng, 8, 3)
    inside, other = threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
    results: dict[int, Tensor] = {}
    held: list[Tensor] = []
    errors: list[str] = []

    def run(number: int) -> None:
        def f(a: Tensor) -> Tensor:
            inside.wait()
            if number == 0:
                held.append(a)
            other.wait()
            if number == 1:
                with pytest.raises(RuntimeError, match="two calls of vmap were combined") as caught:
                    _ = a + held[0]
                errors.append(str(caught.value))
            inside.wait()
            return grad(lambda b: (b * (number + 1)).square().sum())(a)

        results[number] = vmap(f)(x)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cd.allclose(results[0], x * 2)
    assert cd.allclose(results[1], x * 8)
    assert len(errors) == 1


def test_a_thread_without_levels_creates_no_tensor_on_one() -> None:
    """A factory that follows a tensor of another thread's level says what is wrong."""
    errors: list[str] = []

    def f(a: Tensor) -> Tensor:
        def run() -> None:
            with pytest.raises(RuntimeError, match=r"a tensor of a function transform .level 1. was used in another"):
                cd.zeros_like(a)
            errors.append("refused")

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return a

    vmap(f)(cd.ones(2, 3))
    assert errors == ["refused"]


def test_a_tensor_of_an_inner_level_is_refused_outside_of_it() -> None:
    """A level cannot adopt a tensor of a level that has replaced it at its depth."""
    kept: list[Tensor] = []
    vmap(vmap(lambda a: kept.append(a) or a))(cd.ones(2, 3))
    with pytest.raises(RuntimeError, match="used after the function that vmap transforms had returned"):
        vmap(lambda a: a + kept[0])(cd.ones(2, 3))


def test_custom_functions_and_hooks(rng: np.random.Generator) -> None:
    """An autograd.Function runs on batched tensors, forward and backward; so do hooks of tensors."""
    x = tensor(rng, 5, 3)
    assert cd.allclose(vmap(Cube.apply)(x), x**3)
    assert cd.allclose(vmap(grad(lambda a: Cube.apply(a).sum()))(x), 3 * x**2)

    def hooked(a: Tensor) -> Tensor:
        b = a * 1
        b.register_hook(lambda g: g * 2)
        return b.sum()

    assert cd.allclose(vmap(grad(hooked))(x), cd.full_like(x, 2))


def test_modes_do_not_leak(rng: np.random.Generator) -> None:
    """An exception inside leaves all levels, and restores the modes."""
    from candelabra._dispatch.levels import active_frames
    from candelabra.library import state

    def fail(a: Tensor) -> Tensor:
        with cd.no_grad():
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        vmap(vmap(fail))(tensor(rng, 2, 3))
    assert state.bits == 0
    assert active_frames() == []
    x = tensor(rng, 3).requires_grad_()
    (g,) = cd.autograd.grad(vmap(lambda a: a * a)(x).sum(), x)
    assert cd.allclose(g, 2 * x)


def test_two_transforms_of_two_threads_are_not_mixed() -> None:
    """Tensors of different transforms at one depth belong to different threads."""
    from candelabra.library import Frame, Transform

    class Nothing(Transform):
        name = "nothing"

        def copy_(self, destination: Any, source: Any) -> Any:
            return destination

    errors: list[str] = []

    def f(a: Tensor) -> Tensor:
        def run() -> None:
            with (
                Frame(Nothing()) as frame,
                pytest.raises(RuntimeError, match=r"a tensor of \w+ .level 1. was used in a function that \w+ trans"),
            ):
                _ = frame.adopt(cd.ones(3)) + a
            errors.append("refused")

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return a

    vmap(f)(cd.ones(2, 3))
    assert errors == ["refused"]


def test_writes_in_place_need_no_copy(rng: np.random.Generator) -> None:
    """A pointwise operator writes to the memory of all examples; smaller ranks and numbers broadcast to it."""
    names: list[str] = []

    def note(op: Any, next: Callable[..., Any], *args: Any) -> Any:
        names.append(op.name)
        return next(*args)

    def written(a: Tensor, b: Tensor, shared: Tensor) -> Tensor:
        out = a.clone()
        out.mul_(2).add_(b, alpha=3).sub_(shared).clamp_(min=-1)
        out[0].neg_()
        return out

    x, y, shared = tensor(rng, 4, 2, 3), tensor(rng, 4, 3), tensor(rng, 2, 1)
    expected = cd.stack([written(a, b, shared) for a, b in zip(x, y, strict=True)])
    layer = Layer("noted", note)
    try:
        with layer:
            found = vmap(written, (0, 0, None))(x, y, shared)
    finally:
        layer.remove()
    assert cd.allclose(found, expected)
    assert {"mul", "clamp"} <= set(names)
    assert "copied" not in names


def test_writes_in_place_that_do_not_fit_raise(rng: np.random.Generator) -> None:
    """A result of a larger shape than its target raises, as without vmap."""
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        vmap(lambda a, b: a.add_(b))(tensor(rng, 2, 3), tensor(rng, 2, 4, 3))

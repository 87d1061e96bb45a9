"""Functionality layers: plugins that run between a call and its kernel."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra._dispatch.layers import Layer, _layers
from candelabra._keys import LAYER_LIMIT


@pytest.fixture
def counter() -> Iterator[tuple[Layer, Counter[str]]]:
    """Return a profiler that counts operators by name."""
    seen: Counter[str] = Counter()

    def handler(op: Any, next: Callable[..., Any], *args: Any) -> Any:
        seen[op.name] += 1
        return next(*args)

    layer = Layer("counter", handler)
    yield layer, seen
    layer.remove()


def test_profiler_sees_operators_only_while_it_is_on(counter: tuple[Layer, Counter[str]]) -> None:
    """Inside `with layer:` the handler gets each operator once, outside none; results are the same."""
    layer, seen = counter
    x = cd.ones(2)
    with layer:
        y = x * 3 + x
    _ = x * 3
    assert y.tolist() == [4, 4]
    assert seen == {"mul": 1, "add": 1}


def test_gradients_pass_below_a_layer(counter: tuple[Layer, Counter[str]]) -> None:
    """A call through a layer is recorded too, and the handler gets in-place forms."""
    layer, seen = counter
    x = cd.ones(2, requires_grad=True)
    with layer:
        y = x * 2
        y.add_(1)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]
    assert seen["mul"] == 1
    assert seen["add"] >= 1


def test_handler_may_answer_itself(counter: tuple[Layer, Counter[str]]) -> None:
    """A handler of one operator replaces its result; the general handler gets all other operators."""
    layer, seen = counter
    layer.register("mul", lambda op, next, *args: next(*args) + 100)
    x = cd.ones(2)
    with layer:
        assert (x * 2).tolist() == [102, 102]
        _ = x - 1
    assert seen["mul"] == 0
    assert seen["sub"] == 1


def test_handler_runs_with_its_own_layer_off(counter: tuple[Layer, Counter[str]]) -> None:
    """Calls of a handler do not reach it again, also after it raised."""
    layer, seen = counter

    def fails(op: Any, next: Callable[..., Any], *args: Any) -> Any:
        _ = args[0] + 1
        raise ValueError("enough")

    layer.register("mul", fails)
    x = cd.ones(2)
    with layer:
        with pytest.raises(ValueError, match="enough"):
            _ = x * 2
        _ = x - 1
    assert seen == {"sub": 1}


def test_tensor_can_carry_a_layer(counter: tuple[Layer, Counter[str]]) -> None:
    """A layer's bit in a tensor's keys routes the tensor's operators through the layer without `with`."""
    layer, seen = counter
    x = cd.ones(2)
    x._keys |= layer.bit
    y = x * 2
    assert seen == {"mul": 1}
    assert y.tolist() == [2, 2]


def test_two_layers_nest() -> None:
    """With two layers enabled, the later one runs first and its `next` is the earlier."""
    order: list[str] = []

    def recorded(name: str) -> Layer:
        def handler(op: Any, next: Callable[..., Any], *args: Any) -> Any:
            order.append(name)
            return next(*args)

        return Layer(name, handler)

    first, second = recorded("first"), recorded("second")
    try:
        x = cd.ones(1)
        with first, second:
            _ = x * 2
        assert order == ["second", "first"]
    finally:
        first.remove()
        second.remove()


def test_layer_is_on_in_one_thread_only(counter: tuple[Layer, Counter[str]]) -> None:
    """`with layer:` in one thread does not affect calls in another."""
    layer, seen = counter
    x = cd.ones(1)
    with layer:
        other = threading.Thread(target=lambda: x * 2)
        other.start()
        other.join()
    assert seen == {}


def test_number_of_layers_is_bounded() -> None:
    """The error has the maximum number of layers, and removing a layer allows another one."""
    layers: list[Layer] = []
    try:
        layers += [Layer(f"layer {i}") for i in range(LAYER_LIMIT - len(_layers))]
        with pytest.raises(
            RuntimeError, match=f"cannot create layer 'one more': the maximum of {LAYER_LIMIT} layers exists already"
        ):
            Layer("one more")
    finally:
        for layer in layers:
            layer.remove()
    Layer("again").remove()

"""``__torch_function__``: subclasses of Tensor, other objects, function modes, and the functions of ``overrides``."""

from __future__ import annotations

import copy
import re
from typing import Any, ClassVar

import candelabra as cd
import pytest
from candelabra import overrides


class Marked(cd.Tensor):
    """A subclass with the inherited handler."""


class Logged(cd.Tensor):
    """A subclass that records the calls that it handles."""

    log: ClassVar[list[Any]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append((func.__name__, types, len(args), dict(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs)


class Handler:
    """An object that is no tensor and handles calls of operators."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, types, len(args), kwargs


class Refusing:
    """An object that handles no call."""

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        return NotImplemented


def marked(*values: float) -> Any:
    """Return a tensor of the subclass."""
    return cd.tensor([float(v) for v in values]).as_subclass(Marked)


# -- subclasses -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: cd.ones(3) * x,
        lambda x: x[1:],
        lambda x: x[x > 0],
        lambda x: x.sum(),
        lambda x: cd.cat([cd.ones(1), x]),
        lambda x: x.max(0).values,
        lambda x: x.unbind()[1],
        lambda x: x.to(cd.float64),
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.requires_grad_(),
        lambda x: x.mul_(2),
        lambda x: cd.zeros_like(x),
        lambda x: x.new_ones(2),
        lambda x: cd.where(x > 1, x, 0),
        lambda x: copy.deepcopy(x),
        lambda x: cd.einsum("i,i->", x, x),
        lambda x: next(iter(x)),
        lambda x: x.view(3, 1).T,
    ],
)
def test_results_of_operators_have_the_class_of_the_argument(call: Any) -> None:
    """The values are those of a plain tensor, and the class is the subclass."""
    result = call(marked(1, 2, 3))
    assert type(result) is Marked
    assert result.tolist() == call(cd.tensor([1.0, 2, 3])).tolist()


def test_gradients_of_a_subclass_are_plain_tensors() -> None:
    """The backward pass treats saved subclasses as plain tensors, as PyTorch's does."""
    x = marked(1, 2).requires_grad_()
    y = (x * x).sum()
    assert type(y) is Marked
    y.backward()
    assert type(x.grad) is cd.Tensor
    assert x.grad.tolist() == [2, 4]
    (g,) = cd.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad.tolist() == [8, 16]


def test_views_of_a_subclass_follow_writes_to_their_base() -> None:
    """A view keeps its class and gets the history of an in-place write to its base."""
    base = marked(1, 2, 3).clone()
    view = base[:2]
    w = cd.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base.mul_(w)
    assert type(view) is Marked
    assert view.tolist() == [1, 4]
    view.sum().backward()
    assert w.grad.tolist() == [1, 2, 0]
    assert marked(1, 2, 3).resize_(1, 3).shape == (1, 3)


def test_the_handler_gets_the_function_and_the_arguments_that_differ_from_defaults() -> None:
    """Arguments are passed by position, and by name after one that has its default."""
    x = cd.ones(2, 2).as_subclass(Logged)
    Logged.log.clear()
    x.add_(1)
    x.sum()
    cd.add(x, x, alpha=2)
    cd.mean(x, 0, dtype=cd.float64)
    x.std(keepdim=True)
    types = (Logged,)
    assert Logged.log == [
        ("add_", types, 2, {}),
        ("sum", types, 1, {}),
        ("add", types, 2, {"alpha": 2}),
        ("mean", types, 2, {"dtype": cd.float64}),
        ("std", types, 1, {"keepdim": True}),
    ]


def test_the_function_is_the_public_one() -> None:
    """A handler may compare func with functions and methods, also for members of overload sets."""
    seen: list[Any] = []

    class Watching(cd.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = cd.ones(2).as_subclass(Watching)
    x + 1
    x.exp_()
    x.max(0)
    assert seen == [cd.add, cd.Tensor.exp_, cd.max]


def test_subclasses_come_before_their_bases() -> None:
    """The most derived class handles the call; classes that are not related refuse it."""

    class Derived(Marked):
        pass

    class Other(cd.Tensor):
        pass

    assert type(marked(1) + cd.ones(1).as_subclass(Derived)) is Derived
    text = "Multiple dispatch failed for 'candelabra.add'; all __torch_function__ handlers returned NotImplemented"
    with pytest.raises(TypeError, match=re.escape(text)):
        marked(1) + cd.ones(1).as_subclass(Other)


def test_a_disabled_block_treats_subclasses_as_tensors() -> None:
    """Inside DisableTorchFunctionSubclass results are plain tensors."""
    x = marked(1, 2)
    with overrides.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function((x,))
        assert type(x + 1) is cd.Tensor
        assert type(x.detach()) is cd.Tensor
        assert type(x.data) is cd.Tensor
        assert type(cd.zeros_like(x)) is cd.Tensor
    assert type(x.as_subclass(cd.Tensor) + 1) is cd.Tensor
    assert type(x + 1) is Marked


def test_gradients_of_a_leaf_with_another_class_arrive_in_the_leaf() -> None:
    """as_subclass of a leaf that requires grad is recorded, except under no_grad."""
    x = cd.ones(2, requires_grad=True)
    y = x.as_subclass(Marked)
    assert not y.is_leaf
    (y * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    with cd.no_grad():
        assert not x.as_subclass(Marked).requires_grad


def test_make_subclass_returns_a_leaf_over_the_same_memory() -> None:
    """Tensor._make_subclass serves constructors of users; the result has no history."""
    data = cd.ones(2, requires_grad=True) * 2
    x = cd.Tensor._make_subclass(Marked, data, True)
    assert type(x) is Marked
    assert x.is_leaf
    assert x.requires_grad
    assert x.data_ptr() == data.data_ptr()


def test_a_class_with_a_constructor_of_its_own_keeps_attributes() -> None:
    """Keyword arguments of __new__ do not disturb __init__; copies have the attributes, results do not."""

    class Tagged(cd.Tensor):
        tag: str

        def __new__(cls, data: Any, tag: str) -> Any:
            out: Any = cd.tensor(data).as_subclass(cls)
            out.tag = tag
            return out

    x = Tagged([1.0], tag="a")
    assert copy.deepcopy(x).tag == "a"
    assert not hasattr(x + 1, "tag")
    assert repr(x) == "Tagged([1.])"


def test_parameters_of_a_subclass_are_both() -> None:
    """Parameter(x) has the class of x, is registered by modules, and its results have the class."""
    p: Any = cd.nn.Parameter(marked(1, 2))
    assert type(p) is Marked
    assert isinstance(p, cd.nn.Parameter)
    assert not isinstance(marked(1), cd.nn.Parameter)
    assert p.requires_grad
    assert type(p * 2) is Marked
    m = cd.nn.Module()
    m.p = p
    assert list(m.parameters()) == [p]
    assert isinstance(copy.deepcopy(m).p, cd.nn.Parameter)
    assert type(cd.nn.Parameter(cd.ones(1)) * 2) is cd.Tensor

    class Losing(cd.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with overrides.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    text = "Creating a Parameter from an instance of type Losing requires that detach() returns an instance of the same"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        cd.nn.Parameter(cd.ones(1).as_subclass(Losing))


# -- objects that are no tensors --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda d: cd.add(d, 1), "add"),
        (lambda d: cd.ones(1) + d, "add"),
        (lambda d: cd.ones(1, 1) @ d, "matmul"),
        (lambda d: cd.mean(d), "mean"),
        (lambda d: cd.sum(d, 0), "sum"),
        (lambda d: cd.max(d, 0), "max"),
        (lambda d: cd.cat([cd.ones(1), d]), "cat"),
        (lambda d: cd.stack([d, d]), "stack"),
        (lambda d: cd.ones(1).add_(d), "add_"),
        (lambda d: cd.exp(d), "exp"),
        (lambda d: cd.gather(cd.ones(1), 0, d), "gather"),
        (lambda d: cd.masked_fill(cd.ones(1), d, 1), "masked_fill"),
        (lambda d: cd.nn.functional.linear(d, d), "linear"),
    ],
)
def test_other_objects_handle_calls_of_operators(call: Any, name: str) -> None:
    """An argument that defines __torch_function__ gets the call, whatever its position."""
    found, types, _, _ = call(Handler())
    assert (found, types) == (name, (Handler,))


@pytest.mark.parametrize("call", [lambda d: cd.exp(d), lambda d: cd.add(d, 1), lambda d: cd.cat([d])])
def test_an_object_that_refuses_is_an_error(call: Any) -> None:
    """If each handler returns NotImplemented, the error lists their classes."""
    with pytest.raises(TypeError, match=r"returned NotImplemented:\n\n  - tensor subclass <class '.*Refusing'>"):
        call(Refusing())


def test_objects_without_a_handler_are_errors_as_before() -> None:
    """An argument that is neither a tensor nor a handler is named."""
    with pytest.raises(TypeError, match=r"exp\(\): argument 'input' \(position 1\) must be Tensor, not object"):
        cd.exp(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected Tensor as element 1 in argument 'tensors', but got object"):
        cd.cat([cd.ones(1), object()])  # type: ignore[list-item]


# -- function modes ---------------------------------------------------------------------------------------------------
class Recording(overrides.TorchFunctionMode):
    """A mode that records the names of the operators."""

    def __init__(self, log: list[str], name: str) -> None:
        super().__init__()
        self.log, self.name = log, name

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.log.append(f"{self.name} {func.__name__}")
        return func(*args, **(kwargs or {}))


def test_function_modes_see_every_operator() -> None:
    """The innermost mode is called first, and then the mode outside it."""
    log: list[str] = []
    x = cd.ones(2, requires_grad=True)
    with Recording(log, "outer"), Recording(log, "inner"):
        assert overrides.has_torch_function(())
        y = x.exp().sum()
        with overrides.DisableTorchFunction():
            x.exp()
    y.backward()
    assert log == ["inner exp", "outer exp", "inner sum", "outer sum"]


class Multiplying(overrides.BaseTorchFunctionMode):
    """A mode that calls another function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(cd.mul if func is cd.Tensor.add else func, types, args, kwargs)


def test_a_mode_passes_on_to_its_base() -> None:
    """The base calls the function with the arguments, in compiled functions as well, outside and inside of the mode."""

    def f(x: cd.Tensor) -> cd.Tensor:
        return x + cd.sum(x, dim=0, keepdim=True)

    def within(x: cd.Tensor) -> cd.Tensor:
        with Multiplying():
            return f(x)

    x, compiled = cd.tensor([2.0, 3.0]), cd.compile(within, fullgraph=True)
    assert f(x).tolist() == [7, 8]
    assert [within(x).tolist(), *(compiled(x).tolist() for _ in range(2))] == [[10, 15]] * 3
    with Multiplying():
        assert cd.compile(f)(x).tolist() == [10, 15]


def test_a_mode_and_a_subclass_are_both_called() -> None:
    """The mode runs first, and calls the function, which the subclass handles."""
    log: list[str] = []
    with Recording(log, "mode"):
        result = marked(1) + 1
    assert log == ["mode add"]
    assert type(result) is Marked
    undefined = overrides.TorchFunctionMode()
    with pytest.raises(NotImplementedError, match="TorchFunctionMode must define __torch_function__"), undefined:
        cd.ones(1).exp()
    with pytest.raises(NotImplementedError, match="a subclass returns its bits"):
        overrides.TorchFunctionMode.__mro__[1]().__enter__()

    class Silent(overrides.TorchFunctionMode):
        def __torch_function__(self, *_: Any, **__: Any) -> Any:
            return NotImplemented

    x = cd.ones(1)
    with pytest.raises(TypeError, match="- mode object <"), Silent():
        x.exp()


# -- the functions of the module --------------------------------------------------------------------------------------
def test_functions_of_users_can_support_the_protocol() -> None:
    """has_torch_function and handle_torch_function, or the decorator, pass a call to the handler."""

    def plain(x: Any, y: int = 1) -> Any:
        if overrides.has_torch_function_unary(x):
            return overrides.handle_torch_function(plain, (x,), x, y=y)
        return "plain"

    assert plain(1) == "plain"
    assert plain(Handler(), y=3) == ("plain", (Handler,), 1, {"y": 3})

    @overrides.wrap_torch_function(lambda x: (x,))
    def wrapped(x: Any) -> Any:
        return "plain"

    assert wrapped(cd.ones(1)) == "plain"
    assert wrapped(Handler())[0] == "wrapped"
    assert overrides.has_torch_function_variadic(1, Handler())
    assert not overrides.has_torch_function([cd.ones(1), cd.nn.Parameter(cd.ones(1))])


def test_the_functions_that_can_be_overridden_are_listed() -> None:
    """Operators are overridable, other public functions are not; names are resolved both ways."""
    functions = overrides.get_overridable_functions()
    assert cd.add in functions[cd]
    assert cd.linalg.inv in functions[cd.linalg]
    assert cd.einsum in overrides.get_ignored_functions()
    assert cd.add not in overrides.get_ignored_functions()
    assert overrides.get_testing_overrides()[cd.add](1, 2) == -1
    assert overrides.resolve_name(cd.linalg.inv) == "candelabra.linalg.inv"
    assert overrides.resolve_name(print) is None
    assert overrides.is_tensor_method_or_property(cd.Tensor.add)
    assert not overrides.is_tensor_method_or_property(print)
    assert overrides.is_tensor_like(Handler())
    assert not overrides.is_tensor_like(3)

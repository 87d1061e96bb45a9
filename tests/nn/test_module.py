"""Modules: registration, members, casts, saving and loading."""

from __future__ import annotations

import copy
import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


class Affine(nn.Module):
    """A module with a parameter, two buffers and a child."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(cd.ones(2))
        self.register_buffer("mean", cd.zeros(2))
        self.register_buffer("scratch", cd.zeros(1), persistent=False)
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x * self.scale + self.mean)


class Scaled(nn.Module):
    """Returns its input times a number, for hooks."""

    def forward(self, x: Any, times: float = 2.0) -> Any:
        return x * times


# -- registration -----------------------------------------------------------------------------------------------------
def test_assignment_registers_parameters_buffers_and_modules() -> None:
    """Each kind of attribute is registered under its name."""
    m = Affine()
    assert [n for n, _ in m.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
    assert [n for n, _ in m.named_buffers()] == ["mean", "scratch"]
    assert [n for n, _ in m.named_modules()] == ["", "inner"]
    m.extra = nn.Buffer(cd.ones(3))
    assert "extra" in dict(m.named_buffers())
    assert "extra" in m.state_dict()


def test_assigning_another_kind_moves_the_name() -> None:
    """A name of a parameter may be reassigned to a module, and is then not a parameter."""
    m = nn.Module()
    m.x = nn.Parameter(cd.ones(1))
    m.x = None
    assert m.x is None
    del m.x
    m.x = nn.Linear(1, 1)
    assert [n for n, _ in m.named_children()] == ["x"]
    m.x = nn.Parameter(cd.ones(1))
    assert [n for n, _ in m.named_children()] == []
    assert [n for n, _ in m.named_parameters()] == ["x"]


def test_a_parameter_replaces_a_plain_attribute() -> None:
    """A parameter that is assigned to a plain attribute replaces it."""
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(cd.ones(1))
    assert isinstance(m.x, nn.Parameter)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (lambda: nn.Parameter(cd.ones(1)), "parameters"),
        (lambda: nn.Identity(), "module"),
        (lambda: nn.Buffer(cd.ones(1)), "buffer"),
    ],
    ids=["parameter", "module", "buffer"],
)
def test_assigning_before_init_is_an_error(value: Any, kind: str) -> None:
    """The first assignment of a subclass without super().__init__() raises AttributeError."""

    class Forgetful(nn.Module):
        def __init__(self) -> None:
            self.member = value()

    with pytest.raises(AttributeError, match=re.escape(f"cannot assign {kind} before Module.__init__() call")):
        Forgetful()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("scale", "x", "cannot assign 'str' as parameter 'scale' (candelabra.nn.Parameter or None expected)"),
        ("inner", 3, "cannot assign 'int' as child module 'inner' (candelabra.nn.Module or None expected)"),
        ("mean", 3, "cannot assign 'int' as buffer 'mean' (candelabra.nn.Buffer, candelabra.Tensor or None expected)"),
    ],
)
def test_assigning_the_wrong_kind_to_a_registered_name_is_refused(name: str, value: Any, text: str) -> None:
    """A registered name accepts only its kind, or None, and otherwise keeps its value."""
    m = Affine()
    before = getattr(m, name)
    with pytest.raises(TypeError, match=re.escape(text)):
        setattr(m, name, value)
    assert getattr(m, name) is before


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.register_parameter("a.b", None), KeyError, 'parameter name can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, 'parameter name can\'t be empty string ""'),
        (lambda m: m.register_parameter(3, None), TypeError, "parameter name should be a string. Got int"),
        (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
        (
            lambda m: m.register_parameter("p", cd.ones(1)),
            TypeError,
            "object to parameter 'p' (candelabra.nn.Parameter or None required)",
        ),
        (
            lambda m: m.register_buffer("b", 3),
            TypeError,
            "cannot assign 'int' object to buffer 'b' (candelabra.Tensor or None required)",
        ),
        (lambda m: m.register_buffer("a.b", None), KeyError, 'buffer name can\'t contain "."'),
        (lambda m: m.add_module("a.b", None), KeyError, 'module name can\'t contain ".", got: a.b'),
        (lambda m: m.add_module("a", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.nothing, AttributeError, "'Affine' object has no attribute 'nothing'"),
        (lambda m: m.get_submodule("inner.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("inner.in_features"), AttributeError, "`in_features` is not an nn.Parameter"),
        (lambda m: m.get_parameter("inner.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (
            lambda m: m.to(cd.int64),
            TypeError,
            "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=",
        ),
        (lambda m: m.to(colour=1), TypeError, "to() got an unexpected keyword argument 'colour'"),
        (lambda m: m.to(cd.float32, "x"), TypeError, "to() received an invalid argument number 2: 'x'"),
        (lambda m: m.register_forward_hook(3), TypeError, "a hook must be callable, got int"),
        (lambda m: m.load_state_dict(3), TypeError, "Expected state_dict to be dict-like, got <class 'int'>."),
        (lambda m: nn.Module()(), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda m: m.get_extra_state(), RuntimeError, "Reached a code path in Module.get_extra_state()"),
        (lambda m: m.set_extra_state(1), RuntimeError, "Reached a code path in Module.set_extra_state()"),
        (lambda m: nn.Parameter([1.0]), TypeError, "Parameter() expects a Tensor or None, got list"),
        (
            lambda m: nn.Parameter(cd.ones(1, dtype=cd.int64)),
            RuntimeError,
            "only Tensors of floating point and complex dtype can require",
        ),
    ],
)
def test_misuse_raises_an_error_and_changes_nothing(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong call raises PyTorch's class of error with the reason, and does not change the module."""
    m = Affine()
    before = list(m.state_dict())
    with pytest.raises(error) as caught:
        call(m)
    assert text in str(caught.value.args[0])  # str() of a KeyError would quote its text
    assert list(m.state_dict()) == before


def test_a_computed_tensor_is_not_a_parameter() -> None:
    """A Parameter that is the result of an operator is an error."""
    p = nn.Parameter(cd.ones(1))
    m = nn.Module()
    leaf = nn.Parameter(cd.ones(1))
    with cd.enable_grad():
        p = (leaf * 2).as_subclass(nn.Parameter)
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'p'"):
        m.register_parameter("p", p)


# -- parameters -------------------------------------------------------------------------------------------------------
def test_results_of_operations_on_parameters_are_plain_tensors() -> None:
    """The results are Tensors and not Parameters."""
    p = nn.Parameter(cd.ones(2))
    assert p.requires_grad
    assert p.is_leaf
    assert type(p * 2) is cd.Tensor
    assert type(p.detach()) is cd.Tensor
    assert type(2 * p) is cd.Tensor
    assert type(p[0]) is cd.Tensor


def test_a_parameter_shares_memory_and_can_be_frozen() -> None:
    """A Parameter is the given tensor with another class."""
    t = cd.zeros(2)
    p = nn.Parameter(t, requires_grad=False)
    with cd.no_grad():
        p.add_(1)
    assert t.tolist() == [1, 1]
    assert not p.requires_grad


def test_a_parameter_over_a_view_survives_writes_to_the_base() -> None:
    """A write to the base does not change the history of a parameter from its view."""
    base = cd.zeros(3)
    p = nn.Parameter(base[:2])
    base.add_(1)
    assert p.requires_grad
    assert p.is_leaf
    assert p.tolist() == [1, 1]


def test_deepcopy_of_a_parameter_has_memory_of_its_own() -> None:
    """A copied parameter requires grad as the original does and shares nothing with it."""
    p = nn.Parameter(cd.ones(2))
    q = copy.deepcopy(p)
    with cd.no_grad():
        q.add_(1)
    assert isinstance(q, nn.Parameter)
    assert q.requires_grad
    assert p.tolist() == [1, 1]


def test_a_parameter_is_printed_as_one() -> None:
    """The representation begins with the class."""
    assert repr(nn.Parameter(cd.ones(2))).startswith("Parameter containing:\ntensor([1., 1.]")


# -- looking ----------------------------------------------------------------------------------------------------------
def test_shared_members_are_listed_once_unless_asked_for() -> None:
    """Tied weights come once, or once per name with remove_duplicate=False."""
    m = nn.Module()
    m.a = nn.Linear(2, 2, bias=False)
    m.b = nn.Linear(2, 2, bias=False)
    m.b.weight = m.a.weight
    m.c = m.a
    assert [n for n, _ in m.named_parameters()] == ["a.weight"]
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)] == ["a.weight", "b.weight", "c.weight"]
    assert [n for n, _ in m.named_children()] == ["a", "b"]
    assert len(list(m.modules())) == 3
    assert [n for n, _ in m.named_parameters(recurse=False)] == []
    assert [n for n, _ in m.named_parameters(prefix="net")] == ["net.a.weight"]


def test_members_are_found_by_path() -> None:
    """A dotted path leads to modules, parameters and buffers."""
    m = Affine()
    assert m.get_submodule("inner") is m.inner
    assert m.get_submodule("") is m
    assert m.get_parameter("inner.weight") is m.inner.weight
    assert m.get_buffer("mean") is m.mean
    assert "scale" in dir(m)


def test_apply_train_and_freeze_change_every_module() -> None:
    """apply, train and requires_grad_ change all descendants; apply calls children first."""
    m = Affine()
    seen: list[nn.Module] = []
    assert m.apply(seen.append) is m
    assert seen == [m.inner, m]
    m.eval()
    assert not m.inner.training
    m.train()
    assert m.inner.training
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())


def test_zero_grad_removes_or_zeroes() -> None:
    """Gradients become None, or zeros without history."""
    m = nn.Linear(2, 1)
    m(cd.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.tolist() == [[0, 0]]
    m.zero_grad()
    assert m.weight.grad is None


# -- moving -----------------------------------------------------------------------------------------------------------
def test_casting_keeps_the_parameter_objects() -> None:
    """to(dtype) replaces the memory of tensors and gradients, not the objects; integer buffers do not change."""
    m = Affine()
    m.register_buffer("count", cd.zeros(1, dtype=cd.int64))
    m(cd.ones(1, 2)).sum().backward()
    weight = m.inner.weight
    assert m.to(cd.float64) is m
    assert m.inner.weight is weight
    assert weight.dtype is cd.float64
    assert weight.grad.dtype is cd.float64
    assert m.mean.dtype is cd.float64
    assert m.count.dtype is cd.int64
    assert weight.requires_grad
    m(cd.ones(1, 2, dtype=cd.float64)).sum().backward()
    assert m.float().scale.dtype is cd.float32
    assert m.half().scale.dtype is cd.float16
    assert m.bfloat16().scale.dtype is cd.bfloat16
    assert m.double().scale.dtype is cd.float64
    assert m.to(cd.ones(1)).scale.dtype is cd.float32
    assert m.type(cd.float64).count.dtype is cd.float64


def test_training_goes_on_after_a_cast() -> None:
    """After a cast, the same parameters get gradients of the new dtype."""
    m = nn.Linear(2, 1).double()
    m(cd.ones(1, 2, dtype=cd.float64)).sum().backward()
    assert m.weight.grad.dtype is cd.float64


# -- state ------------------------------------------------------------------------------------------------------------
def test_state_dict_has_parameters_and_persistent_buffers() -> None:
    """The state has dotted paths as keys; its tensors are detached and share memory with the module."""
    m = Affine()
    state = m.state_dict()
    assert list(state) == ["scale", "mean", "inner.weight", "inner.bias"]
    assert not state["scale"].requires_grad
    with cd.no_grad():
        m.scale.add_(1)
    assert state["scale"].tolist() == [2, 2]
    assert m.state_dict(keep_vars=True)["scale"] is m.scale
    assert next(iter(m.state_dict(prefix="net."))) == "net.scale"


def test_load_state_dict_copies_values_into_the_parameters() -> None:
    """After loading, another module gives the same results, and keeps its own tensor objects."""
    a, b = Affine(), Affine()
    weight = b.inner.weight
    assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b.inner.weight is weight
    x = cd.randn(3, 2)
    assert a(x).tolist() == b(x).tolist()


def test_load_state_dict_lists_all_mismatches_and_changes_nothing() -> None:
    """One error names missing and unexpected keys and wrong sizes, and no value is copied."""
    m = Affine()
    before = m.scale.tolist()
    state = m.state_dict()
    del state["mean"]
    state["scale"] = cd.zeros(2)
    state["inner.weight"] = cd.zeros(3, 2)
    state["inner.bias"] = [0.0, 0.0]
    state["inner.extra"] = cd.zeros(1)
    text = (
        "Error(s) in loading state_dict for Affine:\n"
        '\tMissing key(s) in state_dict: "mean". \n'
        '\tUnexpected key(s) in state_dict: "inner.extra". \n'
        "\tsize mismatch for inner.weight: copying a param with shape candelabra.Size([3, 2]) from checkpoint, the "
        "shape in current model is candelabra.Size([2, 2]).\n"
        '\tWhile copying the parameter named "inner.bias", expected candelabra.Tensor or Tensor-like object from '
        "checkpoint but received <class 'list'>"
    )
    with pytest.raises(RuntimeError, match=re.escape(text)):
        m.load_state_dict(state)
    assert m.scale.tolist() == before


def test_loading_that_is_not_strict_reports_the_keys() -> None:
    """strict=False loads the keys that match and returns the others."""
    m = Affine()
    found = m.load_state_dict({"scale": cd.zeros(2), "x.y": cd.zeros(1)}, strict=False)
    assert found.missing_keys == ["mean", "inner.weight", "inner.bias"]
    assert found.unexpected_keys == ["x.y"]
    assert repr(found).startswith("_IncompatibleKeys(missing_keys=['mean'")
    assert m.scale.tolist() == [0, 0]


def test_assign_takes_the_tensors_themselves() -> None:
    """With assign=True the dtype and the memory are those of the state, and parameters remain parameters."""
    m = nn.Linear(2, 1)
    given = {"weight": cd.ones(1, 2, dtype=cd.float64), "bias": cd.zeros(1, dtype=cd.float64)}
    m.load_state_dict(given, assign=True)
    assert isinstance(m.weight, nn.Parameter)
    assert m.weight.dtype is cd.float64
    with cd.no_grad():
        given["weight"].add_(1)
    assert m.weight.tolist() == [[2, 2]]


def test_extra_state_is_part_of_the_state() -> None:
    """A module may add any object to its state, under _extra_state."""

    class Counting(nn.Module):
        count = 0

        def get_extra_state(self) -> Any:
            return self.count

        def set_extra_state(self, state: Any) -> None:
            self.count = state

    a, b = Counting(), Counting()
    a.count = 7
    b.load_state_dict(a.state_dict())
    assert b.count == 7
    with pytest.raises(RuntimeError, match=re.escape('Missing key(s) in state_dict: "_extra_state". ')):
        b.load_state_dict({})
    with pytest.raises(RuntimeError, match=re.escape('Unexpected key(s) in state_dict: "_extra_state". ')):
        nn.Module().load_state_dict(a.state_dict())


def test_deepcopy_and_setstate_return_working_modules() -> None:
    """A copy gives the same results with its own tensors, and a state without hooks gets empty ones."""
    m = Affine()
    other = copy.deepcopy(m)
    x = cd.ones(1, 2)
    assert other(x).tolist() == m(x).tolist()
    with cd.no_grad():
        other.scale.zero_()
    assert m.scale.tolist() == [1, 1]
    bare = nn.Linear.__new__(nn.Linear)
    bare.__setstate__({k: v for k, v in nn.Linear(2, 2).__dict__.items() if "hooks" not in k})
    assert bare(x).shape == (1, 2)


# -- showing ----------------------------------------------------------------------------------------------------------
def test_repr_is_that_of_pytorch() -> None:
    """Nested modules are printed with indentation under their names."""
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Dropout(0.5)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Dropout(p=0.5, inplace=False)\n"
        "  )\n"
        ")"
    )


def test_options_of_factory_functions() -> None:
    """Modules of programs pass device and dtype on, also where a name is taken, and refuse other options."""
    options = {"device": "cpu", "factory_kwargs": {"dtype": cd.float64}}
    assert nn.factory_kwargs(options) == {"device": "cpu", "dtype": cd.float64}
    assert options == {"device": "cpu", "factory_kwargs": {"dtype": cd.float64}}
    assert nn.factory_kwargs(None) == {}
    with pytest.raises(TypeError, match=r"unexpected kwargs {'bias'}"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match=r"dtype specified twice, in \*\*kwargs and in factory_kwargs"):
        nn.factory_kwargs({"dtype": cd.float32, "factory_kwargs": {"dtype": cd.float64}})

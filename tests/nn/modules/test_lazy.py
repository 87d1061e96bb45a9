"""Lazy modules: what they become, states before and after, moving, copies, and what uninitialized tensors refuse."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251 - modules of users are pickled
import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn import functional as F
from candelabra.nn.modules.lazy import LazyModuleMixin
from candelabra.nn.parameter import Buffer, UninitializedBuffer, UninitializedParameter, is_lazy

LAZY = {
    "Linear": ((3,), (2, 5), (5, 3)),
    "Conv1d": ((4, 3), (2, 5, 7), (5, 4, 3)),
    "Conv2d": ((4, 3), (2, 5, 7, 7), (5, 4, 3)),
    "Conv3d": ((4, 3), (2, 5, 4, 4, 4), (5, 4, 3)),
    "ConvTranspose1d": ((4, 3), (2, 5, 7), (5, 4, 3)),
    "ConvTranspose2d": ((4, 3), (2, 5, 7, 7), (5, 4, 3)),
    "ConvTranspose3d": ((4, 3), (2, 5, 3, 3, 3), (5, 4, 3)),
    "BatchNorm1d": ((), (2, 5, 3), (5,)),
    "BatchNorm2d": ((), (2, 5, 3, 3), (5,)),
    "BatchNorm3d": ((), (2, 5, 2, 2, 2), (5,)),
    "InstanceNorm1d": ((), (2, 5, 3), (5,)),
    "InstanceNorm2d": ((), (2, 5, 3, 3), (5,)),
    "InstanceNorm3d": ((), (2, 5, 2, 2, 2), (5,)),
}
"""By the class that it becomes: the arguments of the lazy class, a shape of inputs, the arguments of that class."""


def lazy(name: str) -> Any:
    """Return a lazy module that has all parameters and buffers."""
    options = {"affine": True, "track_running_stats": True} if "Norm" in name else {}
    return getattr(nn, f"Lazy{name}")(*LAZY[name][0], **options)


def ordinary(name: str) -> Any:
    """Return the module that the lazy one becomes."""
    options = {"affine": True, "track_running_stats": True} if "Norm" in name else {}
    return getattr(nn, name)(*LAZY[name][2], **options)


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_module_becomes_the_ordinary_one_at_its_first_call(name: str) -> None:
    """After a call, class, printed form, state and attributes are those of the ordinary module, and no hook is left."""
    module, expected = lazy(name), ordinary(name)
    assert (type(module).cls_to_become, module.has_uninitialized_params()) == (type(expected), True)
    assert repr(module).startswith(f"Lazy{name}(")
    assert list(module.state_dict()) == list(expected.state_dict())
    assert all(is_lazy(tensor) for tensor in module.parameters())
    out = module(cd.randn(*LAZY[name][1]))
    assert type(module) is type(expected)
    assert repr(module) == repr(expected)
    assert [(k, v.shape) for k, v in module.state_dict().items()] == [
        (k, v.shape) for k, v in expected.state_dict().items()
    ]
    assert [type(p) for p in module.parameters()] == [nn.Parameter] * len(list(module.parameters()))
    assert not module._forward_pre_hooks
    assert not module._load_state_dict_pre_hooks
    out.sum().backward()
    assert all(p.grad is not None for p in module.parameters())


@pytest.mark.parametrize("name", LAZY)
def test_a_loaded_state_gives_the_shapes(name: str) -> None:
    """A state of an ordinary module loads into a lazy one, whose first call then keeps these values."""
    module, source = lazy(name), ordinary(name)
    for tensor in (*source.parameters(), *source.buffers()):
        tensor.data.fill_(2)
    module.load_state_dict(source.state_dict())
    assert not module.has_uninitialized_params()
    module.eval()(cd.randn(*LAZY[name][1]))
    assert type(module) is type(source)
    assert repr(module) == repr(source)
    assert all(float(t.min()) == float(t.max()) == 2 for t in module.state_dict().values())


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "BatchNorm1d"])
def test_a_lazy_state_loads_into_a_lazy_module_only(name: str) -> None:
    """A state without shapes leaves a lazy module lazy, and raises RuntimeError for an ordinary one."""
    module = lazy(name)
    assert not module.load_state_dict(lazy(name).state_dict()).missing_keys
    assert module.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        ordinary(name).load_state_dict(lazy(name).state_dict())


@pytest.mark.parametrize("name", ["Linear", "ConvTranspose1d", "BatchNorm2d"])
def test_lazy_modules_move_and_copy_before_their_first_call(name: str) -> None:
    """A dtype, a device, a deep copy and a pickled one hold; the copies become ordinary on their own."""
    module = lazy(name).double()
    copied, stored = copy.deepcopy(module), pickle.loads(pickle.dumps(lazy(name)))  # noqa: S301
    x = cd.randn(*LAZY[name][1], dtype=cd.float64)
    module(x)
    assert (module.weight.dtype, copied.has_uninitialized_params()) == (cd.float64, True)
    copied(x), stored(x.float())
    assert (copied.weight.dtype, stored.weight.dtype) == (cd.float64, cd.float32)
    assert copied.weight is not module.weight
    away = lazy(name).to("meta")
    assert away.weight.device.type == "meta"
    assert away.eval()(x.float().to("meta")).device.type == "meta"
    other = lazy(name)
    other.bias = None
    other(x.float())
    assert other.bias is None


def test_lazy_modules_take_device_and_dtype() -> None:
    """The factory arguments hold for the parameters that are made later."""
    layer = nn.LazyConv1d(2, 3, bias=False, dtype=cd.float64)
    layer(cd.ones(1, 4, 5, dtype=cd.float64))
    assert layer.weight.dtype is cd.float64
    norm = nn.LazyBatchNorm1d(affine=False, dtype=cd.float64)
    assert list(norm.state_dict()) == ["running_mean", "running_var", "num_batches_tracked"]
    norm(cd.ones(2, 3, dtype=cd.float64))
    assert (norm.running_var.dtype, norm.num_features) == (cd.float64, 3)
    assert list(nn.LazyLinear(2, bias=False).state_dict()) == ["weight"]


def test_an_optimizer_made_after_the_first_call_trains() -> None:
    """A network of lazy modules learns once its shapes are known; inputs without a batch dim give channels too."""
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
    x = cd.randn(8, 2, 4, 4)
    net(x)
    optimizer = cd.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = ((net(x) - 1) ** 2).mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0]
    layer = nn.LazyConv2d(4, 3)
    layer(cd.ones(5, 4, 4))
    assert layer.in_channels == 5


def test_modules_of_users_are_lazy_too() -> None:
    """A subclass of LazyModuleMixin gets the arguments of forward, and may keep its class."""

    class Scale(LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = UninitializedParameter()
            self.offset = UninitializedBuffer()

        def initialize_parameters(self, x: Any, *, offset: float) -> None:
            if self.has_uninitialized_params():
                self.scale.materialize(x.shape[-1:])
                self.offset.materialize(x.shape[-1:])
                self.scale.data.fill_(3)
                self.offset.fill_(offset)

        def forward(self, x: Any, *, offset: float) -> Any:
            return x * self.scale + self.offset

    module = Scale()
    assert list(module.state_dict()) == ["scale", "offset"]
    assert module(cd.ones(2), offset=0.5).tolist() == [3.5, 3.5]
    assert type(module) is Scale
    assert type(module.offset) is cd.Tensor
    assert not module._forward_pre_hooks


def test_what_initialize_parameters_must_do() -> None:
    """A lazy class must define it, and it must leave nothing uninitialized."""

    class Without(LazyModuleMixin, nn.Module):
        pass

    class Idle(LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = UninitializedParameter()

        def initialize_parameters(self, x: Any) -> None:
            pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Without"):
        Without()(1)
    with pytest.raises(RuntimeError, match="module Idle has not been fully initialized"):
        Idle()(1)
    with pytest.raises(RuntimeError, match="Modules with uninitialized parameters can't be used with `DataParallel`"):
        Idle()._replicate_for_data_parallel()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: nn.LazyConv2d(4, 3)(cd.ones(2, 3)), RuntimeError,
            "Expected 3D (unbatched) or 4D (batched) input to LazyConv2d, but got input of size: "
            "candelabra.Size([2, 3])",
        ),
        (
            lambda: nn.LazyConv2d(4, 3, groups=2)(cd.ones(1, 3, 4, 4)), ValueError,
            "in_channels must be divisible by groups",
        ),
        (
            lambda: nn.LazyConvTranspose1d(4, 3, padding_mode="reflect"), ValueError,
            'Only "zeros" padding mode is supported for LazyConvTranspose1d',
        ),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_refused(call: Any, error: type[Exception], text: str) -> None:
    """Wrong numbers of dims and of channels raise at the first call."""
    with pytest.raises(error, match=re.escape(text)):
        call()


# -- uninitialized tensors --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda p: p + 1, "add"),
        (lambda p: 1 - p, "sub"),
        (lambda p: cd.ones(2) * p, "mul"),
        (lambda p: p.sum(), "sum"),
        (lambda p: cd.cat([cd.ones(2), p]), "cat"),
        (lambda p: p[0], "basic_index"),
        (lambda p: F.linear(cd.ones(2, 2), p), "linear"),
        (lambda p: p.numel(), "Tensor.numel"),
        (lambda p: p.detach(), "Tensor.detach"),
        (lambda p: p.copy_(cd.ones(2)), "Tensor.copy_"),
        (len, "Tensor.__len__"),
    ],
)
@pytest.mark.parametrize("kind", [UninitializedParameter, UninitializedBuffer])
def test_computing_with_an_uninitialized_tensor_names_the_operator(kind: Any, call: Any, name: str) -> None:
    """Operators and methods that need a shape raise ValueError, which says what to do."""
    text = (
        f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a `LazyModule` "
        f"or explicitly manipulating `candelabra.nn.parameter.{kind.__name__}` objects."
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        call(kind())


def test_an_uninitialized_tensor_has_a_dtype_and_a_device() -> None:
    """Everything but the shape is known, and can be changed; materialize gives the rest."""
    parameter, buffer = UninitializedParameter(dtype=cd.float64), UninitializedBuffer(persistent=False)
    assert (parameter.dtype, parameter.requires_grad, parameter.is_leaf, parameter.grad) == (
        cd.float64, True, True, None,
    )  # fmt: skip
    assert repr(parameter) == "<UninitializedParameter>"
    assert isinstance(buffer, Buffer)
    assert (buffer.persistent, buffer.requires_grad) == (False, False)
    assert parameter.half().dtype is cd.float16
    assert not is_lazy(parameter.to(cd.float32))
    assert parameter.copy_(UninitializedParameter()) is parameter
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        parameter.shape  # noqa: B018
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter or buffer"):
        parameter.share_memory_()
    memo: dict[int, Any] = {}
    assert copy.deepcopy(parameter, memo) is copy.deepcopy(parameter, memo)
    parameter.materialize((2, 3), dtype=cd.float32)
    assert (type(parameter), parameter.shape, parameter.dtype) == (nn.Parameter, (2, 3), cd.float32)
    (parameter * 2).sum().backward()
    assert parameter.grad.tolist() == [[2.0] * 3] * 2
    frozen = UninitializedParameter(requires_grad=False)
    frozen.materialize(4)
    assert not frozen.requires_grad

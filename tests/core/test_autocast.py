"""Mixed precision: the dtypes of autocast, its gradients, its state, and GradScaler. Figures are PyTorch 2.13's."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra._dispatch.autocasting import layer, settings
from candelabra._keys import state
from candelabra._plugins import registry
from candelabra.amp import GradScaler, autocast, custom_bwd, custom_fwd
from candelabra.backend import Backend
from candelabra.library import OPERATORS, Autocast, explain, operator, pointwise
from candelabra.typing import Tensor

HALF = cd.bfloat16


@pytest.fixture
def x() -> cd.Tensor:
    """A matrix in float32."""
    return cd.arange(16.0).reshape(4, 4) / 16


@pytest.fixture(autouse=True)
def _nothing_remains() -> Iterator[None]:
    """After each test autocast is off and keeps no casts."""
    yield
    assert not settings.enabled
    assert not settings.cached
    assert settings.nesting == 0
    assert not state.bits & layer().bit


def test_each_list_on_the_host(x: cd.Tensor) -> None:
    """Products run in bfloat16, losses in float32, `cat` in the widest dtype, and other operators as they are."""
    y = x.to(HALF)
    with autocast("cpu"):
        assert (x @ x).dtype is HALF
        assert cd.addmm(x, x, x).dtype is HALF
        assert F.linear(x, x, x[0]).dtype is HALF
        assert F.conv_transpose1d(x[None], x[..., None], x[0]).dtype is HALF
        assert F.mse_loss(y, y).dtype is cd.float32
        assert F.cross_entropy(y, cd.tensor([0, 1, 2, 3])).dtype is cd.float32
        assert cd.cat([x, y]).dtype is cd.float32
        assert cd.cat([y, y]).dtype is HALF
        assert y.exp().dtype is HALF
        assert F.layer_norm(y, (4,), x[0], x[0]).dtype is HALF
        assert (x.double() @ x.double()).dtype is cd.float64
        assert cd.linalg.multi_dot([x, x]).dtype is HALF
    assert (x @ x).dtype is cd.float32


def test_functions_of_several_operators_follow_the_hosts_lists(x: cd.Tensor) -> None:
    """Pools of volumes, two kinds of padding and CTC are computed in float32, as PyTorch's operators of these names."""
    y = x.to(HALF)
    volume = y.reshape(1, 1, 4, 2, 2)
    with autocast("cpu"):
        for pooled in (F.max_pool3d(volume, 2), F.avg_pool3d(volume, 2), F.adaptive_avg_pool3d(volume, 2)):
            assert pooled.dtype is cd.float32
        assert F.adaptive_max_pool3d(volume, 2).dtype is cd.float32
        assert F.max_pool3d(volume, 2, return_indices=True)[0].dtype is HALF
        assert F.fractional_max_pool2d(y[None], 2, 2).dtype is cd.float32
        assert F.max_unpool1d(y[None], cd.arange(4).expand(1, 4, 4), 1).dtype is cd.float32
        assert F.pad(y[None], (1, 1), "reflect").dtype is cd.float32
        assert F.pad(volume, (1, 1, 1, 1, 1, 1), "reflect").dtype is HALF
        assert F.pad(y[None], (1, 1), "replicate").dtype is cd.float32
        assert F.pad(y[None], (1, 1), "circular").dtype is HALF
        assert F.ctc_loss(y.log_softmax(1)[:, None], cd.tensor([[1]]), [4], [1]).dtype is cd.float32
        assert cd.mv(x, x[0]).dtype is cd.float32
        assert cd.dot(x[0], x[0]).dtype is cd.float32
        assert cd.tensordot(x, x, 1).dtype is HALF
    assert F.avg_pool3d(volume, 2).dtype is HALF


@pytest.mark.parametrize(("cell", "count"), [(cd.nn.LSTMCell, 2), (cd.nn.GRUCell, 1), (cd.nn.RNNCell, 1)])
def test_states_of_cells_on_the_host(cell: type[cd.nn.Module], count: int) -> None:
    """The states of LSTM and GRU cells keep their dtype; those of simple cells are products."""
    step = cell(4, 3)
    for given in (cd.float32, HALF):
        state = cd.zeros(2, 3, dtype=given)
        with autocast("cpu"):
            found = step(cd.ones(2, 4), (state, state) if count == 2 else state)
        expected = HALF if cell is cd.nn.RNNCell else given
        assert [t.dtype for t in (found if count == 2 else (found,))] == [expected] * count


@pytest.mark.usefixtures("lantern")
def test_each_list_on_an_accelerator(x: cd.Tensor) -> None:
    """Accelerators have other lists: functions that need the range run in float32; the lower precision is float16."""
    z = x.to("lantern")
    h = z.to(cd.float16)
    with autocast("lantern"):
        assert (z @ z).dtype is cd.float16
        assert h.exp().dtype is cd.float32
        assert h.softmax(-1).dtype is cd.float32
        assert (h**2).dtype is cd.float32
        assert h.sum().dtype is cd.float32
        assert h.sum(dtype=cd.float16).dtype is cd.float16
        assert cd.addcmul(z, h, h).dtype is cd.float32
        assert cd.addcmul(h, h, h).dtype is cd.float16
        assert (x @ x).dtype is cd.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy is unsafe to autocast"):
            F.binary_cross_entropy(h.sigmoid(), h.sigmoid())
        assert cd.is_autocast_enabled()


def test_values_are_those_of_explicit_casts(x: cd.Tensor) -> None:
    """Autocast computes what the program with casts written out computes."""
    with autocast("cpu"):
        assert cd.equal(x @ x, x.to(HALF) @ x.to(HALF))
        assert cd.equal(F.l1_loss(x.to(HALF), x), F.l1_loss(x.to(HALF).float(), x))


def test_gradients_have_the_dtypes_of_the_tensors(x: cd.Tensor) -> None:
    """A parameter's gradient is in float32, whether `backward` runs inside the context or outside."""
    for inside in (False, True):
        w = (x + 1).requires_grad_()
        with autocast("cpu"):
            y = x @ w
            loss = y.tanh().exp().sum() + F.mse_loss(y, x)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        assert w.grad is not None
        assert w.grad.dtype is cd.float32
        assert w.grad.isfinite().all()


def test_composite_operators_with_a_derivative_keep_their_dtype(x: cd.Tensor) -> None:
    """What such an operator's body computes is not cast, so that the result has the dtype of the record."""
    y = x.to(HALF)
    with autocast("cpu"):
        for name in ("celu", "mish", "softsign"):
            out = getattr(F, name)(y)
            assert out.dtype is HALF
            assert cd.equal(out, getattr(F, name)(y))


def test_in_place_operators_are_not_cast(x: cd.Tensor) -> None:
    """As in PyTorch, an in-place call keeps the dtype of the tensor that it writes to."""
    y = x.clone()
    with autocast("cpu"):
        y.addmm_(x, x)
    assert cd.equal(y, cd.addmm(x, x, x))


def test_contexts_nest(x: cd.Tensor) -> None:
    """`enabled=False` turns autocast off inside, and an inner dtype replaces the outer one."""
    with autocast("cpu"):
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype is cd.float32
            assert not cd.is_autocast_enabled("cpu")
            with autocast("cpu", dtype=cd.float16):
                assert (x @ x).dtype is cd.float16
                assert cd.get_autocast_dtype("cpu") is cd.float16
        assert (x @ x).dtype is HALF
        assert not cd.is_autocast_enabled()
    assert not cd.is_autocast_enabled("cpu")


def test_decorator_and_threads(x: cd.Tensor) -> None:
    """A decorated function runs under autocast, and each thread has its own state."""

    @autocast("cpu")
    def product(a: cd.Tensor) -> cd.Tensor:
        """Return a product."""
        return a @ a

    assert product(x).dtype is HALF
    assert product.__doc__ == "Return a product."
    same = cd.amp.autocast_mode.autocast_decorator(autocast("cpu"), cd.matmul)
    assert same(x, x).dtype is HALF
    seen: list[cd.dtype] = []
    with autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert seen == [cd.float32]


def test_casts_of_parameters_are_kept(x: cd.Tensor) -> None:
    """A leaf that requires grad is cast once, and again if it was written to; without the cache at each use."""
    w = x.clone().requires_grad_()
    with autocast("cpu"):
        first = (x @ w).grad_fn
        second = (x @ w).grad_fn
        assert first.next_functions[-1][0] is second.next_functions[-1][0]
        with cd.no_grad():
            w.add_(1)
        assert cd.equal(x @ w, x.to(HALF) @ w.to(HALF))
        cd.clear_autocast_cache()
        assert not settings.cached
        with autocast("cpu", cache_enabled=False):
            assert not cd.is_autocast_cache_enabled()
            _ = x @ w
            assert not settings.cached
        assert cd.is_autocast_cache_enabled()
        with cd.no_grad():
            _ = x @ w
        assert not settings.cached


def test_functions_set_the_state(x: cd.Tensor) -> None:
    """The functions at the top of the package read and set what the context manager does."""
    cd.set_autocast_enabled("cpu", True)
    try:
        assert cd.is_autocast_enabled("cpu")
        assert (x @ x).dtype is HALF
        cd.set_autocast_dtype("cpu", cd.float16)
        assert (x @ x).dtype is cd.float16
    finally:
        cd.set_autocast_enabled("cpu", False)
        assert cd.get_autocast_dtype("cpu") is cd.float16
        cd.set_autocast_dtype("cpu", HALF)
    assert cd.autocast_increment_nesting() == 1
    assert cd.autocast_decrement_nesting() == 0
    cd.set_autocast_cache_enabled(False)
    assert not cd.is_autocast_cache_enabled()
    cd.set_autocast_cache_enabled(True)


@pytest.mark.usefixtures("lantern")
def test_one_argument_sets_the_accelerators_state() -> None:
    """`set_autocast_enabled(True)` is for the accelerator."""
    cd.set_autocast_enabled(True)
    assert cd.is_autocast_enabled()
    cd.set_autocast_enabled(False)
    assert not cd.is_autocast_enabled()


@pytest.mark.usefixtures("host_alone")
def test_what_is_not_available_warns_and_disables(x: cd.Tensor) -> None:
    """A device without plugin and a dtype that is no half type have no effect; other arguments are errors."""
    assert cd.amp.is_autocast_available("cpu")
    assert not cd.amp.is_autocast_available("cuda")
    with pytest.warns(UserWarning, match="device_type of 'cuda', but no such device is available"), autocast("cuda"):
        assert (x @ x).dtype is cd.float32
    with pytest.warns(UserWarning, match=r"the target dtype candelabra\.float32 is not supported. Disabling"):
        context = autocast("cpu", dtype=cd.float32)
    with context:
        assert (x @ x).dtype is cd.float32
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'nonsense'"):
        autocast("nonsense")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(cd.device("cpu"))


def test_explain_names_the_layer_and_off_costs_nothing(x: cd.Tensor) -> None:
    """The key has the layer's bit inside the context only."""
    with autocast("cpu"):
        assert "functionality layer 'autocast'" in str(explain("mm", x, x))
    assert "autocast" not in str(explain("mm", x, x))


def test_records_name_known_lists() -> None:
    """A record's list is checked; one name stands for both kinds of device."""
    assert OPERATORS["mm"].autocast == Autocast("lower", "lower")
    with pytest.raises(ValueError, match="operator doubled: unknown list of autocast 'fast'"):

        @operator(pointwise, autocast="fast")
        def doubled(input: Tensor) -> Tensor:
            """Twice the input."""
            return input + input


def test_custom_functions_cast_their_arguments(x: cd.Tensor) -> None:
    """`custom_fwd(cast_inputs=...)` runs `forward` in one dtype; without it under autocast, and `backward` as well."""
    seen: list[cd.dtype] = []

    class Product(cd.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=cd.float32)
        def forward(ctx: cd.autograd.function.FunctionCtx, a: cd.Tensor, options: dict[str, list[str]]) -> cd.Tensor:
            assert options == {"k": ["v"]}
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: cd.autograd.function.FunctionCtx, g: cd.Tensor) -> tuple[cd.Tensor, None]:
            (a,) = ctx.saved_tensors
            seen.append((g @ a).dtype)
            return g @ a.T + a.T @ g, None

    class Inside(Product):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx: cd.autograd.function.FunctionCtx, a: cd.Tensor, options: dict[str, list[str]]) -> cd.Tensor:
            ctx.save_for_backward(a)
            return a @ a

    w = x.clone().requires_grad_()
    with autocast("cpu"):
        out = Product.apply(w.to(HALF), {"k": ["v"]})
        inner = Inside.apply(w, {})
    assert out.dtype is cd.float32
    assert inner.dtype is HALF
    out.sum().backward()
    inner.float().sum().backward()
    assert seen == [cd.float32, HALF]
    assert Product.apply(x, {"k": ["v"]}).dtype is cd.float32
    for decorate in (custom_fwd, custom_bwd):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            decorate(device_type=None)


def test_modules_of_devices_have_amp() -> None:
    """The old paths: `<device type>.amp.autocast` and `GradScaler` have their device already."""
    assert cd.cpu.amp.autocast().device == "cpu"
    assert cd.cpu.amp.GradScaler().is_enabled()


# -- GradScaler -------------------------------------------------------------------------------------------------------
def step_of(scaler: GradScaler, value: float, rate: float = 1.0) -> tuple[float, float]:
    """Make one step with a gradient of that value, and return the parameter and the scale after it."""
    p = cd.tensor([1.0], requires_grad=True)
    optimizer = cd.optim.SGD([p], lr=rate)
    scaler.scale((p * value).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return p.item(), scaler.get_scale()


def test_scaler_steps_and_adapts_the_scale() -> None:
    """Gradients are unscaled; a step with overflow is skipped and halves the scale; two without double it."""
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    assert step_of(scaler, 0.25) == (0.75, 4.0)
    assert scaler.state_dict() == {
        "scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1,
    }  # fmt: skip
    assert step_of(scaler, 0.25) == (0.75, 8.0)
    assert step_of(scaler, float("inf")) == (1.0, 4.0)
    assert step_of(scaler, float("nan")) == (1.0, 2.0)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(cd.tensor(16.0))
    assert scaler.get_scale() == 16.0
    with pytest.raises(ValueError, match="new_scale should be a float or a Tensor of one element"):
        scaler.update(cd.ones(2))


def test_scale_does_not_grow_beyond_float32() -> None:
    """A scale whose double is infinite stays."""
    scaler = GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    assert step_of(scaler, 2.0**-127) == (1.0 - 2.0**-127, 2.0**127)


def test_unscaling_once_per_step_and_per_optimizer() -> None:
    """`unscale_` before clipping; twice, after the step, or a second step before `update` are errors."""
    scaler = GradScaler("cpu", init_scale=8.0)
    good, bad = cd.tensor([1.0], requires_grad=True), cd.tensor([1.0], requires_grad=True)
    first, second = cd.optim.SGD([good], lr=1.0), cd.optim.SGD([bad], lr=1.0)
    scaler.scale([(good * 0.5).sum()])[0].backward()
    next(scaler.scale(v for v in [(bad * float("inf")).sum()])).backward()
    scaler.unscale_(first)
    assert good.grad.tolist() == [0.5]
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(first)
    scaler.step(first)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)"):
        scaler.unscale_(first)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update"):
        scaler.step(first)
    with pytest.raises(RuntimeError, match="A GradScaler can only be pickled between update"):
        copy.copy(scaler)
    scaler.step(second)
    assert (good.item(), bad.item()) == (0.5, 1.0)
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_wrong_uses_of_a_scaler() -> None:
    """Each error says what is wrong."""
    scaler = GradScaler("cpu")
    p = cd.tensor([1.0], dtype=cd.float16, requires_grad=True)
    optimizer = cd.optim.SGD([p], lr=1.0)
    with pytest.raises(RuntimeError, match="No inf checks were recorded prior to update"):
        scaler.update()
    with pytest.raises(RuntimeError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale(p.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.step(optimizer)
    with pytest.raises(ValueError, match=r"The growth factor must be > 1\.0, got 0\.5"):
        GradScaler("cpu", growth_factor=0.5)
    with pytest.raises(ValueError, match=r"The backoff factor must be < 1\.0, got 2\.0"):
        GradScaler("cpu", backoff_factor=2.0)


def test_state_of_a_scaler_moves_to_another() -> None:
    """`load_state_dict` restores all of it, before and after the first use; pickling does, too."""
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    step_of(scaler, 0.25)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(5)
    fresh, used = GradScaler("cpu"), GradScaler("cpu")
    step_of(used, 0.25)
    for other in (fresh, used):
        other.load_state_dict(scaler.state_dict())
        assert other.state_dict() == scaler.state_dict()
        assert (other.get_growth_factor(), other.get_backoff_factor(), other.get_growth_interval()) == (3.0, 0.25, 5)
    assert copy.deepcopy(scaler).state_dict() == scaler.state_dict()
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        scaler.load_state_dict({})


@pytest.mark.usefixtures("host_alone")
def test_disabled_scaler_lets_everything_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its device a scaler warns and is disabled: methods let their arguments pass."""
    with pytest.warns(UserWarning, match="GradScaler is enabled, but 'cuda' is not available. Disabling"):
        GradScaler("cuda")
    with pytest.warns(UserWarning, match="GradScaler is enabled, but no accelerator is available. Disabling"):
        scaler = GradScaler()
    assert not scaler.is_enabled()
    assert step_of(scaler, 0.25) == (0.75, 1.0)
    assert scaler.scale(3) == 3
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})
    scaler.unscale_(None)
    assert scaler._get_growth_tracker() == 0
    assert not copy.deepcopy(scaler).is_enabled()


@pytest.mark.usefixtures("lantern")
def test_training_step_on_an_accelerator(lantern: Backend) -> None:
    """A model trains in float16 with a scaler: parameters stay in float32 and the loss falls."""
    cd.manual_seed(0)
    model = cd.nn.Sequential(cd.nn.Linear(4, 8), cd.nn.Tanh(), cd.nn.Linear(8, 1)).to("lantern")
    optimizer = cd.optim.SGD(model.parameters(), lr=0.1)
    scaler = cd.lantern.amp.GradScaler(init_scale=256.0)
    inputs = cd.linspace(-1, 1, 32).reshape(8, 4).to("lantern")
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with cd.lantern.amp.autocast():
            out = model(inputs)
            assert out.dtype is cd.float16
            loss = F.mse_loss(out, inputs.sum(1, True))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]
    assert {p.dtype for p in model.parameters()} == {cd.float32}


def test_older_names_contain_the_device_type() -> None:
    """``get_autocast_cpu_dtype`` and similar names; ``gpu`` is the accelerator."""
    assert cd.get_autocast_cpu_dtype() is cd.bfloat16
    assert not cd.is_autocast_cpu_enabled()
    with cd.autocast("cpu"):
        assert cd.is_autocast_cpu_enabled()
        cd.set_autocast_cpu_enabled(False)
        assert not cd.is_autocast_cpu_enabled()
    cd.set_autocast_cpu_dtype(cd.float16)
    try:
        assert cd.get_autocast_cpu_dtype() is cd.float16
    finally:
        cd.set_autocast_cpu_dtype(cd.bfloat16)
    assert cd.get_autocast_gpu_dtype() is cd.get_autocast_dtype(registry.accelerator())
    with pytest.raises(AttributeError, match="no attribute 'get_autocast_nothing_dtype'"):
        _ = cd.get_autocast_nothing_dtype

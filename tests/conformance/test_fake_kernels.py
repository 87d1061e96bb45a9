"""The fake accelerator's kernels: those of the reference without the omitted ones, also on immutable arrays."""

import warnings
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import FallbackWarning, UnsupportedDType, UnsupportedOperator
from candelabra.library import open_device, plugins
from candelabra_conformance.fake import FakeAccelerator, installed, launching


@pytest.fixture
def fake() -> Iterator[FakeAccelerator]:
    """Install the fake accelerator with its defaults for one test."""
    with installed() as made:
        yield made


def route(operator: str, *args: object) -> str:
    """Return the route that a call would take."""
    return cd.explain(operator, *args).route


CALLS = {
    "several outputs": lambda x, i: x.sort(1, descending=True).indices,
    "a list": lambda x, i: cd.cat((x, x * 2), 1),
    "an integer division": lambda x, i: (i + 1) // (i + 1),
    "an index of a dim of size 1": lambda x, i: x[:, :1].gather(1, i * 0),
    "a list of indices with gaps": lambda x, i: x[:, i[:, 0]],
    "a zero-size tensor": lambda x, i: x[:0].sum(0),
    "a scalar": lambda x, i: x.mean(),
    "a factory with a dtype": lambda x, i: cd.arange(0, 6, 2, dtype=cd.int16, device=x.device),
    "a reduction to another dtype": lambda x, i: x.sum(1, dtype=cd.float64),
    "a matrix product of views": lambda x, i: x.t() @ x,
    "values in place": lambda x, i: x.t().mul_(2).sqrt_(),
    "a write through indices": lambda x, i: x.index_put_((i[0],), x[0]),
    "a factorization": lambda x, i: cd.linalg.qr(x).R.abs(),
    "a spectrum": lambda x, i: cd.fft.rfft(x).abs(),
    "memory in another dtype": lambda x, i: x.view(cd.int32) + 1,
    "pairs as complex numbers": lambda x, i: cd.view_as_complex(x[:, :2].contiguous()) * 1j,
    "random numbers": lambda x, i: cd.rand(5, device=x.device, generator=cd.Generator(x.device).manual_seed(3)),
    "a call that the kernel declines": lambda x, i: cd.grid_sampler(
        x[None, None], x.reshape(1, 1, 3, 2) / 9, 1, 0, True
    ),
    "draws by probability": lambda x, i: cd.bernoulli(x / 9, generator=cd.Generator(x.device).manual_seed(3)),
}


@pytest.mark.parametrize("immutable", [False, True], ids=["strided", "immutable"])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_the_references_to_the_bit(name: str, immutable: bool) -> None:
    """Results equal the reference's bit for bit, with the same dtype and shape."""

    def run(device: str) -> cd.Tensor:
        x = cd.arange(1, 7, dtype=cd.float32).reshape(2, 3).to(device)
        return CALLS[name](x, cd.tensor([[0, 1], [1, 0]]).to(device))

    with installed(immutable=immutable):
        found, expected = run("fake"), run("cpu")
        assert (found.dtype, found.shape, str(found.device)) == (expected.dtype, expected.shape, "fake:0")
        assert found.tolist() == expected.tolist()


def test_kernels_are_the_references(fake: FakeAccelerator) -> None:
    """Every operator with a kernel on the reference is native on the fake device, in place too."""
    theirs = plugins.owner_kernels(plugins.reference_device().type)
    views = {"basic_index", "transpose", "t", "permute", "alias", "detach", "view", "expand", "squeeze", "unsqueeze"}
    assert set(theirs) - set(fake.kernels()) == views
    x = cd.ones(2, device="fake")
    assert route("softmax", x, 0) == "native"
    assert route("permute", x, (0,)) == "strided"
    payload = x._payload
    assert x.add_(1)._payload is payload


def test_a_kernel_may_be_chosen_by_dtype(fake: FakeAccelerator) -> None:
    """A kernel with ``for_dtype`` keeps it, and the chosen kernels are asynchronous too; None stays None."""

    def kernel(x: Any, y: Any) -> Any:
        raise AssertionError("the general function serves no call")

    kernel.for_dtype = lambda d: None if d.name == "int8" else lambda x, y: x + y  # type: ignore[attr-defined]
    undo = cd.register_kernel("fake", "hypot", fake.serving("hypot", kernel))
    try:
        assert fake.serving("hypot", kernel).for_dtype(cd.int8) is None  # type: ignore[attr-defined]
        x = cd.tensor([1.0, 2.0], device="fake")
        assert cd.hypot(x, x).tolist() == [2, 4]
    finally:
        undo()


# -- shapes before values ---------------------------------------------------------------------------------------------
def served(fake: FakeAccelerator, kernel: Any, *args: Any, operator: str = "mul") -> Any:
    """Wrap a kernel on the reference's arrays as a kernel of the fake device."""
    return fake.serving(operator, kernel)(*args)


def test_scalars_of_several_types_are_several_signatures(fake: FakeAccelerator) -> None:
    """1, 1.0 and True are equal, but a kernel's result depends on their type."""
    x = cd.ones(2, dtype=cd.int64, device="fake")._payload
    kernel = fake.serving("mul", lambda a, b: a * b)
    assert [fake.dtype_of(kernel(x, b)).name for b in (1, 1.0, True, 1j)] == ["int64", "float64", "int64", "complex128"]


def test_a_signature_is_worked_out_once_and_forgotten_in_time(
    fake: FakeAccelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call with the same shapes runs the kernel once, and the cache has a maximum size."""
    calls = []

    def kernel(a: Any, b: Any) -> Any:
        calls.append(a.shape)
        return a * b

    monkeypatch.setattr(launching, "REMEMBERED", 2)
    launch: Any = fake.serving("mul", kernel)
    for _ in range(3):
        launch(cd.ones(2, device="fake")._payload, 2.0)
    cd.fake.synchronize()
    assert len(calls) == 4
    for size in range(5):
        launch(cd.ones(size, device="fake")._payload, 2.0)
        assert len(launch.results) <= 2


def test_arguments_that_cannot_be_hashed_are_worked_out_each_time(fake: FakeAccelerator) -> None:
    """A dict among the arguments of a kernel cannot be a cache key."""
    payload = served(fake, lambda a, b: a * b["by"], cd.ones(2, device="fake")._payload, {"by": 3})
    assert fake.to_host(payload).cast("f").tolist() == [3, 3]


def test_shapes_that_depend_on_values_unannounced_are_an_error(fake: FakeAccelerator) -> None:
    """An operator without this declaration in its record would be wrong on every real asynchronous device."""
    payload = served(fake, lambda a, b: a[a > 0], cd.ones(2, device="fake")._payload, 1)
    assert payload.shape == (0,)
    text = r"fake:0: 'mul' announced candelabra.float32 \[0\] and returned candelabra.float32 \[2\]: if its shape"
    with pytest.raises(RuntimeError, match=text):
        cd.fake.synchronize()


def test_a_late_error_of_an_odd_class_is_a_runtime_error(fake: FakeAccelerator) -> None:
    """An exception class that cannot be created from one text is replaced; the message is kept."""

    class OddError(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(f"{first} {second}")

    def kernel(a: Any, b: Any) -> Any:
        if a.any():
            raise OddError("no", "oil")
        return a

    served(fake, kernel, cd.ones(2, device="fake")._payload, 1)
    with pytest.raises(RuntimeError, match=r"fake:0: 'mul' failed: no oil"):
        cd.fake.synchronize()


def test_a_kernel_needs_an_array(fake: FakeAccelerator) -> None:
    """A call without an array has no device."""
    with pytest.raises(TypeError, match="a kernel of a fake device takes arrays of that device, got int, list"):
        fake.kernels()["add"](1, [2])


# -- missing dtypes and kernels ---------------------------------------------------------------------------------------
def test_missing_dtypes_cannot_be_held() -> None:
    """A missing dtype is refused by name and as a dtype; the other dtypes work."""
    with installed(missing_dtypes=("float64", cd.complex128)) as fake:
        for d in (cd.float64, cd.complex128):
            assert d not in fake.capabilities.storage | fake.capabilities.arithmetic
            with pytest.raises(UnsupportedDType, match=f"'fake:0' cannot hold candelabra.{d.name}"):
                cd.ones(2, dtype=d, device="fake")
        assert (cd.ones(2, device="fake") / 2).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="unknown dtype 'float46': expected one of bool, uint8"):
        FakeAccelerator(missing_dtypes=("float46",))


@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_dtypes_that_are_only_held_are_computed_elsewhere() -> None:
    """Copies preserve them, and arithmetic takes another route than the device's own kernel."""
    with installed(storage_only=("float16",)) as fake:
        x = cd.tensor([1.0, 2.0], dtype=cd.float16, device="fake")
        assert cd.float16 in fake.capabilities.storage - fake.capabilities.arithmetic
        assert x.tolist() == [1, 2]
        assert route("add", x, x) == "fallback"
        assert (x + x).tolist() == [2, 4]


def test_missing_kernels_fall_back() -> None:
    """The functional and the in-place form fall back with the core's warning, unless the policy forbids it."""
    with installed(missing_kernels=("sinh", "permute")):
        x = cd.zeros(2, device="fake")
        assert route("sinh", x) == "fallback"
        with pytest.warns(FallbackWarning, match="'sinh' has no kernel on 'fake:0'"):
            assert x.sinh().tolist() == [0, 0]
        assert x.sinh_().tolist() == [0, 0]
        with cd.fallback("error"), pytest.raises(UnsupportedOperator, match="'sinh' is not available"):
            x.sinh()
    text = r"'permute' is not available.*Views never fall back"
    with installed(missing_kernels=("permute",), immutable=True), pytest.raises(UnsupportedOperator, match=text):
        cd.zeros(2, 2, device="fake").permute(1, 0)


def test_kernels_can_be_given() -> None:
    """Kernels that are passed replace the reference's, and operators without one have no kernel."""
    with installed(kernels={"add": lambda a, b: a - b, "full": open_device("cpu").kernels["full"]}):
        x = cd.ones(2, device="fake")
        assert (x + x).tolist() == [0, 0]
        assert route("mul", x, x) == "fallback"


# -- immutable arrays -------------------------------------------------------------------------------------------------
@pytest.fixture
def immutable() -> Iterator[FakeAccelerator]:
    """Return fake devices with immutable arrays."""
    with installed(immutable=True) as made:
        yield made


def test_an_immutable_array_is_never_written_to(immutable: FakeAccelerator) -> None:
    """A write gives the tensor a new array; the backend's own copy refuses, and there are no in-place kernels."""
    x = cd.ones(2, device="fake")
    before = x._payload
    view = x[1:]
    x.add_(1)
    view.mul_(5)
    assert immutable.to_host(before).cast("f").tolist() == [1, 1]
    assert (x.tolist(), view.tolist()) == ([2, 10], [10])
    with pytest.raises(RuntimeError, match="arrays of 'fake' are immutable, but one was written to"):
        immutable.copy_(before, before)
    assert not [name for name in immutable.kernels() if name.endswith("_")]
    assert not immutable.capabilities.mutable
    assert not immutable.capabilities.strided


def test_an_immutable_array_has_no_strides(immutable: FakeAccelerator) -> None:
    """A view is a separate array, and the optional half of the contract is missing."""
    x = cd.arange(6, device="fake").reshape(2, 3)
    y = x.t()
    assert y._payload._block is not x._payload._block
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(NotImplementedError, match=r"backend 'fake' has no layout\(\), which strided=True requires"):
        immutable.layout(x._payload)
    with pytest.raises(NotImplementedError, match=r"backend 'fake' has no restride\(\), which strided=True requires"):
        immutable.restride(x._payload, (6,), (1,), 0)


def test_a_view_of_unfinished_work_is_unfinished(immutable: FakeAccelerator) -> None:
    """Without strides, views are asynchronous work too."""
    s = cd.fake.Stream()
    with s:
        y = cd.tensor([1.0, 2.0], device="fake") * 2
    assert bool(y[1:].isnan().all().item())
    s.synchronize()
    assert y[1:].tolist() == [4]


def test_the_whole_of_a_program_runs_without_a_warning(fake: FakeAccelerator) -> None:
    """A training step runs on the reference's kernels, and nothing falls back."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        w = cd.ones(3, 2, device="fake", requires_grad=True)
        loss = (cd.ones(4, 3, device="fake") @ w).softmax(1).log().mean()
        loss.backward()
        with cd.no_grad():
            w -= 0.1 * w.grad
    assert w.shape == (3, 2)
    assert cd.fallback_counts().keys().isdisjoint({("fake:0", "softmax"), ("fake:0", "log")})

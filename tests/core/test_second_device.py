"""The core on devices unlike NumPy: asynchronous, opaque, without float64, immutable."""

import candelabra as cd
import pytest
from candelabra.errors import FallbackWarning, UnsupportedDType

DEVICES = ("lantern", "lantern:1", "ember")
each_device = pytest.mark.parametrize("device", DEVICES)
pytestmark = pytest.mark.usefixtures("lantern")


def numbers(device: str, *shape: int) -> cd.Tensor:
    """Return 1, 2, 3, … in a shape."""
    return (cd.arange(1, 1 + cd.Size(shape).numel(), device="cpu").to(cd.float32).reshape(shape)).to(device)


@each_device
def test_forward_and_backward_agree_with_the_reference(device: str) -> None:
    """A small graph has the reference's value and gradient on every device."""

    def run(where: str) -> tuple[list[float], list[float]]:
        x = numbers(where, 2, 3).requires_grad_()
        w = numbers(where, 3, 2)
        y = ((x @ w) * 0.01).exp().sum(1)
        y.sum().backward()
        assert x.grad is not None
        assert str(x.grad.device).startswith(where)
        return y.tolist(), x.grad.tolist()

    here, there = run(device), run("cpu")
    assert here[0] == pytest.approx(there[0], rel=1e-5)
    for row, expected in zip(here[1], there[1], strict=True):
        assert row == pytest.approx(expected, rel=1e-5)


@each_device
def test_write_to_a_view_reaches_the_base_and_older_views(device: str) -> None:
    """Base, view and an older sibling view see a write through any of them, with mutable and immutable arrays."""
    base = cd.zeros(3, 2, device=device)
    older, view = base[0], base[:, 1]
    view.add_(1)
    base.mul_(3)
    assert base.tolist() == [[0, 3], [0, 3], [0, 3]]
    assert older.tolist() == [0, 3]
    older.t().fill_(7) if older.ndim == 2 else older.fill_(7)
    assert view.tolist() == [7, 3, 3]


@each_device
def test_write_to_a_view_is_differentiated(device: str) -> None:
    """A recorded write through a view changes the base's history: overwritten elements have no gradient."""
    x = numbers(device, 3).requires_grad_()
    w = numbers(device, 1).requires_grad_()
    base = x * 1
    base[1:2].mul_(w * 10)
    (base * base).sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    assert x.grad.tolist() == [2, 400, 6]
    assert w.grad.tolist() == [800]


@each_device
@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_setitem_in_all_forms(device: str) -> None:
    """Assignment by slice, int, mask and index tensor works, by the reference device if kernels are missing."""
    x = cd.zeros(3, 3, device=device)
    x[0] = 1
    x[1:, 2] = 5
    x[x == 5] = 6
    x[cd.arange(2, device=device), 0] = 9
    assert x.tolist() == [[9, 1, 1], [9, 0, 6], [0, 0, 6]]


@each_device
def test_diagonal_of_any_device_can_be_written(device: str) -> None:
    """A write to a diagonal view changes the base, on immutable arrays as well."""
    x = cd.zeros(3, 3, device=device)
    x.diagonal().fill_(2)
    assert x.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]


def test_immutable_payload_is_replaced_not_written() -> None:
    """An in-place operator on an immutable device gives the tensor a new payload; the old one keeps its values."""
    x = cd.ones(2, device="ember")
    before = x._payload
    x.add_(1)
    assert x._payload is not before
    cd.ember.synchronize()
    assert before._hidden.tolist() == [1, 1]


@each_device
def test_changed_saved_tensor_is_noticed(device: str) -> None:
    """Backward through a saved tensor that was written to names the operator and both versions."""
    x = numbers(device, 2).requires_grad_()
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"of 'mul', is at version 1; expected version 0"):
        z.sum().backward()


@each_device
def test_float64_is_refused_in_words(device: str) -> None:
    """A dtype that the device does not support is an error that lists the supported ones."""
    with pytest.raises(UnsupportedDType, match=r"cannot hold candelabra.float64: it stores .*float32.*convert first"):
        cd.zeros(2, dtype=cd.float64, device=device)


@each_device
def test_error_of_a_queued_kernel_surfaces_when_waited_for(device: str) -> None:
    """synchronize raises errors of queued kernels, with the operator's name, and only once."""
    numbers(device, 3)[cd.full((2,), 7, dtype=cd.int64, device=device)]
    device = cd.device(device)
    with pytest.raises(IndexError, match=r"'index' failed: index 7 is out of bounds for dimension 0 with size 3"):
        getattr(cd, device.type).synchronize(device)
    getattr(cd, device.type).synchronize(device)


@pytest.mark.parametrize("source", ["cpu", *DEVICES])
@pytest.mark.parametrize("target", ["cpu", *DEVICES])
def test_copies_between_all_devices(source: str, target: str) -> None:
    """`to` and `copy_` transfer values between any two devices, and propagate gradients."""
    x = numbers(source, 2, 2).requires_grad_()
    y = x.to(target)
    assert y.device == cd.device(target)
    assert y.tolist() == [[1, 2], [3, 4]]
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.device == cd.device(source)
    assert x.grad.tolist() == [[2, 4], [6, 8]]
    assert cd.zeros(2, 2, device=target).copy_(x.detach()).tolist() == [[1, 2], [3, 4]]


def test_fallback_warns_once_and_counts() -> None:
    """The fallback warns once and counts every call, and the result is on the tensor's device."""
    x = numbers("lantern", 3)
    with pytest.warns(FallbackWarning, match="operator 'cumsum' has no kernel on 'lantern:0' and runs on 'cpu'"):
        y = x.cumsum(0)
    assert x.cumsum(0).tolist() == [1, 3, 6]
    assert y.device == cd.device("lantern:0")
    assert cd.fallback_counts() == {("lantern:0", "cumsum"): 2}


def test_payload_offers_nothing_but_its_shape() -> None:
    """The array of the test device differs from NumPy's: it has a shape and no other public attribute."""
    payload = cd.zeros(2, device="lantern")._payload
    assert [name for name in dir(payload) if not name.startswith("_")] == ["shape"]
    assert not hasattr(payload, "__array__")
    with pytest.raises(TypeError, match="bytes-like object is required"):
        memoryview(payload)

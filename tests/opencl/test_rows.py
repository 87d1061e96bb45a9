"""Softmax, normalisation and their gradients on an OpenCL device, one kernel each: for processors and for GPUs."""

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import numpy as np
import pytest
from candelabra_clike import Engine
from candelabra_clike.kernels import normalization

pytestmark = pytest.mark.rounding

FORMS = ("device", "lanes")
SHAPES = (((), 0), ((0,), 0), ((1,), 0), ((3, 45), 1), ((2, 5000), 1), ((2, 60, 33), 1), ((150, 4), 0), ((0, 3), 1))
"""0-d, empty, one element, rows with remainders, long rows, column blocks with remainders, few columns, no row."""
Operation = Callable[..., Any]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms of kernels, and with those for GPUs."""
    device: cd.device = request.getfixturevalue(request.param)
    return device


def values(*shape: int) -> Any:
    """Return numbers of both signs from a fixed seed."""
    return np.random.default_rng(7).standard_normal(shape).astype("f4")


def exact(operation: Operation, *operands: Any) -> Any:
    """Return the reference's result in float64."""
    return operation(*[cd.tensor(np.asarray(x, "f8")) for x in operands]).numpy()


def on_host(operation: Operation, form: cd.device, *operands: Any) -> Any:
    """Return the device's result on the host."""
    return operation(*[cd.tensor(x).to(form) for x in operands]).numpy(force=True)


CASES = [("softmax", *case) for case in SHAPES]
CASES += [(name, *case) for name in ("log_softmax", "logsumexp") for case in (SHAPES[1], SHAPES[4], SHAPES[5])]


@pytest.mark.parametrize(("name", "shape", "dim"), CASES)
def test_exponentials_of_rows_are_exact_to_a_few_ulps(
    form: cd.device, name: str, shape: tuple[int, ...], dim: int
) -> None:
    """Rows have any length and any dim."""
    x = values(*shape) * 20

    def operation(t: Any) -> Any:
        return getattr(t, name)(dim)

    if name == "logsumexp" and shape == (0,):
        assert on_host(operation, form, x) == -np.inf
        return
    np.testing.assert_allclose(on_host(operation, form, x), exact(operation, x), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("width", [3, 40])
def test_infinite_logits_and_nan_do_as_on_the_reference(form: cd.device, width: int) -> None:
    """-inf gives 0, +inf gives NaN, and NaN affects only its row."""
    x = values(4, width)
    x[0, 1], x[1, 2], x[2, 0] = -np.inf, np.inf, np.nan
    for operation in (lambda t: t.softmax(1), lambda t: t.log_softmax(1), lambda t: t.logsumexp(1)):
        np.testing.assert_allclose(on_host(operation, form, x), exact(operation, x), rtol=2e-6, atol=2e-6)


def test_a_row_of_nothing_but_minus_infinity_sums_to_minus_infinity(form: cd.device) -> None:
    """The maximum is not subtracted if it is infinite."""
    x = np.full((2, 40), -np.inf, "f4")
    assert (on_host(lambda t: t.logsumexp(1), form, x) == -np.inf).all()


def gradient(operation: Operation) -> Operation:
    """Return the gradients of all operands, concatenated; the last operand is the gradient of the result."""

    def run(*operands: Any) -> Any:
        *leaves, g = operands
        leaves = [x.detach().requires_grad_() for x in leaves]
        operation(*leaves).backward(g)
        return cd.cat([x.grad.reshape(-1) for x in leaves])

    return run


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize(("shape", "dim"), [((2, 60, 33), 1), ((2, 2500), -1)])
def test_gradients_of_exponentials_of_rows(form: cd.device, name: str, shape: tuple[int, ...], dim: int) -> None:
    """They are computed by one kernel too."""
    x = values(*shape)
    g = values(*shape).sum(dim) if name == "logsumexp" else values(*shape)[::-1].copy()
    operation = gradient(lambda t: getattr(t, name)(dim))
    np.testing.assert_allclose(on_host(operation, form, x, g), exact(operation, x, g), rtol=1e-4, atol=2e-6)


NORMS: dict[str, tuple[Operation, tuple[tuple[int, ...], ...]]] = {
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (70,), w, b), ((5, 9, 70), (70,), (70,))),
    "layer_norm over two dims": (lambda x: F.layer_norm(x, (9, 7)), ((4, 9, 7),)),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), ((6, 5, 7, 3), (5,), (5,)),
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 11), (6,), (6,))),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_normalisation_and_its_gradients(form: cd.device, name: str) -> None:
    """Rows, channels and groups get mean 0 and variance 1; all operands have gradients."""
    operation, shapes = NORMS[name]
    operands = [values(*shape) + 2 for shape in shapes]
    wanted = exact(operation, *operands)
    np.testing.assert_allclose(on_host(operation, form, *operands), wanted, rtol=1e-5, atol=1e-5)
    operands.append(values(*wanted.shape))
    back = gradient(operation)
    np.testing.assert_allclose(on_host(back, form, *operands), exact(back, *operands), rtol=1e-3, atol=1e-4)


TILED: dict[str, tuple[tuple[int, ...], int]] = {
    "short rows in a group": ((37, 20), 1),
    "vectors": ((5, 1024), 1),
    "a remainder": ((5, 1023), 1),
    "one element more": ((5, 1025), 1),
    "many lanes": ((2, 9000), 1),
    "a long row in parts": ((2, 50257), 1),
    "long rows, a group each": ((40, 16400), 1),
    "long rows of vectors in parts": ((3, 40000), 1),
}
"""Rows of each form for GPUs."""


@pytest.mark.parametrize("name", TILED)
def test_rows_of_any_length_are_exact_in_tiles(lanes: cd.device, name: str) -> None:
    """Rows in registers, rows that are read again, and rows that several groups divide."""
    shape, dim = TILED[name]
    x, w = values(*shape) * 4, values(shape[1])

    def norm(t: Any, w: Any) -> Any:
        return F.layer_norm(t, (shape[1],), w, w)

    np.testing.assert_allclose(on_host(norm, lanes, x, w), exact(norm, x, w), rtol=1e-5, atol=1e-5)
    for operation in (lambda t: t.softmax(dim), lambda t: t.log_softmax(dim)):
        np.testing.assert_allclose(on_host(operation, lanes, x), exact(operation, x), rtol=2e-6, atol=2e-6)
    back = gradient(lambda t: t.log_softmax(dim))
    operands = x, values(*shape)[::-1].copy()
    np.testing.assert_allclose(on_host(back, lanes, *operands), exact(back, *operands), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(20, 6, 60, 61), (20, 6, 60, 60), (9, 40, 7, 7)])
def test_channels_that_several_groups_divide_have_the_gradients_of_all_operands(
    lanes: cd.device, shape: tuple[int, ...]
) -> None:
    """The reductions of a channel over batch and space are added part by part, in the same order each time."""
    operands = [values(*shape) + 2, values(shape[1]), values(shape[1])]

    def norm(x: Any, w: Any, b: Any) -> Any:
        return F.batch_norm(x, None, None, w, b, training=True)

    np.testing.assert_allclose(on_host(norm, lanes, *operands), exact(norm, *operands), rtol=1e-5, atol=1e-5)
    operands.append(values(*shape))
    back = gradient(norm)
    found = on_host(back, lanes, *operands)
    np.testing.assert_allclose(found, exact(back, *operands), rtol=1e-3, atol=2e-4)
    np.testing.assert_array_equal(found, on_host(back, lanes, *operands))


@pytest.mark.parametrize("shape", [(70, 33), (600, 40), (3, 300, 70)])
def test_columns_of_any_length_are_exact(lanes: cd.device, shape: tuple[int, ...]) -> None:
    """The elements of columns are divided among the warps of a group, and among groups if there are few columns."""
    dim, x = len(shape) - 2, values(*shape) * 4
    for operation in (lambda t: t.softmax(dim), lambda t: t.logsumexp(dim), lambda t: t.var(dim)):
        np.testing.assert_allclose(on_host(operation, lanes, x), exact(operation, x), rtol=4e-6, atol=4e-6)
    operands = x, values(shape[-1]), values(shape[-1]), values(*shape)
    back = gradient(lambda x, w, b: F.layer_norm(x, shape[-1:], w, b))
    np.testing.assert_allclose(on_host(back, lanes, *operands), exact(back, *operands), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16, cd.float64])
@pytest.mark.parametrize("shape", [(3, 1024), (3, 1023), (2, 40000)])
def test_rows_of_other_dtypes_in_tiles_are_rounded_once(lanes: cd.device, dtype: Any, shape: tuple[int, ...]) -> None:
    """Vectors of half types have 8 bytes, those of float64 have 32."""
    x = cd.tensor(values(*shape)).to(dtype)
    for operation in (lambda t: t.softmax(1), lambda t: t.log_softmax(1), lambda t: F.layer_norm(t, shape[1:])):
        found, wanted = operation(x.to(lanes)).to("cpu"), operation(x.to(cd.float64))
        close = cd.finfo(dtype).eps * 2
        np.testing.assert_allclose(found.to(cd.float64).numpy(), wanted.numpy(), rtol=close, atol=close)


def test_rows_that_are_not_aligned_to_vectors_are_read_one_by_one(lanes: cd.device) -> None:
    """An offset of one element, and rows whose distance is not a multiple of a vector."""
    x = values(6, 1032)
    for view in (lambda t: t[:, 1:1025], lambda t: t[1:, :1028], lambda t: t.reshape(-1)[3:4099].reshape(4, 1024)):
        found = view(cd.tensor(x).to(lanes)).softmax(1).numpy(force=True)
        np.testing.assert_allclose(found, view(cd.tensor(x.astype("f8"))).softmax(1).numpy(), rtol=2e-6, atol=2e-6)


def test_a_mean_far_from_zero_costs_no_digits_of_the_variance(device: cd.device) -> None:
    """The squares are those of distances from the mean, which has the accuracy of float32."""
    x = values(3, 500) + 1000

    def operation(t: Any) -> Any:
        return F.layer_norm(t, (500,))

    np.testing.assert_allclose(on_host(operation, device, x), exact(operation, x), rtol=1e-4, atol=5e-4)


@pytest.mark.parametrize("dtype", [cd.bfloat16, cd.float64])
def test_other_dtypes_are_rounded_once(device: cd.device, dtype: Any) -> None:
    """Half types are computed in float32."""
    x = cd.tensor(values(3, 37)).to(dtype)
    for operation in (lambda t: t.softmax(1), lambda t: t.log_softmax(0), lambda t: F.layer_norm(t, (37,))):
        wanted = operation(x.to(cd.float64))
        found = operation(x.to(device)).to("cpu")
        assert found.dtype is dtype
        close = cd.finfo(dtype).eps * 2
        np.testing.assert_allclose(found.to(cd.float64).numpy(), wanted.numpy(), rtol=close, atol=close)


def test_rows_are_read_in_any_layout(form: cd.device) -> None:
    """Operands are transposed, strided, or expanded."""
    x = cd.tensor(values(36, 40))
    for view in (lambda t: t.T, lambda t: t[1::2, ::3], lambda t: t[:1].expand(5, 40)):
        seen, far = view(x), view(x.to(form))
        for dim in (0, 1):
            np.testing.assert_allclose(
                far.softmax(dim).numpy(force=True), seen.softmax(dim).numpy(), rtol=1e-5, atol=1e-7
            )


@pytest.mark.parametrize(("n", "classes"), [(1, 3), (70, 10)])
def test_cross_entropy_and_its_gradient(device: cd.device, n: int, classes: int) -> None:
    """Targets are class indices, of which some are ignored."""
    x, target = values(n, classes), np.arange(n) % classes
    target[::5] = -100 if n > 1 else 0

    def loss(device: Any, dtype: Any) -> tuple[float, Any]:
        leaf = cd.tensor(x).to(device).to(dtype).requires_grad_()
        out = F.cross_entropy(leaf, cd.tensor(target).to(device))
        out.backward()
        return out.item(), leaf.grad.numpy(force=True)

    (found, back), (wanted, slope) = loss(device, cd.float32), loss("cpu", cd.float64)
    assert found == pytest.approx(wanted, rel=1e-6)
    np.testing.assert_allclose(back, slope, rtol=1e-4, atol=1e-7)


def test_a_device_without_float64_has_softmax_and_normalisation(single: cd.device) -> None:
    """Sums are accumulated in float32."""
    x = values(4, 300)
    for operation in (lambda t: t.softmax(1), lambda t: F.layer_norm(t, (300,))):
        np.testing.assert_allclose(on_host(operation, single, x), exact(operation, x), rtol=1e-4, atol=1e-5)


def test_a_weight_larger_than_the_input_is_refused(engine: Engine) -> None:
    """The kernel raises if the core has not checked."""
    x, weight = engine.empty((3,), cd.float32), engine.empty((2, 3), cd.float32)
    with pytest.raises(RuntimeError, match=r"normalize: weight and bias are larger than \(3,\)"):
        normalization.KERNELS["normalize"](x, weight, None, (0,), 1e-5)

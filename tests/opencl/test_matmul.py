"""Products of matrices on OpenCL devices, in the forms for processors and for GPUs, compared with NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import open_device
from candelabra_clike import Engine
from candelabra_clike.kernels.matmul import matmul
from candelabra_clike.templates.matmul.matmul import matmul_kernel

pytestmark = pytest.mark.rounding

Array = np.ndarray

SIZES: dict[str, tuple[int, int, int]] = {
    "one number": (1, 1, 1),
    "a row": (1, 37, 29),
    "a wide row": (1, 300, 70),
    "two rows": (2, 37, 29),
    "four rows": (4, 9, 17),
    "a column": (37, 29, 1),
    "a long column": (11, 9000, 1),
    "odd": (13, 7, 19),
    "several panels, deep": (25, 700, 35),
    "in strips": (67, 300, 130),
    "in strips of two rows": (2, 8200, 129),
    "no rows": (0, 3, 2),
    "no depth": (3, 0, 2),
    "no columns": (3, 2, 0),
}
"""Rows, depth and columns. Operands that are wide and large enough are packed into panels first."""
LAYOUTS: dict[str, Callable[[Array], tuple[Array, Callable[[cd.Tensor], cd.Tensor]]]] = {
    "transposed": lambda v: (v.swapaxes(-1, -2), lambda x: x.mT),
    "inside another": lambda v: (np.pad(v, ((2, 1), (3, 4)), constant_values=9), lambda x: x[2:-1, 3:-4]),
    "every second row": lambda v: (np.repeat(v, 2, 0), lambda x: x[1::2]),
    "every third column": lambda v: (np.repeat(v, 3, 1), lambda x: x[:, 1::3]),
}
"""The values of the layout, and a view of them that equals the original values."""
STACKS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "equal": ((3, 5, 4), (3, 4, 6)),
    "one right matrix": ((2, 3, 5, 4), (4, 6)),
    "one left matrix": ((5, 4), (2, 3, 4, 6)),
    "crossed": ((3, 1, 5, 4), (2, 4, 6)),
    "a row and matrices": ((4,), (3, 4, 6)),
    "matrices and a column": ((3, 5, 4), (4,)),
    "two vectors": ((4,), (4,)),
    "matrices and columns": ((3, 5, 40), (3, 40, 1)),
    "none": ((0, 5, 4), (4, 6)),
    "one right matrix, in strips": ((2, 64, 140), (140, 128)),
}
ROUNDING = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "complex64": 1e-5}
"""The largest error in units of the largest element: one rounding for half types."""


@pytest.fixture(params=["device", "lanes"])
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms, and with those for GPUs."""
    found: cd.device = request.getfixturevalue(request.param)
    return found


def numbers(shape: tuple[int, ...], seed: int, kind: str = "float32") -> Array:
    """Return integers: from -8 to 8 for floats, so that sums of products are exact, and of any size for integers."""
    generator = np.random.default_rng(seed)
    if np.dtype(kind).kind in "iu":
        limits = np.iinfo(kind)
        return generator.integers(limits.min, limits.max, shape, kind, endpoint=True)
    values = generator.integers(-8, 9, shape)
    if kind.startswith("complex"):
        return (values + 1j * generator.integers(-8, 9, shape)).astype(kind)
    return values > 0 if kind == "bool" else values.astype(kind)


def to_device(form: cd.device, values: Array) -> cd.Tensor:
    """Return the values on the device."""
    return cd.tensor(np.ascontiguousarray(values)).to(form)


def to_numpy(x: cd.Tensor) -> Array:
    """Return a tensor's values as an array."""
    return np.asarray(x.cpu().numpy())


@pytest.mark.parametrize("name", SIZES)
def test_matrices_of_all_sizes_multiply_as_with_numpy(form: cd.device, name: str) -> None:
    """Edges of panels and blocks are correct, and so is an empty sum."""
    rows, depth, columns = SIZES[name]
    a, b = numbers((rows, depth), 1), numbers((depth, columns), 2)
    np.testing.assert_array_equal(to_numpy(to_device(form, a) @ to_device(form, b)), a @ b)


@pytest.mark.parametrize("name", ["odd", "four rows", "several panels, deep", "in strips"])
def test_products_with_registers_of_each_size(registers: cd.device, name: str) -> None:
    """Tiles of vectors of eight and of sixteen lanes give the sums of NumPy, on every processor."""
    rows, depth, columns = SIZES[name]
    a, b = numbers((rows, depth), 1), numbers((depth, columns), 2)
    product = cd.tensor(a, device=registers) @ cd.tensor(b, device=registers)
    np.testing.assert_array_equal(product.cpu().numpy(), a @ b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices_of_any_layout_are_supported(form: cd.device, layout: str) -> None:
    """A view of either operand gives the same result as its copy, for small and large sizes."""
    for size in ((13, 7, 19), (67, 300, 130)):
        a, b = numbers(size[:2], 3), numbers(size[1:], 4)
        (left, see_left), (right, see_right) = LAYOUTS[layout](a), LAYOUTS[layout](b)
        np.testing.assert_array_equal(to_numpy(see_left(to_device(form, left)) @ to_device(form, b)), a @ b)
        np.testing.assert_array_equal(to_numpy(to_device(form, a) @ see_right(to_device(form, right))), a @ b)


@pytest.mark.parametrize("name", STACKS)
def test_stacks_of_matrices_broadcast(form: cd.device, name: str) -> None:
    """Batch dims broadcast; a vector is a row on the left and a column on the right."""
    left, right = STACKS[name]
    a, b = numbers(left, 5), numbers(right, 6)
    np.testing.assert_array_equal(to_numpy(to_device(form, a) @ to_device(form, b)), a @ b)


def test_a_stack_with_permuted_dims_is_supported(form: cd.device) -> None:
    """The batch dims of a view may have any memory order."""
    a, b = numbers((3, 2, 5, 4), 7), numbers((2, 3, 4, 6), 8)
    np.testing.assert_array_equal(
        to_numpy(to_device(form, a).transpose(0, 1) @ to_device(form, b)), a.swapaxes(0, 1) @ b
    )


KINDS = [("device", k) for k in ("float64", "complex64", "int8", "int64", "uint8", "bool")]
KINDS += [("lanes", k) for k in ("complex64", "int8", "bool")]
"""The forms for GPUs compile slowly for a processor, so each conversion between memory and value occurs once."""


@pytest.mark.parametrize(("form", "kind"), KINDS)
def test_every_kind_of_number_multiplies_as_with_numpy(form: str, kind: str, request: pytest.FixtureRequest) -> None:
    """Integers wrap; a product of bools is a disjunction of conjunctions; complex products are correct."""
    device = request.getfixturevalue(form)
    a, b = numbers((13, 300), 9, kind), numbers((300, 18), 10, kind)
    if kind == "bool":
        a[3], b[:, 5] = False, False
    np.testing.assert_array_equal(to_numpy(to_device(device, a) @ to_device(device, b)), a @ b)
    np.testing.assert_array_equal(to_numpy(to_device(device, a) @ to_device(device, b[:, 0])), a @ b[:, 0])


@pytest.mark.parametrize("kind", [cd.float16, cd.bfloat16])
def test_half_types_are_multiplied_in_float32(form: cd.device, kind: cd.dtype) -> None:
    """A sum of many ones is exact, while a sum in the half type would have stopped at 2048 or 256."""
    a = cd.ones(3, 4096, dtype=kind, device=form)
    assert (a @ a.mT).tolist() == [[4096.0] * 3] * 3


@pytest.mark.parametrize("kind", [cd.float16, cd.bfloat16, cd.float32, cd.complex64])
def test_errors_are_of_the_size_of_rounding(form: cd.device, kind: cd.dtype) -> None:
    """Long sums of fractions are close to those in float64."""
    cd.manual_seed(0)
    a, b = cd.randn(6, 2000).to(kind), cd.randn(2000, 16).to(kind)
    wide = cd.complex128 if kind.is_complex else cd.float64
    wanted = to_numpy(a.to(wide)) @ to_numpy(b.to(wide))
    error = np.abs(to_numpy((a.to(form) @ b.to(form)).cpu().to(wide)) - wanted).max()
    assert error <= ROUNDING[kind.name] * np.abs(wanted).max()


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (-2.0, 0.5), (3.0, 0.0)])
def test_a_product_is_added_to_a_matrix(form: cd.device, alpha: float, beta: float) -> None:
    """The result is beta times the matrix plus alpha times the product; at beta 0 the matrix is ignored, also NaN."""
    a, b, start = numbers((13, 300), 11), numbers((300, 130), 12), numbers((130, 13), 13)
    if not beta:
        start[1] = np.nan
    engine = open_device(form).backend.engine(0)
    x, y, s = (to_device(form, v)._payload for v in (a, b, start))
    out = engine.empty((13, 130), cd.float32)
    matmul_kernel(cd.float32, True)(out, x, y, s.restrided((13, 130), (1, 13), 0), alpha, beta)
    wanted = alpha * (a @ b) + (beta * start.T if beta else 0)
    found = np.frombuffer(open_device(form).backend.to_host(out), np.float32).reshape(13, 130)
    np.testing.assert_array_equal(found, wanted)


def test_sums_of_a_matrix_and_a_product_follow_the_reference(form: cd.device) -> None:
    """addmm and baddbmm use the kernel with factors and a broadcast input."""
    a, b, start = numbers((3, 5, 4), 14), numbers((3, 4, 6), 15), numbers((6,), 16)
    x, y, s = to_device(form, a), to_device(form, b), to_device(form, start)
    np.testing.assert_array_equal(to_numpy(cd.addmm(s, x[0], y[0], beta=2, alpha=-3)), 2 * start - 3 * (a[0] @ b[0]))
    np.testing.assert_array_equal(to_numpy(cd.baddbmm(s, x, y, beta=0.5, alpha=2)), 0.5 * start + 2 * (a @ b))


def test_gradients_of_a_product_are_products(form: cd.device) -> None:
    """The adjoints read transposed views of operands and of the gradient."""
    a, b, g = numbers((13, 7), 17), numbers((7, 19), 18), numbers((19, 13), 19)
    x, y = to_device(form, a).requires_grad_(), to_device(form, b).requires_grad_()
    (x @ y).backward(to_device(form, g).T)
    assert x.grad is not None
    assert y.grad is not None
    np.testing.assert_array_equal(to_numpy(x.grad), g.T @ b.T)
    np.testing.assert_array_equal(to_numpy(y.grad), a.T @ g.T)


def test_a_device_without_float64_multiplies_the_rest(single: cd.device) -> None:
    """float32, complex64 and integers do not require float64."""
    for kind in ("float32", "complex64", "int64"):
        a, b = numbers((13, 7), 20, kind), numbers((7, 19), 21, kind)
        np.testing.assert_array_equal(to_numpy(to_device(single, a) @ to_device(single, b)), a @ b)


@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_a_device_without_float64_has_the_reference_multiply(single: cd.device) -> None:
    """The kernel declines float64; the fallback policy may forbid the reference device."""
    a, b = numbers((3, 2), 22, "float64"), numbers((2, 4), 23, "float64")
    x, y = to_device(single, a), to_device(single, b)
    np.testing.assert_array_equal(to_numpy(x @ y), a @ b)
    with (
        cd.fallback("error"),
        pytest.raises(RuntimeError, match="'matmul' is not available on device 'single:0'"),
    ):
        x @ y


MISFITS: list[tuple[tuple[int, ...], tuple[int, ...], str]] = [
    ((2, 3), (4, 5), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
    ((3,), (4, 5), r"shapes cannot be multiplied \(1x3 and 4x5\)"),
    ((), (3, 3), "arguments to matmul need to be at least 1D, but they are 0D and 2D"),
    ((2, 2), (), "arguments to matmul need to be at least 1D, but they are 2D and 0D"),
]


@pytest.mark.parametrize(("left", "right", "words"), MISFITS)
def test_shapes_that_do_not_fit_are_refused(
    engine: Engine, device: cd.device, left: tuple[int, ...], right: tuple[int, ...], words: str
) -> None:
    """The kernel names the shapes; the operator's rule replaces the error by PyTorch's."""
    with pytest.raises(RuntimeError, match=r"shapes \(.*\) and \(.*\) do not match"):
        matmul(engine.empty(left, cd.float32), engine.empty(right, cd.float32))
    with pytest.raises(RuntimeError, match=words):
        cd.ones(left, device=device) @ cd.ones(right, device=device)

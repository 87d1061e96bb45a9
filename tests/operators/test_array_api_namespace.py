"""The names of candelabra.array_api with the standard's signatures; dtypes, inspection, extensions."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import candelabra as cd
import candelabra.array_api as xp
import numpy as np
import pytest
from candelabra.array_api import Array

SIGNATURES = """
abs(x, /) acos(x, /) acosh(x, /) add(x1, x2, /) all(x, /, *, axis, keepdims) any(x, /, *, axis, keepdims)
arange(start, /, stop, step, *, dtype, device) argmax(x, /, *, axis, keepdims) argmin(x, /, *, axis, keepdims)
argsort(x, /, *, axis, descending, stable) asarray(obj, /, *, dtype, device, copy) asin(x, /) asinh(x, /)
astype(x, dtype, /, *, copy, device) atan(x, /) atan2(x1, x2, /) atanh(x, /) bitwise_and(x1, x2, /)
bitwise_invert(x, /) bitwise_left_shift(x1, x2, /) bitwise_or(x1, x2, /) bitwise_right_shift(x1, x2, /)
bitwise_xor(x1, x2, /) broadcast_arrays(*arrays) broadcast_shapes(*shapes) broadcast_to(x, /, shape)
can_cast(from_, to, /) ceil(x, /) clip(x, /, min, max) concat(arrays, /, *, axis) conj(x, /) copysign(x1, x2, /)
cos(x, /) cosh(x, /) count_nonzero(x, /, *, axis, keepdims) cumulative_prod(x, /, *, axis, dtype, include_initial)
cumulative_sum(x, /, *, axis, dtype, include_initial) diff(x, /, *, axis, n, prepend, append) divide(x1, x2, /)
empty(shape, *, dtype, device) empty_like(x, /, *, dtype, device) equal(x1, x2, /) exp(x, /) expand_dims(x, /, axis)
expm1(x, /) eye(n_rows, n_cols, /, *, k, dtype, device) finfo(type, /) flip(x, /, *, axis) floor(x, /)
floor_divide(x1, x2, /) from_dlpack(x, /, *, device, copy) full(shape, fill_value, *, dtype, device)
full_like(x, /, fill_value, *, dtype, device) greater(x1, x2, /) greater_equal(x1, x2, /) hypot(x1, x2, /)
iinfo(type, /) imag(x, /) isdtype(dtype, kind) isfinite(x, /) isin(x1, x2, /, *, invert) isinf(x, /) isnan(x, /)
less(x1, x2, /) less_equal(x1, x2, /) linspace(start, stop, /, num, *, dtype, device, endpoint) log(x, /) log10(x, /)
log1p(x, /) log2(x, /) logaddexp(x1, x2, /) logical_and(x1, x2, /) logical_not(x, /) logical_or(x1, x2, /)
logical_xor(x1, x2, /) matmul(x1, x2, /) matrix_transpose(x, /) max(x, /, *, axis, keepdims) maximum(x1, x2, /)
mean(x, /, *, axis, keepdims) meshgrid(*arrays, indexing) min(x, /, *, axis, keepdims) minimum(x1, x2, /)
moveaxis(x, source, destination, /) multiply(x1, x2, /) negative(x, /) nextafter(x1, x2, /) nonzero(x, /)
not_equal(x1, x2, /) ones(shape, *, dtype, device) ones_like(x, /, *, dtype, device) permute_dims(x, /, axes)
positive(x, /) pow(x1, x2, /) prod(x, /, *, axis, dtype, keepdims) real(x, /) reciprocal(x, /) remainder(x1, x2, /)
repeat(x, repeats, /, *, axis) reshape(x, /, shape, *, copy) result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis) round(x, /) searchsorted(x1, x2, /, *, side, sorter) sign(x, /) signbit(x, /) sin(x, /)
sinh(x, /) sort(x, /, *, axis, descending, stable) sqrt(x, /) square(x, /) squeeze(x, /, axis)
stack(arrays, /, *, axis) std(x, /, *, axis, correction, keepdims) subtract(x1, x2, /)
sum(x, /, *, axis, dtype, keepdims) take(x, indices, /, *, axis) take_along_axis(x, indices, /, *, axis) tan(x, /)
tanh(x, /) tensordot(x1, x2, /, *, axes) tile(x, repetitions, /) tril(x, /, *, k) triu(x, /, *, k) trunc(x, /)
unique_all(x, /) unique_counts(x, /) unique_inverse(x, /) unique_values(x, /) unstack(x, /, *, axis)
var(x, /, *, axis, correction, keepdims) vecdot(x1, x2, /, *, axis) where(condition, x1, x2, /)
zeros(shape, *, dtype, device) zeros_like(x, /, *, dtype, device) __array_namespace_info__()
linalg.cholesky(x, /, *, upper) linalg.cross(x1, x2, /, *, axis) linalg.det(x, /) linalg.diagonal(x, /, *, offset)
linalg.eig(x, /) linalg.eigh(x, /) linalg.eigvals(x, /) linalg.eigvalsh(x, /) linalg.inv(x, /) linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims, ord) linalg.matrix_power(x, n, /) linalg.matrix_rank(x, /, *, rtol)
linalg.matrix_transpose(x, /) linalg.outer(x1, x2, /) linalg.pinv(x, /, *, rtol) linalg.qr(x, /, *, mode)
linalg.slogdet(x, /) linalg.solve(x1, x2, /) linalg.svd(x, /, *, full_matrices) linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes) linalg.trace(x, /, *, offset, dtype) linalg.vecdot(x1, x2, /, *, axis)
linalg.vector_norm(x, /, *, axis, keepdims, ord)
fft.fft(x, /, *, n, axis, norm) fft.ifft(x, /, *, n, axis, norm) fft.fftn(x, /, *, s, axes, norm)
fft.ifftn(x, /, *, s, axes, norm) fft.rfft(x, /, *, n, axis, norm) fft.irfft(x, /, *, n, axis, norm)
fft.rfftn(x, /, *, s, axes, norm) fft.irfftn(x, /, *, s, axes, norm) fft.hfft(x, /, *, n, axis, norm)
fft.ihfft(x, /, *, n, axis, norm) fft.fftfreq(n, /, *, d, dtype, device) fft.rfftfreq(n, /, *, d, dtype, device)
fft.fftshift(x, /, *, axes) fft.ifftshift(x, /, *, axes)
"""
WHOLE = [entry.strip() + ")" for entry in SIGNATURES.replace("\n", " ").split(")") if entry.strip()]


@pytest.mark.parametrize("signature", WHOLE)
def test_signatures_are_the_standards(signature: str) -> None:
    """Every function has the standard's parameters and kinds, and documentation under its name."""
    path, _, parameters = signature.partition("(")
    function: Any = xp
    for part in path.split("."):
        function = getattr(function, part)
    code = inspect.signature(function)
    bare = code.replace(
        parameters=[p.replace(annotation=p.empty, default=p.empty) for p in code.parameters.values()]
        if not any(p.default is not p.empty for p in code.parameters.values())
        else [p.replace(annotation=p.empty, default=None) if p.default is not p.empty else
              p.replace(annotation=p.empty) for p in code.parameters.values()],
        return_annotation=code.empty,
    )  # fmt: skip
    assert str(bare).replace("=None", "") == f"({parameters}"
    assert function.__name__ == path.rpartition(".")[2]
    assert function.__doc__


def test_constants_and_version() -> None:
    """The namespace has the standard's constants and its version."""
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, np.inf, None)
    assert np.isnan(xp.nan)
    assert xp.__array_api_version__ == "2025.12"
    assert cd.array_api is xp


# -- dtypes -----------------------------------------------------------------------------------------------------------
def test_limits_of_dtypes() -> None:
    """finfo and iinfo accept dtypes and arrays and have the dtype; a complex dtype has the limits of its real dtype."""
    for dtype in ("float32", "float64"):
        for found in (xp.finfo(getattr(xp, dtype)), xp.finfo(xp.ones(1, dtype=getattr(xp, dtype)))):
            want = np.finfo(dtype)
            assert (found.bits, found.eps, found.max, found.min) == (want.bits, want.eps, want.max, want.min)
            assert found.smallest_normal == want.smallest_normal
            assert found.dtype is getattr(xp, dtype)
    assert xp.finfo(xp.complex64).dtype is xp.float32
    for dtype in ("int8", "uint64"):
        info = xp.iinfo(getattr(xp, dtype))
        assert (info.bits, info.max, info.min) == (np.iinfo(dtype).bits, np.iinfo(dtype).max, np.iinfo(dtype).min)
        assert info.dtype is getattr(xp, dtype)
    with pytest.raises(TypeError, match="requires a floating point input type"):
        xp.finfo(xp.int8)
    with pytest.raises(TypeError, match="requires an integer input type"):
        xp.iinfo(xp.float32)


def test_kinds_of_dtypes() -> None:
    """isdtype accepts the standard's names, dtypes and tuples of them."""
    assert xp.isdtype(xp.int8, "signed integer")
    assert xp.isdtype(xp.uint8, ("real floating", "unsigned integer"))
    assert not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.complex64, "complex floating")
    assert xp.isdtype(xp.float32, xp.float32)
    assert not xp.isdtype(xp.float32, (xp.float64, "integral"))
    with pytest.raises(ValueError, match="expects a kind of dtypes, not 'odd'"):
        xp.isdtype(xp.int8, "odd")
    with pytest.raises(TypeError, match="expects a dtype, a name or a tuple of these, not 3"):
        xp.isdtype(xp.int8, 3)


def test_promotion_without_arrays() -> None:
    """result_type accepts dtypes, arrays and numbers; can_cast is True if promotion gives the target."""
    assert xp.result_type(xp.uint8, xp.int8) is xp.int16
    assert xp.result_type(xp.ones((), dtype=xp.float64), xp.ones(2)) is xp.float64
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.result_type(xp.int8, 3) is xp.int8
    assert xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.int16, xp.int8)
    assert xp.can_cast(xp.ones(1), xp.complex64)
    assert not xp.can_cast(xp.float64, xp.complex64)
    assert not xp.can_cast(xp.int8, xp.float64)
    assert not xp.can_cast(xp.int8, xp.uint64)
    with pytest.raises(ValueError, match="expects at least one array or dtype"):
        xp.result_type(1, 2.0)
    with pytest.raises(TypeError, match="expects arrays, dtypes and numbers, not str"):
        xp.result_type("int8")


def test_astype_copies_and_refuses() -> None:
    """A copy is the default; with copy=False the same array is returned if possible; complex to real is refused."""
    x = xp.ones(2)
    assert xp.astype(x, xp.float32) is not x
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.int8, device=x.device).dtype is xp.int8
    with pytest.raises(TypeError, match=r"astype\(\) cannot convert complex64 to float32: use real\(x\)"):
        xp.astype(xp.ones(2, dtype=xp.complex64), xp.float32)


# -- inspection -------------------------------------------------------------------------------------------------------
def test_inspection() -> None:
    """Capabilities, devices, dtypes by kind and the defaults are listed."""
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True, "data-dependent shapes": True, "max dimensions": None,
    }  # fmt: skip
    assert info.default_device() == cd.get_default_device()
    assert info.default_device() in info.devices()
    assert type(info.devices()) is tuple
    assert info.default_dtypes() == {
        "real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64, "indexing": xp.int64,
    }  # fmt: skip
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes(device=info.default_device(), kind=("bool", "unsigned integer"))) == {
        "bool", "uint8", "uint16", "uint32", "uint64",
    }  # fmt: skip
    assert len(info.dtypes()) == 13
    assert info.dtypes(kind=()) == {}


# -- linear algebra ---------------------------------------------------------------------------------------------------
def close(got: Any, want: Any, dtype: str = "float64") -> None:
    """Assert that the result is an Array of this dtype with NumPy's values."""
    assert isinstance(got, Array)
    assert got.dtype.name == dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4 if dtype in ("float32", "complex64") else 1e-9, atol=1e-9)


class Matrices(NamedTuple):
    """Stacks of two matrices: arbitrary ones, with three columns, and positive definite ones."""

    square: Any
    tall: Any
    definite: Any


@pytest.fixture
def matrices(rng: np.random.Generator) -> Matrices:
    """Return stacks of matrices of normal numbers."""
    square = rng.normal(size=(2, 4, 4))
    return Matrices(square, rng.normal(size=(2, 4, 3)), square @ square.mT + 4 * np.eye(4))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("det", "square"), ("inv", "square"), ("eigvalsh", "definite"), ("svdvals", "tall"), ("cholesky", "definite"),
        ("pinv", "tall"),
    ],
)  # fmt: skip
def test_functions_of_matrices_are_numpys(name: str, kind: str, matrices: Matrices) -> None:
    """Stacks of matrices in both precisions agree."""
    x = getattr(matrices, kind)
    close(getattr(xp.linalg, name)(xp.asarray(x)), getattr(np.linalg, name)(x))
    single = getattr(xp.linalg, name)(xp.asarray(x.astype("float32")))
    assert single.dtype is xp.float32


def test_decompositions_multiply_back(matrices: Matrices) -> None:
    """The product of the named tuples' fields is the matrix."""
    M, N, H = matrices
    q, r = xp.linalg.qr(xp.asarray(N))
    close(q @ r, N)
    assert xp.linalg.qr(xp.asarray(N), mode="complete").Q.shape == (2, 4, 4)
    with pytest.raises(ValueError, match="expects mode 'reduced' or 'complete', not 'r'"):
        xp.linalg.qr(xp.asarray(N), mode="r")
    u, s, vh = xp.linalg.svd(xp.asarray(N), full_matrices=False)
    close(u * s[:, None, :] @ vh, N)
    assert xp.linalg.svd(xp.asarray(N)).U.shape == (2, 4, 4)
    values, vectors = xp.linalg.eigh(xp.asarray(H))
    close(vectors * values[:, None, :] @ vectors.mT, H)
    found = xp.linalg.eig(xp.asarray(M))
    close(
        xp.asarray(M) @ found.eigenvectors, (found.eigenvectors * found.eigenvalues[:, None, :]).numpy(), "complex128"
    )
    close(xp.linalg.eigvals(xp.asarray(M)), found.eigenvalues.numpy(), "complex128")
    sign, logarithm = xp.linalg.slogdet(xp.asarray(M))
    close(sign * xp.exp(logarithm), np.linalg.det(M))
    close(xp.linalg.cholesky(xp.asarray(H), upper=True).mT, np.linalg.cholesky(H))


def test_solve_reads_vectors_by_their_rank(matrices: Matrices, rng: np.random.Generator) -> None:
    """One dim is a vector, two are a matrix, also if a stack of vectors would match."""
    M, N, _ = matrices
    close(xp.linalg.solve(xp.asarray(M), xp.asarray(N)), np.linalg.solve(M, N))
    close(xp.linalg.solve(xp.asarray(M), xp.asarray(N[0, :, 0])), np.linalg.solve(M, N[0, :, 0]))
    pairs, matrix = rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2))
    close(xp.linalg.solve(xp.asarray(pairs), xp.asarray(matrix)), np.linalg.solve(pairs, matrix))


def test_products_promote(matrices: Matrices, rng: np.random.Generator) -> None:
    """matmul, outer, vecdot, tensordot and cross promote dtypes whatever the ranks, and keep integers."""
    M = matrices.square
    f, d, i = M.astype("float32"), M, np.arange(9, dtype="int8").reshape(3, 3)
    close(xp.matmul(xp.asarray(f), xp.asarray(d[0])), f @ d[0])
    close(xp.linalg.outer(xp.asarray(f[0, 0]), xp.asarray(d[0, 1])), np.outer(f[0, 0], d[0, 1]))
    close(xp.vecdot(xp.asarray(f), xp.asarray(d[0])), np.vecdot(f, d[0]))
    close(xp.vecdot(xp.asarray(i), xp.asarray(i), axis=-2), np.vecdot(i, i, axis=-2), "int8")
    z = M[0] + 1j * M[1]
    close(xp.vecdot(xp.asarray(z), xp.asarray(z)), np.vecdot(z, z), "complex128")
    for axes, other in ((0, M[0]), (1, M[0]), (2, M[0]), (((0, 2), (0, 1)), M), (((-1,), (0,)), M[1]), (((), ()), M)):
        close(xp.tensordot(xp.asarray(M), xp.asarray(other), axes=axes), np.tensordot(M, other, axes=axes))
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(2, 1, 3))
    close(xp.linalg.cross(xp.asarray(a), xp.asarray(b)), np.cross(a, b))
    close(xp.linalg.cross(xp.asarray(a.T), xp.asarray(a.T), axis=-2), np.cross(a.T, a.T, axis=-2).T.reshape(3, 4) * 0)


def test_products_refuse_what_does_not_fit() -> None:
    """Vectors of other lengths, arrays that are not 1-d, and mismatched axes are errors."""
    with pytest.raises(ValueError, match=r"outer\(\) expects two vectors"):
        xp.linalg.outer(xp.ones((2, 2)), xp.ones(2))
    with pytest.raises(ValueError, match="expects vectors of one length, got 1 and 3"):
        xp.vecdot(xp.ones(1), xp.ones(3))
    with pytest.raises(ValueError, match="expects a negative axis for arrays of different ranks"):
        xp.vecdot(xp.ones((2, 3)), xp.ones(3), axis=0)
    with pytest.raises(ValueError, match=r"expects axes of equal sizes, got \[2\] and \[3\]"):
        xp.tensordot(xp.ones(2), xp.ones(3), axes=1)
    with pytest.raises(ValueError, match="expects vectors of 3 elements, not 2 and 3"):
        xp.linalg.cross(xp.ones(2), xp.ones(3))


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [True, False])
def test_norms_of_matrices(order: Any, keepdims: bool, matrices: Matrices) -> None:
    """All of the standard's orders are supported."""
    N = matrices.tall
    got = xp.linalg.matrix_norm(xp.asarray(N), ord=order, keepdims=keepdims)
    close(got, np.linalg.matrix_norm(N, ord=order, keepdims=keepdims))


@pytest.mark.parametrize("order", [0, 1, 2, 3.5, -1, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, -1, (0, 2), ()])
def test_norms_of_vectors(order: float, axis: Any, matrices: Matrices) -> None:
    """Any order, along axes or of the flattened array, with the axes kept on request."""
    N = matrices.tall
    for keepdims in (True, False):
        got = xp.linalg.vector_norm(xp.asarray(N), axis=axis, ord=order, keepdims=keepdims)
        close(got, np.linalg.vector_norm(N, axis=axis, ord=order, keepdims=keepdims))


def test_diagonals_powers_ranks(matrices: Matrices) -> None:
    """Diagonals of the last two dims, traces with the dtypes of sums, powers, and ranks with a tolerance are
    correct."""
    M, N, H = matrices
    close(xp.linalg.diagonal(xp.asarray(N), offset=-1), np.linalg.diagonal(N, offset=-1))
    close(xp.linalg.trace(xp.asarray(N), offset=1), np.linalg.trace(N, offset=1))
    assert xp.linalg.trace(xp.ones((2, 2), dtype=xp.uint8)).dtype is xp.uint64
    for n in (-2, 0, 3):
        close(xp.linalg.matrix_power(xp.asarray(M), n), np.linalg.matrix_power(M, n))
    close(xp.linalg.matrix_rank(xp.asarray(N)), [3, 3], "int64")
    close(xp.linalg.matrix_rank(xp.asarray(H), rtol=0.9), np.linalg.matrix_rank(H, rtol=0.9), "int64")


# -- Fourier transforms -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_an_axis(name: str, norm: Any, matrices: Matrices) -> None:
    """Real and complex input of any length along any axis keeps its precision."""
    N = matrices.tall
    x = N if name in ("rfft", "ihfft") else N + 1j * N[::-1]
    for options in ({}, {"n": 6}, {"axis": 1}, {"n": 2, "axis": 0}):
        got, want = getattr(xp.fft, name)(xp.asarray(x), norm=norm, **options), getattr(np.fft, name)(
            x, norm=norm, **options
        )  # fmt: skip
        close(got, want, want.dtype.name)
    single = x.astype("float32" if x.dtype.kind == "f" else "complex64")
    assert getattr(xp.fft, name)(xp.asarray(single)).dtype.itemsize in (4, 8)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_over_axes(name: str, matrices: Matrices) -> None:
    """All axes, or some, with and without sizes, are transformed."""
    N = matrices.tall
    x = N if name == "rfftn" else N + 1j * N[::-1]
    for options in ({}, {"axes": (0, 1)}, {"s": (3, 5), "axes": (-1, 0)}):
        want = getattr(np.fft, name)(x, **options)
        close(getattr(xp.fft, name)(xp.asarray(x), **options), want, want.dtype.name)


@pytest.mark.parametrize("n", [4, 5])
def test_frequencies_and_shifts(n: int, matrices: Matrices) -> None:
    """Frequencies have the default floating dtype; shifts move the zero frequency to the middle and back."""
    N = matrices.tall
    for name in ("fftfreq", "rfftfreq"):
        close(getattr(xp.fft, name)(n, d=0.5), getattr(np.fft, name)(n, d=0.5), "float32")
        close(getattr(xp.fft, name)(n, dtype=xp.float64), getattr(np.fft, name)(n))
    for name in ("fftshift", "ifftshift"):
        close(getattr(xp.fft, name)(xp.asarray(N)), getattr(np.fft, name)(N))
        close(getattr(xp.fft, name)(xp.asarray(N), axes=1), getattr(np.fft, name)(N, axes=1))

"""Interpolation: every mode against PyTorch's figures, derivatives, bytes and half types, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn import functional as F
from candelabra.nn._functional.bands import CACHED, Band, averages, interpolation
from candelabra.nn._operators.resampling import resample, resample_adjoint

from tests.nn.network_samples import array, check_gradients, normal, tensor

LINE = [1.0, 4.0, 2.0, 8.0]
FIGURES: list[tuple[dict[str, Any], list[float]]] = [
    ({"size": 6, "mode": "linear"}, [1, 2.5, 3.6666667, 2.3333333, 5, 8]),
    ({"size": 6, "mode": "linear", "align_corners": True}, [1, 2.8, 3.6, 2.4, 4.4, 8]),
    ({"scale_factor": 1.6, "mode": "linear"}, [1, 2.3125, 3.875, 2.625, 3.875, 7.625]),
    ({"scale_factor": 1.6, "mode": "linear", "recompute_scale_factor": True}, [1, 2.5, 3.666667, 2.333333, 5, 8]),
    ({"scale_factor": 1.6}, [1, 1, 4, 4, 2, 8]),
    ({"scale_factor": 1.6, "mode": "nearest-exact"}, [1, 1, 4, 2, 2, 8]),
    ({"size": 3, "mode": "area"}, [2.5, 3, 5]),
]
"""Results for :data:`LINE`, computed by PyTorch 2.13."""
IMAGE_FIGURES: list[tuple[dict[str, Any], list[float]]] = [
    ({"size": (1, 6), "mode": "bicubic"}, [0.739583, 2.6875, 3.869213, 1.818287, 4.8125, 8.520833]),
    ({"size": (1, 2), "mode": "bicubic", "antialias": True}, [2.235537, 5.028926]),
    ({"size": (1, 2), "mode": "bilinear", "antialias": True}, [2.428571, 4.857143]),
    ({"size": (1, 3), "mode": "lanczos", "antialias": True}, [2.020428, 2.8125, 6.300334]),
]
BYTES = [0, 20, 250, 255, 30, 90]
BYTE_FIGURES: list[tuple[dict[str, Any], list[int]]] = [
    ({"size": (1, 9), "mode": "bilinear"}, [0, 10, 58, 212, 253, 217, 68, 60, 90]),
    ({"size": (1, 9), "mode": "bicubic"}, [0, 0, 55, 217, 255, 222, 57, 39, 95]),
    ({"size": (1, 4), "mode": "bicubic", "antialias": True}, [0, 184, 187, 58]),
    ({"size": (1, 9)}, [0, 0, 20, 250, 250, 255, 30, 30, 90]),
]


@pytest.mark.parametrize(("options", "expected"), FIGURES)
def test_lines_agree_with_torch(options: dict[str, Any], expected: list[float]) -> None:
    """Each mode and each way to give the size has PyTorch 2.13's numbers."""
    np.testing.assert_allclose(array(F.interpolate(tensor([[LINE]]), **options))[0, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(("options", "expected"), IMAGE_FIGURES)
def test_images_agree_with_torch(options: dict[str, Any], expected: list[float]) -> None:
    """Cubic and antialiased modes have PyTorch 2.13's numbers."""
    np.testing.assert_allclose(array(F.interpolate(tensor([[[LINE]]]), **options))[0, 0, 0], expected, rtol=1e-5)


@pytest.mark.parametrize(("options", "expected"), BYTE_FIGURES)
def test_bytes_agree_with_torch(options: dict[str, Any], expected: list[int]) -> None:
    """uint8 is interpolated with weights of 16 bits and clamped, which gives PyTorch 2.13's numbers exactly."""
    out = F.interpolate(tensor(np.array([[[BYTES]]], np.uint8)), **options)
    assert out.dtype is cd.uint8
    assert array(out)[0, 0, 0].tolist() == expected


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 2, 5), {"size": 8, "mode": "linear"}),
        ((2, 2, 5, 4), {"size": (3, 7), "mode": "bilinear", "align_corners": True}),
        ((1, 2, 5, 4), {"scale_factor": (0.7, 1.8), "mode": "bicubic"}),
        ((1, 2, 6, 7), {"size": (2, 3), "mode": "lanczos", "antialias": True}),
        ((1, 2, 3, 2, 4), {"scale_factor": 1.5, "mode": "trilinear"}),
        ((1, 2, 3, 5), {"size": (7, 2)}),
        ((1, 2, 3, 5), {"size": (2, 7), "mode": "area"}),
    ],
)
def test_interpolation_has_both_derivatives(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    """Derivatives of both orders agree with differences."""
    check_gradients(lambda x: F.interpolate(x * x, **options), normal(*shape))


def test_interpolation_takes_any_layout_and_empty_batches() -> None:
    """A transposed input gives the numbers of its copy, a batch of 0 gives a batch of 0."""
    x = tensor(normal(2, 5, 4, 3)).permute(0, 3, 1, 2)
    for mode in ("nearest", "bilinear", "bicubic"):
        np.testing.assert_array_equal(
            array(F.interpolate(x, (7, 2), mode=mode)), array(F.interpolate(x.contiguous(), (7, 2), mode=mode))
        )
        assert F.interpolate(cd.ones(0, 3, 4, 4), 6, mode=mode).shape == (0, 3, 6, 6)


def test_interpolation_to_the_same_size_returns_a_copy() -> None:
    """The result is another tensor with the same numbers, and no alias."""
    x = cd.arange(6.0).reshape(1, 1, 2, 3)
    y = F.interpolate(x, (2, 3), mode="bilinear")
    assert y.tolist() == x.tolist()
    y += 1
    assert x.sum().item() == 15.0


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16])
def test_half_types_compute_in_float32(dtype: Any) -> None:
    """A half type gives the rounded result of float32."""
    x = tensor(normal(1, 1, 7, 7)).to(dtype)
    wide = F.interpolate(x.to(cd.float32), 5, mode="bicubic")
    # Rounding after each of two dims: at most a unit in the last place.
    error = (F.interpolate(x, 5, mode="bicubic").to(cd.float32) - wide).abs().max().item()
    assert error <= 4 * cd.finfo(dtype).eps


def test_numbers_that_are_not_finite_stay_in_their_neighborhood() -> None:
    """An infinity or NaN affects the results with a weight for it, and no others."""
    x = cd.ones(1, 1, 8, 8)
    x[0, 0, 0, 0] = float("inf")
    x[0, 0, 7, 7] = float("nan")
    y = F.interpolate(x, 16, mode="bilinear")
    assert y[0, 0, 0, 0].isinf().item()
    assert y[0, 0, 15, 15].isnan().item()
    assert y.isfinite().sum().item() == 256 - 9 - 9


def dense(band: Band, size: int) -> Any:
    """Return a band as a matrix."""
    start, weight = array(band.start), array(band.weight)
    matrix = np.zeros((len(start), size))
    for k in range(weight.shape[1]):
        matrix[np.arange(len(start)), start + k] += weight[:, k]
    return matrix


def test_products_with_a_band_and_its_transpose_are_those_of_the_matrix() -> None:
    """Both operators agree with the dense matrix, also with columns that no row reads."""
    for band, size in (
        (interpolation("bilinear", 5, 9, None, False, False, True), 5),
        (interpolation("nearest", 9, 4, None, False, False, True), 9),
        (interpolation("bicubic", 40, 7, None, False, True, True), 40),
        (averages(7, 3), 7),
    ):
        assert band is not None
        matrix = dense(band, size)
        forward = array(resample(cd.eye(size, dtype=cd.float64), 0, *band))
        back = array(resample_adjoint(cd.eye(len(matrix), dtype=cd.float64), 0, *band, size))
        np.testing.assert_allclose(forward, matrix, rtol=1e-15)
        np.testing.assert_allclose(back, matrix.T, rtol=1e-15)


def test_bands_of_small_sizes_alone_are_cached() -> None:
    """A second call of a small size returns the same tables, a large size computes them again."""
    for size, cached in ((CACHED, True), (CACHED + 1, False)):
        first, second = averages(size, 3), averages(size, 3)
        assert (first is second) is cached
        assert cd.equal(first.weight, second.weight)


def test_bands_from_inference_mode_serve_training() -> None:
    """A table that inference mode computes first can be saved for a derivative."""
    x = cd.ones(1, 1, 13)
    with cd.inference_mode():
        expected = F.interpolate(x, 29, mode="linear")
    x.requires_grad_()
    y = F.interpolate(x, 29, mode="linear")
    y.sum().backward()
    assert y.equal(expected)
    assert abs(x.grad.sum().item() - 29) < 1e-4  # The weights of each of 29 rows sum to 1.


@pytest.mark.parametrize("size", [300, 1000])
def test_large_dims_are_resampled_in_blocks(size: int) -> None:
    """Many rows give the numbers of the definition, forward and backward."""
    x = tensor(normal(2, size))
    x.requires_grad_()
    band = interpolation("linear", size, 2 * size + 7, None, False, False, False)
    assert band is not None
    matrix = dense(band, size)
    y = F.interpolate(x.unsqueeze(0), 2 * size + 7, mode="linear")[0]
    np.testing.assert_allclose(array(y), array(x) @ matrix.T, rtol=1e-12, atol=1e-12)
    y.backward(tensor(np.ones((2, 2 * size + 7))))
    np.testing.assert_allclose(array(x.grad)[0], matrix.sum(0), rtol=1e-12)


def test_deprecated_names_warn_and_interpolate() -> None:
    """upsample and its variants give interpolate's numbers, with PyTorch's warning."""
    x = tensor(normal(1, 2, 3, 4))
    for name, options in (
        ("upsample", {}),
        ("upsample_nearest", {}),
        ("upsample_bilinear", {"mode": "bilinear", "align_corners": True}),
    ):
        with pytest.warns(UserWarning, match=f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate`"):
            found = getattr(F, name)(x, scale_factor=2)
        np.testing.assert_array_equal(array(found), array(F.interpolate(x, scale_factor=2, **options)))


ERRORS: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ((1, 2, 4, 4), {}, ValueError, "either size or scale_factor should be defined"),
    ((1, 2, 4, 4), {"size": 3, "scale_factor": 2}, ValueError, "only one of size or scale_factor should be defined"),
    ((1, 2, 4, 4), {"size": (3,)}, ValueError, "Input and output must have the same number of spatial dimensions"),
    ((1, 2, 4, 4), {"scale_factor": (3,)}, ValueError, "Input and scale_factor must have the same number of spatial"),
    ((1, 2, 4, 4), {"size": 3.5}, TypeError, "expected size to be one of int or Tuple"),
    ((1, 2, 4, 4), {"scale_factor": "2"}, TypeError, "expected scale_factor to be numbers"),
    ((1, 2, 4, 4), {"size": 3, "recompute_scale_factor": True}, ValueError, "not meaningful with an explicit size"),
    ((1, 2, 4, 4), {"size": 3, "align_corners": True}, ValueError, "align_corners option can only be set with"),
    ((1, 2, 4, 4), {"size": 3, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
    ((2, 4), {"size": 3}, NotImplementedError, r"Only 3D, 4D and 5D input Tensors supported \(got 2D\)"),
    ((1, 2, 4, 4), {"size": 3, "mode": "cubic"}, NotImplementedError, r"\(got cubic\)"),
    ((1, 2, 4), {"size": 3, "antialias": True, "mode": "linear"}, ValueError, "Anti-alias option is restricted to"),
    ((1, 2, 4, 4), {"size": 3, "mode": "lanczos"}, ValueError, "Lanczos mode requires antialias=True"),
    (
        (1, 2, 4, 4),
        {"size": 3, "mode": "lanczos", "align_corners": True, "antialias": True},
        ValueError,
        "Lanczos mode does not support align_corners=True",
    ),
    (
        (1, 2, 4),
        {"size": 0},
        RuntimeError,
        r"should be greater than 0, but got input \(W: 4\) and output \(W: 0\)",
    ),
    (
        (1, 2, 0, 4),
        {"size": 3},
        RuntimeError,
        r"should be greater than 0, but got input \(H: 0, W: 4\) output \(H: 3, W: 3\)",
    ),
    (
        (1, 0, 4),
        {"size": 3},
        RuntimeError,
        r"Non-empty 3D data tensor expected but got a tensor with sizes \[1, 0, 4\]",
    ),
]


@pytest.mark.parametrize(("shape", "options", "error", "text"), ERRORS)
def test_interpolation_refuses(shape: tuple[int, ...], options: dict[str, Any], error: Any, text: str) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    with pytest.raises(error, match=text):
        F.interpolate(cd.ones(shape), **options)


@pytest.mark.parametrize(
    ("dtype", "options", "text"),
    [
        (cd.int64, {}, "\"compute_indices_weights_nearest\" not implemented for 'Long'"),
        (cd.bool, {"mode": "bilinear"}, "\"compute_indices_weights_linear\" not implemented for 'Bool'"),
        (cd.float16, {"mode": "bicubic", "antialias": True}, '"compute_index_ranges_weights" not implemented'),
    ],
)
def test_interpolation_refuses_dtypes(dtype: Any, options: dict[str, Any], text: str) -> None:
    """Dtypes that PyTorch refuses raise its NotImplementedError."""
    with pytest.raises(NotImplementedError, match=text):
        F.interpolate(cd.ones(1, 1, 4, 4).to(dtype), 3, **options)

"""Convolution and its two adjoints: values, derivatives of both orders, shapes, errors."""

from __future__ import annotations

from itertools import product
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import grad
from candelabra.nn._operators import convolution

from tests.nn.network_samples import array, check_gradients, correlate, normal, tensor

GEOMETRIES = [
    (stride, padding, dilation, groups)
    for stride, padding, dilation, groups in product((1, 2, 3), (0, 1, 2), (1, 2), (1, 2))
]


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), GEOMETRIES)
def test_conv2d_is_the_sum_over_the_window(stride: int, padding: int, dilation: int, groups: int) -> None:
    """conv2d agrees with its definition for every combination of stride, padding, dilation and groups."""
    x, w, b = normal(2, 4, 8, 7), normal(6, 4 // groups, 3, 2), normal(6)
    out = cd.conv2d(tensor(x), tensor(w), tensor(b), stride, padding, dilation, groups)
    expected = correlate(x, w, (stride,) * 2, (padding,) * 2, (dilation,) * 2, groups) + b[:, None, None]
    np.testing.assert_allclose(array(out), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), GEOMETRIES[::3])
def test_conv2d_has_both_derivatives(stride: int, padding: int, dilation: int, groups: int) -> None:
    """First and second derivatives by input, weight and bias agree with finite differences."""
    check_gradients(
        lambda x, w, b: cd.conv2d(x, w, b, stride, padding, dilation, groups),
        normal(2, 4, 8, 7),
        normal(4, 4 // groups, 3, 2),
        normal(4),
    )


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), GEOMETRIES)
def test_transposed_convolution_is_the_adjoint(stride: int, padding: int, dilation: int, groups: int) -> None:
    """<conv(x, w), y> = <x, conv_transpose(y, w)> = <w, conv_weight(x, y)> for every geometry."""
    sizes = ((stride,) * 2, (padding,) * 2, (dilation,) * 2, groups)
    x, w = normal(2, 4, 9, 8), normal(6, 4 // groups, 3, 2)
    out = correlate(x, w, *sizes)
    y = normal(*out.shape, seed=3)
    back = array(convolution.conv_input(tensor(y), tensor(w), x.shape, *sizes))
    weight = array(convolution.conv_weight(tensor(x), tensor(y), w.shape, *sizes))
    np.testing.assert_allclose([(back * x).sum(), (weight * w).sum()], (out * y).sum(), rtol=1e-10)


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks_follow_the_same_definition(rank: int) -> None:
    """conv1d and conv3d agree with the definition, also with one argument per dim."""
    function = cd.conv1d if rank == 1 else cd.conv3d
    x, w = normal(2, 3, *[6, 5, 7][:rank]), normal(4, 3, *[3, 2, 3][:rank])
    sizes = ((2, 1, 2)[:rank], (1, 0, 2)[:rank], (1, 2, 1)[:rank])
    out = function(tensor(x), tensor(w), None, *sizes)
    np.testing.assert_allclose(array(out), correlate(x, w, *sizes, 1), rtol=1e-10, atol=1e-12)
    check_gradients(lambda x, w: function(x, w, None, *sizes), x, w)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "extra", "dilation", "groups"),
    [(1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 2, 1, 2, 1), (1, 1, 1, 2, 2)],
)
def test_conv_transpose_scatters_the_kernel(
    rank: int, stride: int, padding: int, extra: int, dilation: int, groups: int
) -> None:
    """Each input element adds its multiple of the kernel at its position; padding crops and output_padding extends."""
    function = {1: cd.conv_transpose1d, 2: cd.conv_transpose2d, 3: cd.conv_transpose3d}[rank]
    x, w, b = normal(2, 4, *[4, 3, 3][:rank]), normal(4, 6 // groups, *[3, 2, 2][:rank]), normal(6)
    out = array(function(tensor(x), tensor(w), tensor(b), stride, padding, extra, groups, dilation))
    full = [
        (n - 1) * stride + dilation * (k - 1) + 1 + extra + padding
        for n, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    expected = np.zeros((2, 6, *full))
    for c, place, k in product(range(4), product(*map(range, x.shape[2:])), product(*map(range, w.shape[2:]))):
        share = 6 // groups
        start = c // (4 // groups) * share
        at = tuple(i * stride + j * dilation for i, j in zip(place, k, strict=True))
        expected[(slice(None), slice(start, start + share), *at)] += (
            x[(slice(None), c, *place)][:, None] * w[(c, slice(None), *k)][None]
        )
    expected = expected[(..., *[slice(padding, padding + s) for s in out.shape[2:]])]
    assert out.shape[2:] == expected.shape[2:]
    np.testing.assert_allclose(out, expected + b.reshape(6, *[1] * rank), rtol=1e-10, atol=1e-12)


def test_conv_transpose_has_both_derivatives() -> None:
    """Derivatives of a transposed convolution with stride and groups agree with finite differences."""
    check_gradients(
        lambda x, w, b: cd.conv_transpose2d(x, w, b, 2, 1, 1, 2), normal(2, 4, 4, 3), normal(4, 3, 3, 2), normal(6)
    )


def test_conv_transpose_with_more_output_padding_than_stride_has_both_derivatives() -> None:
    """The gradient has the input's shape also if dilation permits an ``output_padding`` above the stride."""
    check_gradients(
        lambda x, w, b: cd.conv_transpose2d(x, w, b, (3, 2), (1, 2), (2, 3), 2, (4, 4)),
        normal(2, 2, 4, 4),
        normal(2, 2, 2, 3),
        normal(4),
    )


@pytest.mark.parametrize(("kernel", "dilation"), [((3, 3), 1), ((2, 4), 1), ((3, 2), 3)])
def test_same_padding_keeps_the_size(kernel: tuple[int, int], dilation: int) -> None:
    """padding="same" adds the odd zero at the end, and "valid" adds none."""
    x, w = normal(2, 3, 9, 8), normal(4, 3, *kernel)
    total = [dilation * (k - 1) for k in kernel]
    wide = np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]])
    expected = correlate(wide, w, (1, 1), (0, 0), (dilation,) * 2, 1)
    np.testing.assert_allclose(array(cd.conv2d(tensor(x), tensor(w), None, 1, "same", dilation)), expected, atol=1e-12)
    assert cd.conv2d(tensor(x), tensor(w), None, 1, "valid", dilation).shape == (2, 4, 9 - total[0], 8 - total[1])
    check_gradients(lambda x, w: cd.conv2d(x, w, None, 1, "same", dilation), x, w)


def test_conv_without_a_batch_dim() -> None:
    """An input (C, H, W) gives the result of a batch of one, without the batch dim."""
    x, w = normal(3, 5, 5), normal(2, 3, 3, 3)
    np.testing.assert_array_equal(
        array(cd.conv2d(tensor(x), tensor(w))), array(cd.conv2d(tensor(x[None]), tensor(w)))[0]
    )
    v = normal(2, 3, 3, 3)
    assert cd.conv_transpose2d(tensor(normal(2, 5, 5)), tensor(v)).shape == (3, 7, 7)


def test_conv_of_an_empty_batch() -> None:
    """An empty batch gives an empty result, and a zero gradient for the weight."""
    x, w = tensor(np.zeros((0, 3, 5, 5)), True), tensor(normal(2, 3, 3, 3), True)
    out = cd.conv2d(x, w, padding=1)
    assert out.shape == (0, 2, 5, 5)
    to_input, to_weight = grad(out.sum(), [x, w])
    assert to_input.shape == (0, 3, 5, 5)
    np.testing.assert_array_equal(array(to_weight), np.zeros((2, 3, 3, 3)))


def test_conv_reads_any_layout() -> None:
    """Permuted and expanded inputs, weights and gradients give the results of their contiguous copies."""
    x, w = normal(5, 6, 2, 3), normal(3, 3, 4, 3)
    out = cd.conv2d(tensor(x).permute(2, 3, 0, 1), tensor(w).permute(2, 0, 1, 3), padding=1)
    expected = correlate(x.transpose(2, 3, 0, 1), w.transpose(2, 0, 1, 3), (1, 1), (1, 1), (1, 1), 1)
    np.testing.assert_allclose(array(out), expected, rtol=1e-10, atol=1e-12)
    y = tensor(x.transpose(2, 3, 0, 1), True)
    (g,) = grad(cd.conv2d(y, tensor(w).permute(2, 0, 1, 3)).sum(), [y])  # the gradient of sum() is an expanded 1
    one = np.ones((2, 4, 3, 4))
    again = convolution.conv_input(tensor(one), tensor(w.transpose(2, 0, 1, 3)), y.shape, (1, 1), (0, 0), (1, 1), 1)
    np.testing.assert_allclose(array(g), array(again), rtol=1e-10)


def test_conv_propagates_special_values_to_their_windows() -> None:
    """NaN and infinity reach exactly the outputs whose window contains them."""
    x = np.zeros((1, 1, 6, 6))
    x[0, 0, 0, 5], x[0, 0, 5, 0] = np.nan, np.inf
    out = array(cd.conv2d(tensor(x), tensor(np.ones((1, 9, 3, 3))[:, :1]), padding=1))[0, 0]
    assert np.isnan(out).sum() == 4
    assert np.isinf(out).sum() == 4
    weight = convolution.conv_weight(
        tensor(x), tensor(np.eye(6).reshape(1, 1, 6, 6)), (1, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1
    )
    np.testing.assert_array_equal(array(weight)[0, 0, [0, 2], [0, 2]], 0.0)  # the two windows that contain neither


def test_conv_of_integers_and_complex_numbers() -> None:
    """Integers are exact; complex numbers are multiplied without conjugation, and their gradients with it."""
    x, w = np.arange(50).reshape(1, 2, 5, 5), np.arange(36).reshape(2, 2, 3, 3)
    out = cd.conv2d(tensor(x), tensor(w))
    assert out.dtype.name == "int64"
    np.testing.assert_array_equal(array(out), correlate(x, w, (1, 1), (0, 0), (1, 1), 1))
    z, v = normal(1, 2, 5, 5) + 1j * normal(1, 2, 5, 5, seed=1), normal(2, 2, 3, 3) + 1j * normal(2, 2, 3, 3, seed=2)
    np.testing.assert_allclose(
        array(cd.conv2d(tensor(z), tensor(v))), correlate(z, v, (1, 1), (0, 0), (1, 1), 1), rtol=1e-10
    )


BAD: list[tuple[Any, type[Exception], str]] = [
    (
        lambda x, w: cd.conv2d(tensor(normal(2, 3)), w),
        RuntimeError,
        r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d, but got input of size: \[2, 3\]",
    ),
    (
        lambda x, w: cd.conv2d(tensor(normal(2, 3, 8, 8)), w),
        RuntimeError,
        (
            r"Given groups=1, weight of size \[6, 4, 3, 3\], expected input\[2, 3, 8, 8\] to have 4 "
            r"channels, but got 3 channels instead"
        ),
    ),
    (
        lambda x, w: cd.conv2d(tensor(normal(2, 4, 2, 2)), w),
        RuntimeError,
        (
            r"Calculated padded input size per channel: \(2 x 2\). Kernel size: \(3 x 3\). Kernel size can't "
            r"be greater than actual input size"
        ),
    ),
    (
        lambda x, w: cd.conv2d(x, tensor(normal(6, 4, 3))),
        RuntimeError,
        "Expected 4-dimensional weight for 4-dimensional input",
    ),
    (lambda x, w: cd.conv2d(x, w, stride=0), RuntimeError, "non-positive stride is not supported"),
    (lambda x, w: cd.conv2d(x, w, dilation=0), RuntimeError, "non-positive dilation is not supported"),
    (lambda x, w: cd.conv2d(x, w, padding=-1), RuntimeError, "negative padding is not supported"),
    (lambda x, w: cd.conv2d(x, w, groups=0), RuntimeError, "non-positive groups is not supported"),
    (
        lambda x, w: cd.conv2d(x, w, tensor(normal(5))),
        RuntimeError,
        r"expected bias to be 1-dimensional with 6 elements, but got bias of size \[5\] instead",
    ),
    (
        lambda x, w: cd.conv2d(x, tensor(normal(6, 4, 3, 3, dtype=np.float32))),
        RuntimeError,
        r"Input type \(double\) and weight type \(float\) should be the same",
    ),
    (
        lambda x, w: cd.conv2d(x, w, tensor(normal(6, dtype=np.float32))),
        RuntimeError,
        r"Input type \(double\) and bias type \(float\) should be the same",
    ),
    (
        lambda x, w: cd.conv2d(x, tensor(normal(5, 2, 3, 3)), groups=2),
        RuntimeError,
        r"Given groups=2, expected weight to be divisible by 2 at dimension 0",
    ),
    (
        lambda x, w: cd.conv2d(x, tensor(normal(0, 4, 3, 3))),
        RuntimeError,
        r"Given groups=1, expected weight to be at least 1 at dimension 0",
    ),
    (
        lambda x, w: cd.conv2d(x, w, padding="same", stride=2),
        RuntimeError,
        "padding='same' is not supported for strided convolutions",
    ),
    (lambda x, w: cd.conv2d(x, w, padding="foo"), RuntimeError, "Invalid padding string: 'foo'"),
    (
        lambda x, w: cd.conv2d(x, w, stride=(1, 1, 1)),
        RuntimeError,
        (
            r"expected stride to be a single integer value or a list of 2 values to match the convolution "
            r"dimensions, but got stride=\[1, 1, 1\]"
        ),
    ),
    (
        lambda x, w: cd.conv_transpose2d(x, tensor(normal(3, 6, 3, 3))),
        RuntimeError,
        (
            r"Given transposed=1, weight of size \[3, 6, 3, 3\], expected input\[2, 4, 8, 8\] to have 3 "
            r"channels, but got 4 channels instead"
        ),
    ),
    (
        lambda x, w: cd.conv_transpose2d(x, tensor(normal(4, 6, 3, 3)), groups=3),
        RuntimeError,
        "Given groups=3, expected weight to be divisible by 3 at dimension 0",
    ),
    (
        lambda x, w: cd.conv_transpose2d(x, tensor(normal(4, 6, 3, 3)), groups=0),
        RuntimeError,
        "non-positive groups is not supported",
    ),
    (
        lambda x, w: cd.conv_transpose2d(x, tensor(normal(4, 6, 3, 3)), padding=-1),
        RuntimeError,
        "negative padding is not supported",
    ),
    (
        lambda x, w: cd.conv_transpose2d(x, tensor(normal(4, 6, 3, 3)), output_padding=1),
        RuntimeError,
        (
            "output padding must be smaller than either stride or dilation, but got output_padding_height: "
            "1 output_padding_width: 1 stride_height: 1 stride_width: 1 dilation_height: 1 dilation_width: 1"
        ),
    ),
    (
        lambda x, w: cd.conv_transpose2d(x, tensor(normal(4, 6, 3, 3)), stride=2, output_padding=-1),
        RuntimeError,
        "negative output_padding is not supported",
    ),
    (
        lambda x, w: cd.conv_transpose2d(x[:, :, :1, :1], tensor(normal(4, 6, 3, 3)), padding=2),
        RuntimeError,
        "Output size is too small",
    ),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_conv_names_arguments_that_do_not_match(case: int) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call(tensor(normal(2, 4, 8, 8)), tensor(normal(6, 4, 3, 3)))

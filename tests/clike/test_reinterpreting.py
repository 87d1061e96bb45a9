"""Views of bytes in another dtype."""

import re

import candelabra as cd
import pytest
from candelabra.library import open_device
from candelabra_clike import StridedArray
from candelabra_clike.kernels.copies import view_dtype
from candelabra_opencl.backend import OpenCLBackend


def array(*shape: int, dtype: cd.dtype = cd.int16) -> StridedArray:
    """Return an array on the first OpenCL device."""
    backend = open_device(cd.device("opencl", 0)).backend
    assert isinstance(backend, OpenCLBackend)
    return backend.engine(0).empty(shape, dtype)


@pytest.mark.parametrize(("source", "expected"), [(cd.float32, cd.int32), (cd.int16, cd.int64), (cd.float64, cd.uint8)])
def test_bytes_are_seen_as_on_the_host(source: cd.dtype, expected: cd.dtype) -> None:
    """Equal, wider and narrower dtypes agree, also for a part with an offset; writes change the original."""
    host = cd.arange(48).to(source).reshape(3, 16)
    there = host.clone().to("opencl:0")
    assert there.view(expected).tolist() == host.view(expected).tolist()
    assert there[1:, 4:].view(expected).tolist() == host[1:, 4:].view(expected).tolist()
    for each in (host, there):
        each.view(expected)[1:].fill_(0)
    assert there.tolist() == host.tolist()


def test_bytes_that_do_not_stand_in_a_row_are_refused() -> None:
    """Another width requires adjacent elements."""
    with pytest.raises(
        ValueError, match=re.escape("view_dtype: expected a last dim with stride 1, got <int16 [] on opencl:0>")
    ):
        view_dtype(array(), cd.int32)
    turned = array(2, 4).restrided((4, 2), (1, 4), 0)
    with pytest.raises(
        ValueError, match=re.escape("view_dtype: expected a last dim with stride 1, got <int16 [4, 2] on")
    ):
        view_dtype(turned, cd.int32)


@pytest.mark.parametrize(
    ("shape", "strides", "offset"), [((2, 3), (4, 1), 0), ((2, 2), (4, 1), 1), ((2, 2), (3, 1), 0)]
)
def test_bytes_that_do_not_divide_are_refused(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
    """The row, its offset and the strides must be multiples of the wider dtype's size."""
    part = array(2, 4).restrided(shape, strides, offset)
    with pytest.raises(ValueError, match=r"on opencl:0> are not divisible by 2 for int32"):
        view_dtype(part, cd.int32)

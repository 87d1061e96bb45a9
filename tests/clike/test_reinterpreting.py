"""Bytes seen as another dtype."""

import re

import candelabra as cd
import pytest
from candelabra.library import open_device
from candelabra_clike import StridedArray
from candelabra_clike.kernels.reinterpreting import view_dtype
from candelabra_opencl.backend import OpenCLBackend


def array(*shape: int, dtype: cd.dtype = cd.int16) -> StridedArray:
    """An array on the first OpenCL device."""
    backend = open_device(cd.device("opencl", 0)).backend
    assert isinstance(backend, OpenCLBackend)
    return backend.engine(0).empty(shape, dtype)


@pytest.mark.parametrize(("given", "wanted"), [(cd.float32, cd.int32), (cd.int16, cd.int64), (cd.float64, cd.uint8)])
def test_bytes_are_seen_as_on_the_host(given: cd.dtype, wanted: cd.dtype) -> None:
    """As wide, wider and narrower, also of a part that begins in the middle; what is written shows in the original."""
    host = cd.arange(48).to(given).reshape(3, 16)
    there = host.clone().to("opencl:0")
    assert there.view(wanted).tolist() == host.view(wanted).tolist()
    assert there[1:, 4:].view(wanted).tolist() == host[1:, 4:].view(wanted).tolist()
    for each in (host, there):
        each.view(wanted)[1:].fill_(0)
    assert there.tolist() == host.tolist()


def test_bytes_that_do_not_stand_in_a_row_are_refused() -> None:
    """Another width takes neighbours."""
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
    """The row, its beginning and the steps between rows are whole numbers of the wider dtype."""
    part = array(2, 4).restrided(shape, strides, offset)
    with pytest.raises(ValueError, match=r"on opencl:0> are not divisible by 2 for int32"):
        view_dtype(part, cd.int32)

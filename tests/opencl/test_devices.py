"""The devices of these tests compute, each with its own forms of kernels."""

from types import SimpleNamespace

import candelabra as cd
import pyopencl as cl
import pytest
from candelabra_opencl.engine import traits_of


@pytest.mark.parametrize("name", ["device", "lanes"])
def test_tensors_are_made_and_come_back(name: str, request: pytest.FixtureRequest) -> None:
    """A result on a device equals the host's."""
    place = request.getfixturevalue(name)
    x = cd.arange(6, dtype=cd.float32).reshape(2, 3)
    there = x.to(place)
    assert there.device == place
    assert (there + there).cpu().tolist() == (x + x).tolist()


@pytest.mark.parametrize(
    ("kind", "width", "expected"), [("CPU", 16, (16, 32)), ("CPU", 8, (8, 16)), ("GPU", 16, (8, 16))]
)
def test_registers_of_a_processor_follow_from_its_vectors(kind: str, width: int, expected: tuple[int, int]) -> None:
    """Processors with vectors of 64 bytes have 32 registers; kernels of GPUs have no explicit vectors."""
    device = SimpleNamespace(
        type=getattr(cl.device_type, kind), native_vector_width_float=width, max_compute_units=2,
        max_work_item_sizes=[64], max_work_group_size=64, local_mem_size=1 << 15, double_fp_config=1,
        single_fp_config=0, global_mem_size=1 << 30, max_mem_alloc_size=1 << 28, global_mem_cache_size=1 << 20,
    )  # fmt: skip
    traits = traits_of(device)
    assert (traits.lanes, traits.registers) == expected

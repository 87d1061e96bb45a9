"""The combination of the values of lanes, on CUDA by shuffles and elsewhere by local memory."""

import operator

import pytest
from candelabra_clike.language import INDEX, Variable, shuffle
from candelabra_clike.language.kernels import statements
from candelabra_clike.templates.lane_totals import LaneTotal, combine_lanes, declare_memory

TOTAL = LaneTotal(Variable("f64", "total"), operator.add)


def combined(lanes: int, warp: int) -> str:
    """Return the statements that combine the total."""
    return statements(("total", "shared_total"), lambda k: combine_lanes(k, [TOTAL], lanes, warp))


def memory(lanes: int, group: int, warp: int) -> str:
    """Return the declaration of the local memory."""
    return statements((), lambda k: declare_memory(k, [TOTAL], lanes, group, warp))


def test_the_lanes_of_a_warp_need_neither_a_barrier_nor_local_memory() -> None:
    """Each lane then has the total of the first one, which is the same for every operation."""
    text = combined(8, 32)
    assert text.count("SHUFFLE") == 4
    assert "const f64 other = SHUFFLE(total, LOCAL_ID ^ 4);\ntotal = total + other;\n" in text
    assert "BARRIER" not in text
    assert text.endswith("total = SHUFFLE(total, LOCAL_ID / 8 * 8);\n")
    assert memory(8, 256, 32) == ""


def test_several_warps_meet_at_one_barrier() -> None:
    """Each warp stores one value, and every lane combines them in the same order."""
    text = combined(256, 32)
    assert (text.count("SHUFFLE"), text.count("BARRIER")) == (5, 1)
    assert "shared_total[LOCAL_ID / 32] = total;" in text
    assert memory(256, 256, 32) == "LOCAL f64 shared_total[8];\n"


def test_dialects_without_shuffles_combine_in_local_memory() -> None:
    """A tree with a barrier for each level."""
    text = combined(16, 1)
    assert "SHUFFLE" not in text
    assert text.count("BARRIER") == 5
    assert "shared_total[LOCAL_ID] = shared_total[LOCAL_ID] + shared_total[LOCAL_ID + 8];" in text
    assert memory(16, 256, 1) == "LOCAL f64 shared_total[256];\n"


def test_a_single_lane_has_its_total_already() -> None:
    """No statement is needed."""
    assert combined(1, 1) == combined(1, 32) == ""


def test_the_lane_of_a_shuffle_is_an_unsigned_integer() -> None:
    """That of another type would be converted by each device in its own way."""
    with pytest.raises(TypeError, match="the lane of a shuffle of type INDEX: it needs u32"):
        shuffle(TOTAL.variable, Variable(INDEX, "i"))

"""The combination of the values of lanes, on CUDA by shuffles and elsewhere by local memory."""

from candelabra_clike.templates.lane_totals import LaneTotal, combine_lanes, local_declarations

TOTAL = LaneTotal("total", "f64", lambda a, b: f"({a} + {b})")


def test_the_lanes_of_a_warp_need_neither_a_barrier_nor_local_memory() -> None:
    """Each lane then has the total of the first one, which is the same for every operation."""
    text = combine_lanes([TOTAL], 8, 32)
    assert text.count("SHUFFLE") == 4
    assert "BARRIER" not in text
    assert text.endswith("total = SHUFFLE(total, LOCAL_ID / 8u * 8u);\n")
    assert local_declarations([TOTAL], 8, 256, 32) == ""


def test_several_warps_meet_at_one_barrier() -> None:
    """Each warp stores one value, and every lane combines them in the same order."""
    text = combine_lanes([TOTAL], 256, 32)
    assert (text.count("SHUFFLE"), text.count("BARRIER")) == (5, 1)
    assert local_declarations([TOTAL], 256, 256, 32) == "LOCAL f64 shared_total[8];\n"


def test_dialects_without_shuffles_combine_in_local_memory() -> None:
    """A tree with a barrier for each level."""
    text = combine_lanes([TOTAL], 16, 1)
    assert "SHUFFLE" not in text
    assert text.count("BARRIER") == 2
    assert local_declarations([TOTAL], 16, 256, 1) == "LOCAL f64 shared_total[256];\n"


def test_a_single_lane_has_its_total_already() -> None:
    """No statement is needed."""
    assert combine_lanes([TOTAL], 1, 1) == combine_lanes([TOTAL], 1, 32) == ""

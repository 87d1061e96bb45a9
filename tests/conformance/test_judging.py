"""The judgement of values: which arguments are perturbed, which dtype sets the bound, and the dtype of a write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import candelabra as cd
import ml_dtypes
import numpy as np
import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mirror import Image
from candelabra_conformance.oracle import DIRECTIONS, Answer
from candelabra_conformance.perturbation import perturbed, without_subnormals
from candelabra_conformance.properties.value import agree, as_stored
from candelabra_conformance.samples.sample import arrays, sample
from candelabra_conformance.suite import plan, run_case

from tests.conformance.broken_device import breakable


@pytest.fixture(scope="module")
def context() -> Context:
    """Return a context that tests the reference device."""
    return Context(str(cd.get_default_device()))


def test_a_degree_stays_and_an_argument_moves() -> None:
    """The argument of a polynomial is perturbed by one eps, its integer degree is not."""
    found = sample(np.full(3, 0.5), np.array([1.0, 2.0, 3.0]), constant=("n",))
    moved = perturbed(OPERATORS["special_chebyshev_polynomial_t"], found, 2.0**-10, 0)
    assert np.array_equal(np.abs(moved.args[0] - 0.5), np.full(3, 2.0**-11))
    assert moved.args[1] is found.args[1]


def test_a_constant_that_is_not_whole_moves() -> None:
    """The shape of an incomplete gamma function is perturbed although it has no derivative: the function is smooth."""
    found = sample(np.array([3.5]), np.array([2.0]), constant=("input",))
    moved = perturbed(OPERATORS["igamma"], found, 2.0**-10, 0)
    assert abs(moved.args[0][0] - 3.5) == 3.5 * 2.0**-10


def test_a_wrong_polynomial_is_seen(context: Context) -> None:
    """An error of a thousandth fails: the degree of the polynomial is not perturbed."""
    op = OPERATORS["special_chebyshev_polynomial_t"]
    found = sample(np.float32([0.5, 1.5]), np.float32([2, 3]), constant=("n",))
    right = np.float32([2 * 0.5**2 - 1, 4 * 1.5**3 - 3 * 1.5])
    agree(context, op, cd.float32, found, "contiguous", (right,))
    with pytest.raises(Exception, match="2 of 2 elements wrong"):
        agree(context, op, cd.float32, found, "contiguous", (right * np.float32(1.001),))


def _answer(values: list[float], d: cd.dtype) -> Answer:
    return Answer((np.array(values),), (np.zeros(len(values)),), (d,), 1)


def test_a_write_into_a_wider_dtype_keeps_the_result_s_own() -> None:
    """A float32 result in a float64 tensor is compared with float32 precision."""
    answer = _answer([0.1], cd.float32)
    assert as_stored(answer, cd.float64) is answer


def test_a_write_into_a_narrower_dtype_rounds() -> None:
    """A float32 result in a float16 tensor is compared after rounding to float16."""
    stored = as_stored(_answer([0.1], cd.float32), cd.float16)
    assert stored.dtypes == (cd.float16,)
    assert stored.want[0][0] == np.float16(0.1)


def test_the_next_number_is_asked_for_in_its_own_dtype(context: Context) -> None:
    """The number after 1 in bfloat16 is 1 + 2**-7, not the next one in float32."""
    one, two = np.array([1.0]).astype(ml_dtypes.bfloat16), np.array([2.0]).astype(ml_dtypes.bfloat16)
    answer = context.oracle.answer(OPERATORS["nextafter"], sample(one, two))
    assert answer.want[0].astype(float).tolist() == [1 + 2.0**-7]


def test_quotients_of_halves_are_rounded_in_single_precision(context: Context) -> None:
    """1 // 0.1 in float16: 0.1 is rounded down, and the quotient 10.002 must not be rounded before the floor."""
    one, tenth = np.float16([1.0, 0.9]), np.float16([0.1, 0.3])
    answer = context.oracle.answer(OPERATORS["floor_divide"], sample(one, tenth))
    assert answer.want[0].tolist() == np.floor(one.astype(float) / tenth.astype(float)).tolist()


@pytest.mark.parametrize("d", ["float16", "bfloat16", "float32"])
def test_infinity_becomes_the_largest_number_of_the_dtype(context: Context, d: str) -> None:
    """nan_to_num replaces infinities by the extremes of the dtype by default."""
    dtype = np.dtype(getattr(ml_dtypes, d, d))
    given = np.array([np.inf, -np.inf, np.nan]).astype(dtype)
    limits = ml_dtypes.finfo(dtype)
    answer = context.oracle.answer(OPERATORS["nan_to_num"], sample(given))
    assert answer.want[0].tolist() == [float(limits.max), float(limits.min), 0.0]


def test_a_sample_that_has_nothing_of_a_refused_dtype_may_have_a_result(context: Context) -> None:
    """A count without weights is valid in a dtype that is refused only for weights."""
    cases = plan(context, patterns=["tally/unclaimed/complex64*"])
    results = [run_case(context, case) for case in cases]
    assert [r.verdict for r in results] == ["passed"], results


def test_a_running_sum_may_start_from_zero() -> None:
    """Adding to 0 loses the sign of -0: scans of devices and PyTorch do so. Another number is wrong."""
    with breakable() as broken:
        for offset, verdict in ((0.0, "passed"), (1.0, "failed")):
            broken(cumsum=lambda kernel, offset=offset: lambda *args: added(kernel(*args), offset))
            (case,) = plan(Context("broken:0"), patterns=["cumsum/special/float32/contiguous"])
            assert run_case(Context("broken:0"), case).verdict == verdict


def added(result: Image, offset: float) -> Image:
    """Return a result after a number was added in its memory."""
    result.inner += np.float32(offset)
    return result


@pytest.mark.parametrize(("subnormals", "verdict"), [(True, "failed"), (False, "passed")])
def test_a_device_may_declare_that_it_has_no_subnormal_numbers(subnormals: bool, verdict: str) -> None:
    """Then zeros in their place are right, and no operand is subnormal; without the declaration they are wrong."""
    device = load()["flushes-subnormals"].make()
    device.capabilities = replace(device.capabilities, subnormals=subnormals)
    with installed(device) as context:
        (case,) = plan(context, patterns=["add/special/float32/contiguous"])
        assert run_case(context, case).verdict == verdict
        found = context.samples(OPERATORS["add"], cd.float32, "special")
        below = [a for s in found for a in arrays(s.args) if np.any((a != 0) & (np.abs(a) < np.float32(2.0**-126)))]
        assert bool(below) is subnormals


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64])
def test_subnormal_operands_become_the_smallest_normal_number_with_their_sign(dtype: Any) -> None:
    """Other numbers, infinities and NaN stay, in complex numbers for each component; integers have none."""
    limits = ml_dtypes.finfo(np.float32 if dtype is np.complex64 else dtype)
    least, normal = float(limits.smallest_subnormal), float(limits.smallest_normal)
    values = np.array([least, -least, normal, -0.0, np.inf, np.nan, 1.0]).astype(dtype)
    due = np.array([normal, -normal, normal, -0.0, np.inf, np.nan, 1.0]).astype(dtype)
    assert without_subnormals(values).tobytes() == due.tobytes()
    assert without_subnormals(values[0]).tobytes() == due[0].tobytes()
    whole = np.arange(3)
    assert without_subnormals(whole) is whole


def test_the_oracles_own_rounding_does_not_hide_the_effect_of_a_change(context: Context) -> None:
    """In float64, cos(0.01) is the same after a change by one eps; the last number of directions finds its share."""
    op, found, eps = OPERATORS["cos"], sample(np.float64([0.01])), 2.0**-52
    assert context.oracle.answer(op, found, DIRECTIONS[1]).sensitivity[0] == 0
    change = context.oracle.answer(op, found, DIRECTIONS[-1]).sensitivity[0]
    assert change == pytest.approx(0.01 * np.sin(0.01) * eps, rel=0.01)


def test_a_large_change_that_leaves_the_domain_proves_nothing(context: Context) -> None:
    """asin of a number just below 1 is finite after a change by one eps, and NaN after a larger one."""
    found = sample(np.float64([1 - 2.0**-40]))
    assert np.isfinite(context.oracle.answer(OPERATORS["asin"], found, DIRECTIONS[-1]).sensitivity[0]).all()

"""Random numbers on an OpenCL device: the reference's bits, in the forms for processors and for GPUs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._operators.random.draws import random_integers
from candelabra.library import open_device
from candelabra_conformance.ulp import ulp_error

pytestmark = pytest.mark.rounding

FLOATING = (cd.float16, cd.bfloat16, cd.float32, cd.float64, cd.complex64, cd.complex128)
WHOLE = (cd.bool, cd.int8, cd.uint16, cd.int32, cd.uint64)
COUNTS = (1, 9, 5001)
"""One value, one counter and a part of another, several work-items with a remainder."""
Make = Callable[..., Any]


def whole_range(*limits: Any, device: cd.device, **options: Any) -> Any:
    """Return integers of a range that the public functions do not support."""
    return random_integers.function(*limits, device=open_device(device), **options)


def exponential(n: int, dtype: Any, device: cd.device) -> Any:
    """Return exponential numbers."""
    return cd.empty(n, dtype=dtype, device=device).exponential_()


def bernoulli_draw(p: Any, device: cd.device, shape: tuple[int, ...] | None = None) -> Any:
    """Return a bool for each probability, or for a single one."""
    if shape is not None:
        return cd.empty(shape, dtype=cd.bool, device=device).bernoulli_(p)
    return cd.empty(p.shape, dtype=cd.bool, device=device).bernoulli_(p.to(device))


def continuous(dtypes: Sequence[Any]) -> Iterator[tuple[str, Make]]:
    """Return draws of floating dtypes by name."""
    for n in COUNTS:
        for d in dtypes:
            yield f"uniform of {d}", partial(cd.rand, n, dtype=d)
            yield f"normal of {d}", partial(cd.randn, n, dtype=d)
            if not d.is_complex:
                yield f"exponential of {d}", partial(exponential, n, d)


def discrete(dtypes: Sequence[Any]) -> Iterator[tuple[str, Make]]:
    """Return draws of integers and bools by name."""
    for n in COUNTS:
        for d in dtypes:
            yield f"integers of {d}", partial(cd.randint, 0, 2, (n,), dtype=d)
        for low, high in ((-5, 5), (-(2**31), 2**31), (-(2**62), 2**62)):
            yield f"[{low}, {high})", partial(cd.randint, low, high, (n,))
        yield "all of int64", partial(whole_range, (n,), -(2**63), 2**63, 5, 6, dtype=cd.int64)
        yield "one probability", partial(bernoulli_draw, 0.3, shape=(n,))
        for d in (cd.float32, cd.float64):
            yield f"probabilities of {d}", partial(bernoulli_draw, cd.arange(n, dtype=d) / n)


def differing_draws(draws: Iterator[tuple[str, Make]], where: cd.device) -> list[str]:
    """Return the names of the draws whose bits on a device differ from the reference's."""
    names = []
    for name, make in draws:
        found = []
        for place in (cd.device("cpu"), where):
            cd.manual_seed(2**63 + 20240229)
            found.append(make(device=place).cpu().contiguous())
        if not bool((found[0] == found[1]).all()):
            names.append(name)
    return names


@pytest.mark.parametrize("d", FLOATING)
def test_floating_draws_have_the_bits_of_the_reference(device: cd.device, d: Any) -> None:
    """A seed gives the same numbers on an OpenCL device as on the reference."""
    assert not differing_draws(continuous([d]), device)


def test_integers_and_decisions_have_the_bits_of_the_reference(device: cd.device) -> None:
    """Integers of small and large ranges, and bools of one probability and of many, agree."""
    assert not differing_draws(discrete(WHOLE), device)


def test_the_form_for_gpus_has_the_same_bits(lanes: cd.device) -> None:
    """The distribution of counters over work-items does not affect the numbers."""
    assert not differing_draws(continuous([cd.float32, cd.complex128]), lanes)
    assert not differing_draws(discrete([cd.int32]), lanes)


def test_draws_go_on_where_the_last_one_ended(device: cd.device) -> None:
    """Two draws of complete counters give the numbers of one."""
    cd.manual_seed(7)
    parts = cd.randn(16, device=device).tolist() + cd.randn(5, device=device).tolist()
    cd.manual_seed(7)
    assert parts == cd.randn(21, device=device).tolist()


def test_a_draw_of_no_values_is_empty(device: cd.device) -> None:
    """Sizes of zero launch no kernel."""
    assert cd.rand(0, 3, device=device).shape == (0, 3)


def test_probabilities_may_have_any_layout(device: cd.device) -> None:
    """A tensor of probabilities may have any strides."""
    p = cd.linspace(0, 1, 24).reshape(4, 6)
    found = []
    for place in (cd.device("cpu"), device):
        cd.manual_seed(3)
        found.append(bernoulli_draw(p.to(place).t()[1:], place).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("p", [-0.5, 1.5, float("nan")])
def test_what_is_no_probability_is_reported(device: cd.device, p: float) -> None:
    """The error is raised by the next synchronisation, and the device continues to work."""
    with pytest.raises(RuntimeError, match=r"Expected p_in >= 0 && p_in <= 1 to be true, but got false\."):
        bernoulli_draw(cd.tensor([0.5, p]), device).tolist()
    assert bernoulli_draw(cd.tensor([0.0, 1.0]), device).tolist() == [False, True]


@pytest.mark.parametrize("kind", ["normal", "exponential"])
def test_devices_without_float64_come_within_16_ulp(single: cd.device, kind: str) -> None:
    """float32 numbers use the same words with formulas in float32 (section 11)."""
    found = []
    for place in (cd.device("cpu"), single):
        cd.manual_seed(1)
        x = cd.empty(100_003, device=place)
        found.append(np.array((x.normal_() if kind == "normal" else x.exponential_()).tolist(), np.float32))
    assert ulp_error(found[1], found[0], cd.float32).max() <= 16


def test_devices_without_float64_have_all_other_bits(single: cd.device) -> None:
    """Uniform numbers, integers and bools use integer arithmetic and exact conversions."""
    draws = [
        ("uniform", partial(cd.rand, 1001)),
        ("integers", partial(cd.randint, 0, 10**12, (1001,))),
        ("bernoulli", partial(bernoulli_draw, cd.linspace(0, 1, 1001))),
    ]
    assert not differing_draws(iter(draws), single)


def test_permutations_have_the_bits_of_the_reference(device: cd.device, lanes: cd.device) -> None:
    """Both forms of the sort give the order of the words, in every integer dtype."""
    draws = [(f"{n} as {d}", partial(cd.randperm, n, dtype=d)) for n in (1, 100) for d in (cd.int64, cd.int16)]
    assert not differing_draws(iter([*draws, ("many", partial(cd.randperm, 40_000))]), device)
    assert not differing_draws(iter(draws), lanes)


def select(weights: Any, samples: int, replacement: bool, device: cd.device) -> Any:
    """Return indices drawn by weight."""
    return cd.multinomial(weights.to(device), samples, replacement)


@pytest.mark.parametrize("d", [cd.float16, cd.float32, cd.float64])
def test_categories_have_the_bits_of_the_reference(device: cd.device, lanes: cd.device, d: Any) -> None:
    """With and without replacement, for one row and several, in any layout."""
    weights = cd.linspace(0, 5, 60, dtype=cd.float64).to(d).reshape(12, 5)
    draws = [
        (f"{shape} {replacement}", partial(select, rows, 3, replacement))
        for shape, rows in (("row", weights[1]), ("rows", weights), ("turned", weights.t()), ("none", weights[:0]))
        for replacement in (True, False)
    ]
    assert not differing_draws(iter(draws), device)
    assert not differing_draws(iter(draws), lanes)


@pytest.mark.parametrize(
    ("values", "samples", "replacement", "words"),
    [
        ([1.0, -1.0], 1, True, "probability tensor contains either `inf`, `nan` or element < 0"),
        ([1.0, float("nan")], 1, False, "probability tensor contains either `inf`, `nan` or element < 0"),
        ([0.0, 0.0], 1, True, r"invalid multinomial distribution \(sum of probabilities <= 0\)"),
        ([1.0, 0.0, 0.0], 2, False, "not enough non-negative category to sample 2"),
    ],
)
def test_what_are_no_weights_is_reported(
    device: cd.device, values: list[float], samples: int, replacement: bool, words: str
) -> None:
    """The error is raised by the next synchronisation, and the device continues to work."""
    with pytest.raises(RuntimeError, match=words):
        select(cd.tensor(values), samples, replacement, device).tolist()
    assert select(cd.tensor([0.0, 1.0]), 2, True, device).tolist() == [1, 1]


def test_devices_without_float64_draw_categories_too(single: cd.device) -> None:
    """Draws with replacement are integer arithmetic and equal bit for bit; those without use float32."""
    weights = cd.linspace(0, 5, 60).reshape(12, 5)
    assert not differing_draws(iter([("with", partial(select, weights, 9, True))]), single)
    found = select(weights, 4, False, single).tolist()
    assert all(len(set(row)) == 4 and (r or 0 not in row) for r, row in enumerate(found))

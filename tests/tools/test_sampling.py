"""The rules by which ``make test`` samples the cases that ``make test-all`` runs in full."""

from __future__ import annotations

from collections import Counter

from tests.sampling import covering, one_in, partition, sampled

NAMES = [f"{stratum}{i}" for stratum, count in (("a", 40), ("b", 7), ("c", 1)) for i in range(count)]


def stratum(name: str) -> str:
    """Return the letter."""
    return name[0]


def test_a_sample_has_its_share_of_each_stratum_and_at_least_one() -> None:
    """The share is a quarter, rounded up."""
    assert Counter(map(stratum, one_in(4, NAMES, stratum))) == {"a": 10, "b": 2, "c": 1}


def test_a_sample_depends_on_the_names_alone() -> None:
    """It depends neither on their order nor on other strata."""
    sample = one_in(4, NAMES, stratum)
    assert one_in(4, reversed(NAMES), stratum) == sample
    assert {n for n in one_in(4, [*NAMES, "d0", "d1"], stratum) if n[0] != "d"} == sample


def test_an_additional_name_moves_few_others() -> None:
    """Most of a sample is unchanged when its stratum grows by one."""
    assert len(one_in(4, NAMES, stratum) & one_in(4, [*NAMES, "a40"], stratum)) >= 9


def test_the_cases_outside_a_sample_have_the_mark() -> None:
    """All names are parameters; those outside the sample run in `make test-all` only."""
    every = sampled(4, NAMES, stratum)
    assert [each.values[0] for each in every] == sorted(NAMES)
    unmarked = {each.values[0] for each in every if not each.marks}
    assert unmarked == one_in(4, NAMES, stratum)
    assert {mark.name for each in every for mark in each.marks} == {"thorough"}


def test_names_are_dealt_out_evenly() -> None:
    """Each part has the same number of each stratum, or one less."""
    parts = partition(3, NAMES, stratum)
    assert parts.keys() == set(NAMES)
    for letter in "abc":
        sizes = Counter(part for name, part in parts.items() if stratum(name) == letter)
        assert max(sizes.values()) - min(sizes[i] for i in range(3)) <= 1


def test_a_covering_has_every_trait_and_no_case_without_a_new_one() -> None:
    """For all pairs of two digits, it has at most as many cases as digits in both positions."""
    cases = [f"{i}{j}" for i in range(6) for j in range(4)]
    chosen = covering(cases, str, lambda case: {("first", case[0]), ("second", case[1])})
    assert {case[0] for case in chosen} == set("012345")
    assert {case[1] for case in chosen} == set("0123")
    assert len(chosen) <= 9

"""Chains of additions, such as ``total = total + loss`` in a loop over examples.

Each addition of a chain waits for the one before, so that no two of them are a group. But their results are the
cumulative sums of the terms, which is one call for all of them, if no term depends on a part of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Final
from candelabra._transforms.groups import Bucket, Group
from candelabra.dtypes import DIFFERENTIABLE_BITS

if TYPE_CHECKING:
    from candelabra._transforms.deferred import Slot

LEAST: Final = 4
"""The number of additions from which a chain runs as one call."""
MOST: Final = 1 << 12
"""The number of elements up to which it does: the terms of a chain are copied next to each other."""


def merged_chains(buckets: list[Bucket]) -> tuple[list[Bucket], dict[Bucket, Bucket]]:
    """Return the buckets with one for each chain of additions, and the chain of each bucket that belongs to one."""
    owners: dict[Bucket, Bucket] = {}
    for links, terms in _chains(buckets):
        if len(links) >= LEAST and _is_independent(links, terms):
            chain = _merged(links, terms)
            owners.update(dict.fromkeys(links, chain))
    if not owners:
        return buckets, owners
    others = [bucket for bucket in buckets if bucket not in owners]
    return [*others, *dict.fromkeys(owners.values())], owners


def _chains(buckets: list[Bucket]) -> list[tuple[list[Bucket], list[Slot]]]:
    """Return the chains: the additions, each of which adds to the result of the one before, and the terms."""
    chains: dict[Bucket, tuple[list[Bucket], list[Slot]]] = {}
    """By the last addition."""
    for bucket in buckets:  # in the order of the first calls
        if not _may_be_link(bucket):
            continue
        a, b = bucket.inputs[0]
        before, term = (a, b) if a.bucket in chains else (b, a)
        links, terms = chains.pop(before.bucket, ([], [before]))
        links.append(bucket)
        terms.append(term)
        chains[bucket] = links, terms
    return list(chains.values())


def _may_be_link(bucket: Bucket) -> bool:
    """Return whether a bucket is one addition of small tensors of one kind."""
    group = bucket.group
    if group is None or group.op.name != "add" or len(bucket.inputs) != 1 or len(bucket.inputs[0]) != 2:
        return False
    kind = group.kind
    return (
        all(slot.kind.general is kind for slot in bucket.inputs[0])
        and bool(kind.keys & DIFFERENTIABLE_BITS)  # cumulative sums of integers have another dtype
        and prod(kind.shape) <= MOST
    )


def _is_independent(links: list[Bucket], terms: Sequence[Slot]) -> bool:
    """Return whether no term depends on an addition of the chain."""
    chain, least = set(links), links[0].depth
    stack = [term.bucket for term in terms]
    seen: set[Bucket] = set()
    while stack:
        bucket = stack.pop()
        if bucket in chain:
            return False
        if bucket.depth > least and bucket not in seen:  # others are before the first addition
            seen.add(bucket)
            stack += bucket.needs
    return True


def _merged(links: list[Bucket], terms: Sequence[Slot]) -> Bucket:
    """Return the bucket that computes a chain."""
    first = links[0].group
    assert first is not None
    group = Group(first.collector, first.op, first.args, first.modes, first.results)
    group.links = links
    chain = Bucket(group, links[-1].depth, group.kind)
    chain.inputs = [tuple(terms)]
    chain.needs = {term.bucket for term in terms}
    return chain

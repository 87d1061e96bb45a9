"""The order in which groups of collected calls run, and the run of one group.

The agenda runs, of the groups with calls whose operands are known, the one whose calls have the smallest depth on
average. The depth of a call is the length of the longest chain of collected calls that ends with it. A group runs by
``vmap``: its operands are gathered along a new first dim, except those that are the same for all calls.

Attribution: the agenda and its order are those of Neubig, Goldberg and Dyer, "On-the-fly operation batching in dynamic
computation graphs" (2017).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._dispatch.levels import without_levels
from candelabra._interchange.host import upload
from candelabra._keys import switch
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor
from candelabra._transforms.batching import run_batched
from candelabra._transforms.chains import merged_chains
from candelabra._transforms.groups import CallResults
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra._transforms.deferred import Slot
    from candelabra._transforms.groups import Bucket, Group


MOST_ROWS: Final = 4
"""Results of several groups are joined as wholes, if they have at most this many times the rows that are used …"""
MOST_ELEMENTS: Final = 1 << 17
"""… or at most this many elements. Otherwise the rows are selected first."""
Joins = dict[tuple[int, ...], tuple[list["Tensor"], "Tensor"]]


class Arguments:
    """The arguments of a call: the plain ones, and the places of its operands, in order."""

    __slots__ = ("places", "values")

    def __init__(self, op: Operator[..., Any], args: tuple[Any, ...]) -> None:
        self.values: list[Any] = list(args)
        self.places: list[tuple[int, Any]] = []
        """The position of an argument, and the number of its operand, or a list of numbers and None."""
        count = 0
        for i, value in enumerate(args):
            if hasattr(value, "_keys"):
                self.places.append((i, count))
                count += 1
            elif isinstance(value, (tuple, list)) and any(hasattr(v, "_keys") for v in value):
                numbers = []
                for t in value:
                    numbers.append(None if t is None else count)
                    count += t is not None
                self.places.append((i, numbers))
            else:
                continue
            self.values[i] = None

    def marks(self, batched: Sequence[bool]) -> list[Any]:
        """Return the marks of all arguments for a batching rule, with these of the operands."""
        marks: list[Any] = [False] * len(self.values)
        for i, number in self.places:
            if isinstance(number, list):
                marks[i] = [n is not None and batched[n] for n in number]
            else:
                marks[i] = batched[number]
        return marks

    def filled(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return all arguments, with these operands."""
        values = list(self.values)
        for i, number in self.places:
            if isinstance(number, list):
                values[i] = tuple([None if n is None else tensors[n] for n in number])
            else:
                values[i] = tensors[number]
        return values


# -- the order --------------------------------------------------------------------------------------------------------
def execute(buckets: list[Bucket]) -> None:
    """Run collected calls. If an operator fails, the calls that have not run will have no results."""
    entered, owners = merged_chains(buckets)
    for bucket in entered:
        _enter(bucket, owners)
    ready = {bucket.group for bucket in entered if bucket.group.ready}  # type: ignore[union-attr]
    try:
        while ready:
            group: Any = min(ready, key=lambda g: g.depths / g.left)  # type: ignore[union-attr]
            ready.discard(group)
            batch, group.ready = group.ready, []
            for bucket in batch:
                group.depths -= bucket.depth * len(bucket.inputs)
                group.left -= len(bucket.inputs)
            switch(group.modes)
            for consumer in _run(group, batch):
                consumer.waiting -= 1
                if not consumer.waiting:
                    consumer.group.ready.append(consumer)
                    ready.add(consumer.group)
    finally:
        for bucket in {*buckets, *entered}:
            if bucket.group is not None:
                bucket.end(None)


def _enter(bucket: Bucket, owners: dict[Bucket, Bucket]) -> None:
    """Add a bucket to the agenda. ``owners``: the chains that will compute some buckets."""
    group: Any = bucket.group
    group.depths += bucket.depth * len(bucket.inputs)
    group.left += len(bucket.inputs)
    for need in {owners.get(need.root, need.root) for need in bucket.needs}:
        if need.group is not None:
            need.consumers.append(bucket)
            bucket.waiting += 1
    if not bucket.waiting:
        group.ready.append(bucket)


# -- one group --------------------------------------------------------------------------------------------------------
def _run(group: Group, buckets: list[Bucket]) -> list[Any]:
    """Run calls of one signature whose operands are known, and return the buckets that wait for them."""
    if group.links:
        return _run_chain(group, buckets[0])
    inputs = [call for bucket in buckets for call in bucket.inputs]
    numbers = [number for bucket in buckets for number in bucket.numbers]
    if numbers:
        parameter = inputs[0][0].value()
        size = parameter._payload.shape[0]
        sources = [CallResults(_rows(parameter, [n % size for n in numbers]), len(inputs))]
    elif len(inputs) == 1 or group.alone:
        sources = _run_each(group, inputs, [each for bucket in buckets for each in bucket.counters])
    else:
        sources = _run_parts(group, inputs)
    waiting = []
    offset = 0
    for bucket in buckets:
        waiting += bucket.consumers
        count = len(bucket.inputs)
        bucket.end(sources, offset)
        offset += count
    return waiting


def _run_each(group: Group, calls: list[Sequence[Slot]], counters: list[Sequence[int]]) -> list[CallResults]:
    """Run calls one by one. ``counters``: those of each, if they draw random numbers."""
    if group.op.name == "stack" and group.args.values[1] == 0:  # results of one group are stacked already
        rows = [[_stacked(call) for call in calls]]
    else:
        found = []
        for number, call in enumerate(calls):
            values = group.args.filled([slot.value() for slot in call])
            if counters:
                for place, counter in zip(group.counters, counters[number], strict=True):
                    values[place] = counter
            found.append(group.op.canonical(*values))
        rows = [list(column) for column in zip(*found, strict=True)] if group.op.schema.result else [found]
    return [CallResults(None, len(calls), column) for column in rows]


def _stacked(slots: Sequence[Slot]) -> Tensor:
    joined, batched = gathered(slots, {})
    found: Tensor = joined if batched else OPERATORS["stack"].canonical((joined,) * len(slots), 0)
    return found


def _run_chain(group: Group, chain: Bucket) -> list[Any]:
    """Run a chain of additions: the cumulative sums of its terms are the results of its links."""
    terms = chain.inputs[0]
    joined, batched = gathered(terms, {})
    if not batched:
        joined = OPERATORS["stack"].canonical((joined,) * len(terms), 0)
    sources = [CallResults(OPERATORS["cumsum"].canonical(joined, 0, None), len(terms))]
    waiting = chain.consumers
    for number, link in enumerate(group.links):
        link.end(sources, number + 1)
    chain.end(sources)
    return waiting


def _run_parts(group: Group, calls: list[Sequence[Slot]]) -> list[CallResults]:
    """Run calls of one signature as one, or as one for each set of tensors from outside, where these are few.

    To stack a copy of a weight for each call would cost more than another call.
    """
    first = calls[0]
    known = [i for i, slot in enumerate(first) if slot.version is not None and not slot.kind.shared]
    few = [i for i in known if 1 < len({id(call[i]) for call in calls}) * 2 <= len(calls)]
    if not few:
        return _run_batch(group, calls)
    parts: dict[tuple[int, ...], list[int]] = {}
    for row, call in enumerate(calls):
        parts.setdefault(tuple([id(call[i]) for i in few]), []).append(row)
    found = [_run_batch(group, [calls[row] for row in rows]) for rows in parts.values()]
    singles: list[list[Any]] = [[None] * len(calls) for _ in found[0]]
    for rows, sources in zip(parts.values(), found, strict=True):
        for column, source in zip(singles, sources, strict=True):
            for number, row in enumerate(rows):
                column[row] = source.row(number)
    return [CallResults(None, len(calls), column) for column in singles]


def _run_batch(group: Group, calls: list[Sequence[Slot]]) -> list[CallResults]:
    """Run calls of one signature as one."""
    op, size = group.op, len(calls)
    several = op.schema.result is not None
    joins: Joins = {}
    operands = [gathered(column, joins) for column in zip(*calls, strict=True)]
    tensors = group.args.filled([tensor for tensor, _ in operands])
    if any(is_batched for _, is_batched in operands):
        found: Any = run_batched(op, size, group.args.marks([is_batched for _, is_batched in operands]), tensors)
        return [CallResults(out, size) for out in (found if several else (found,))]
    same: Any = op.canonical(*tensors)  # all calls have the same operands
    return [CallResults(out, size, None, True) for out in (same if several else (same,))]


# -- operands ---------------------------------------------------------------------------------------------------------
def gathered(slots: Sequence[Slot], joins: Joins) -> tuple[Tensor, bool]:
    """Return the values of operands along a new first dim and True, or the value that is the same for all and False.

    ``joins``: the results of several groups that other operands of the same calls have joined.
    """
    first = slots[0]
    bucket = first.bucket
    source = bucket.source
    if source is None:
        if all(slot is first for slot in slots):
            return first.value(), False
        return _joined(slots, joins), True
    rows = [slot.row for slot in slots if slot.bucket is bucket]
    if len(rows) != len(slots):
        return _joined(slots, joins), True
    if source.same or rows.count(rows[0]) == len(rows):
        return first.value(), False
    if source.singles is not None:
        return _joined(slots, joins), True
    return _rows_of(source, [row + bucket.offset for row in rows] if bucket.offset else rows), True


def _joined(slots: Sequence[Slot], joins: Joins) -> Tensor:
    """Return the rows of several results, and single tensors, in the order of the slots."""
    starts: dict[Bucket, int | None] = {}  # the number of the first result of a bucket; None: there are single tensors
    sources: dict[CallResults, int] = {}
    single: list[Tensor] = []
    numbers: list[int] = []  # the rows of the joined sources; negative for single tensors
    total = 0
    for slot in slots:
        bucket = slot.bucket
        if bucket in starts:
            start = starts[bucket]
        else:
            source = bucket.source
            start = None
            if source is not None and source.singles is None and not source.same:
                if source not in sources:
                    sources[source] = total
                    total += source.size
                start = sources[source] + bucket.offset
            starts[bucket] = start
        if start is None:
            single.append(slot.value())
            numbers.append(-len(single))
        else:
            numbers.append(start + slot.row)
    if not sources:
        return OPERATORS["stack"].canonical(tuple(single), 0)  # type: ignore[no-any-return]
    if total > MOST_ROWS * len(slots) and total * prod(slots[0].shape) > MOST_ELEMENTS:
        parts, numbers, total = _used_rows(sources, numbers)
    else:
        parts = [source.tensor for source in sources]
    if single:
        parts.append(OPERATORS["stack"].canonical(tuple(single), 0))
        numbers = [n if n >= 0 else total - n - 1 for n in numbers]
        joined: Tensor = OPERATORS["cat"].canonical(tuple(parts), 0)
    else:
        joined = _concatenated(parts, joins)
    return joined if numbers == list(range(joined._payload.shape[0])) else _rows(joined, numbers)


def _concatenated(tensors: list[Tensor], joins: Joins) -> Tensor:
    """Return tensors next to each other; ``joins`` keeps them for other operands of the same calls."""
    if len(tensors) == 1:
        return tensors[0]
    key = tuple([id(tensor) for tensor in tensors])
    found = joins.get(key)
    if found is None:
        found = joins[key] = tensors, OPERATORS["cat"].canonical(tuple(tensors), 0)
    return found[1]


def _used_rows(sources: dict[CallResults, int], numbers: list[int]) -> tuple[list[Tensor], list[int], int]:
    """Return the rows of each source that are used, the new numbers of the rows, and the number of rows."""
    places: dict[int, int] = {}
    tensors = []
    for source, start in sources.items():
        rows = sorted({n for n in numbers if start <= n < start + source.size})
        places.update(zip(rows, range(len(places), len(places) + len(rows)), strict=True))
        tensors.append(_rows_of(source, [n - start for n in rows]))
    return tensors, [places[n] if n >= 0 else n for n in numbers], len(places)


def _rows_of(source: CallResults, numbers: list[int]) -> Tensor:
    """Return rows of the results of a group: all of them, a part, or a copy in another order."""
    start, count = numbers[0], len(numbers)
    if numbers != list(range(start, start + count)):
        return _rows(source.tensor, numbers)
    if count == source.size:
        whole: Tensor = source.tensor
        return whole
    part: Tensor = OPERATORS["basic_index"].canonical(source.tensor, (slice(start, start + count, 1),))
    return part


def _rows(tensor: Tensor, numbers: list[int]) -> Tensor:
    """Return rows of a tensor by their numbers."""
    device = without_levels(tensor)._instance
    index = upload(memoryview(array("q", numbers)).cast("B"), int64, (len(numbers),), device)
    found: Tensor = OPERATORS["index_select"].canonical(tensor, 0, index)
    return found

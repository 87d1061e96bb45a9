"""The order in which groups of collected calls run, and the run of one group.

The agenda runs, of the groups with calls whose operands are known, the one whose calls have the smallest depth on
average, where the depth of a call is the length of the longest chain of collected calls before it. A group runs by
``vmap``: its operands are gathered along a new first dim, except those that are the same for all calls.

Attribution: the agenda and its order are those of Neubig, Goldberg and Dyer, "On-the-fly operation batching in dynamic
computation graphs" (2017).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._interchange.host import upload
from candelabra._keys import switch
from candelabra._records.record import OPERATORS
from candelabra._records.schema import INDICES, LIST
from candelabra._tensor import Tensor
from candelabra._transforms.batching import Batch
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class Operands:
    """The arguments of a call: plain values, and the numbers of the operands among them."""

    __slots__ = ("args", "places")

    def __init__(self, args: list[Any], places: list[tuple[int, Any]]) -> None:
        self.args = args
        self.places = places

    @classmethod
    def of(cls, op: Operator[..., Any], args: tuple[Any, ...]) -> Operands:
        """Return the arguments of a call without its tensors."""
        kept: list[Any] = list(args)
        places: list[tuple[int, Any]] = []
        count = 0
        for i, (p, value) in enumerate(zip(op.schema.parameters, args)):
            if hasattr(value, "_keys"):
                places.append((i, count))
                kept[i] = None
                count += 1
            elif p.kind == LIST or p.kind == INDICES:
                numbers = []
                for t in value:
                    numbers.append(None if t is None else count)
                    count += t is not None
                places.append((i, numbers))
                kept[i] = None
        return cls(kept, places)

    def filled(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return the arguments with these operands."""
        args = list(self.args)
        for i, number in self.places:
            if isinstance(number, list):
                args[i] = tuple([None if n is None else tensors[n] for n in number])
            else:
                args[i] = tensors[number]
        return args


class Group:
    """The collected calls of one signature."""

    __slots__ = (
        "alone", "calls", "collector", "common", "depths", "left", "modes", "op", "operands", "ready", "results",
        "shared",
    )  # fmt: skip

    def __init__(self, collector: Any, op: Operator[..., Any], operands: Operands, modes: int, results: Any) -> None:
        self.collector = collector
        self.op = op
        self.operands = operands
        self.modes = modes
        self.results = results
        self.calls: list[Call] = []
        self.alone = False
        """Whether the calls must run one by one."""
        self.shared = False
        """Whether all operands are parameters, or computed from them alone: all calls then have the same result."""
        self.common: Any = None
        """The slots of that result."""
        self.ready: list[Call] = []
        self.depths = self.left = 0
        """The sum of the depths, and the number, of the calls that have not run."""


class Call:
    """One collected call: its operands and its results, as slots. ``row``: that of a parameter, to be looked up."""

    __slots__ = ("consumers", "depth", "group", "inputs", "outputs", "row", "waiting")

    def __init__(self, group: Group, inputs: list[Any], depth: int, row: int | None) -> None:
        self.group = group
        self.inputs = inputs
        self.depth = depth
        self.row = row
        self.outputs: list[Any] = []
        self.consumers: list[Call] = []
        self.waiting = 0

    def discard(self) -> None:
        """Release the operands, and mark the results as those of a call that is over."""
        for slot in self.outputs:
            slot.call = None
        self.inputs = []
        self.consumers = []


# -- the order --------------------------------------------------------------------------------------------------------
def execute(calls: list[Call], groups: list[Group]) -> None:
    """Run collected calls. If an operator fails, the results of all calls that have not run are lost."""
    for call in calls:
        group = call.group
        group.depths += call.depth
        group.left += 1
        for slot in call.inputs:
            if slot.call is not None:
                slot.call.consumers.append(call)
                call.waiting += 1
        if not call.waiting:
            group.ready.append(call)
    ready = {group for group in groups if group.ready}
    try:
        while ready:
            group = min(ready, key=lambda g: g.depths / g.left)
            ready.discard(group)
            batch, group.ready = group.ready, []
            group.depths -= sum([call.depth for call in batch])
            group.left -= len(batch)
            _run(group, batch)
            for call in batch:
                for consumer in call.consumers:
                    consumer.waiting -= 1
                    if not consumer.waiting:
                        consumer.group.ready.append(consumer)
                        ready.add(consumer.group)
                call.discard()
    finally:
        for call in calls:
            call.discard()


# -- one group --------------------------------------------------------------------------------------------------------
class Source:
    """A tensor with the results of a group of calls along its first dim, one row each."""

    __slots__ = ("number", "size", "tensor")
    count = 0

    def __init__(self, tensor: Tensor, size: int) -> None:
        Source.count += 1
        self.tensor = tensor
        self.size = size
        self.number = Source.count


def _run(group: Group, calls: list[Call]) -> None:
    """Run calls of one signature whose operands are known."""
    switch(group.modes)
    op = group.op
    if calls[0].row is not None:
        _look_up(calls)
    elif len(calls) == 1 or group.alone:
        for call in calls:
            if op.name == "stack" and group.operands.args[-1] == 0:
                out, batched = gathered(call.inputs)
                outs: Any = (out if batched else OPERATORS["stack"].canonical((out,) * len(call.inputs), 0),)
            else:
                found: Any = op.canonical(*group.operands.filled([_known(slot) for slot in call.inputs]))
                outs = found if isinstance(found, tuple) else (found,)
            for slot, out in zip(call.outputs, outs, strict=True):
                slot.tensor = out
    else:
        for part in _by_constants(calls):
            _run_batch(group, part)


def _run_batch(group: Group, calls: list[Call]) -> None:
    """Run calls of one signature as one."""
    if len(calls) > 2:
        calls.sort(key=_place)
    op = group.op
    operands = [gathered(column) for column in zip(*[call.inputs for call in calls])]
    batched = [tensor for tensor, is_batched in operands if is_batched]
    if not batched:  # all calls have the same operands
        found: Any = op.canonical(*group.operands.filled([tensor for tensor, _ in operands]))
        for slots in zip(*[call.outputs for call in calls]):
            out = found[calls[0].outputs.index(slots[0])] if isinstance(found, tuple) else found
            for number, slot in enumerate(slots):
                slot.tensor, slot.given = out, number > 0
        return
    size = len(calls)
    frame = Batch(size, "different")
    frame.like = batched[0]
    with frame:
        values = [frame.batch(tensor) if is_batched else tensor for tensor, is_batched in operands]
        found = op.canonical(*group.operands.filled(values))
        outs = [frame.unbatched(out) for out in (found if isinstance(found, tuple) else (found,))]
    for position, out in enumerate(outs):
        source = Source(out, size)
        for row, call in enumerate(calls):
            slot = call.outputs[position]
            slot.source, slot.row = source, row


def _look_up(calls: list[Call]) -> None:
    """Take rows of a parameter."""
    parameter = _known(calls[0].inputs[0])
    size = parameter._payload.shape[0]
    found = _rows(parameter, [call.row % size for call in calls])  # type: ignore[operator]
    source = Source(found, len(calls))
    for row, call in enumerate(calls):
        call.outputs[0].source, call.outputs[0].row = source, row


def _place(call: Call) -> tuple[int, int]:
    """Return the place of a call in its batch: in the order of its first computed operand, which saves copies."""
    for slot in call.inputs:
        if slot.source is not None:
            return slot.source.number, slot.row
    return 0, 0


def _by_constants(calls: list[Call]) -> list[list[Call]]:
    """Return the calls in parts, each for one set of operands that only a few tensors from outside are used for.

    Stacking a copy of a weight for each call would cost more than another call.
    """
    few = [
        i for i, slot in enumerate(calls[0].inputs)
        if slot.tensor is not None and 2 * len({id(call.inputs[i]) for call in calls}) <= len(calls)
    ]  # fmt: skip
    parts: dict[tuple[int, ...], list[Call]] = {}
    for call in calls:
        parts.setdefault(tuple([id(call.inputs[i]) for i in few]), []).append(call)
    return list(parts.values())


# -- operands ---------------------------------------------------------------------------------------------------------
def _known(slot: Any) -> Tensor:
    """Return the value of an operand. Raise RuntimeError if it was changed after the call that uses it."""
    tensor: Tensor = slot.value()
    if slot.call is None and slot.version and tensor._counter[0] != slot.version:
        _changed()
    return tensor


def _changed() -> None:
    raise RuntimeError(
        "a tensor was changed in place, other than by an operator, after a call in a block of batching() used it, and "
        "before that call was computed"
    )


def gathered(slots: Sequence[Any]) -> tuple[Tensor, bool]:
    """Return the values of operands along a new first dim and True, or the value that is the same for all and False."""
    first = slots[0]
    if all([slot is first for slot in slots]):
        return _known(first), False
    rows: dict[int, tuple[Any, list[int], list[int]]] = {}
    single: list[Tensor] = []
    positions: list[int] = []
    for position, slot in enumerate(slots):
        source = slot.source
        if source is None:
            single.append(_known(slot))
            positions.append(position)
        else:
            entry = rows.get(source.number)
            if entry is None:
                entry = rows[source.number] = (source, [], [])
            entry[1].append(slot.row)
            entry[2].append(position)
    parts = [_rows_of(source, numbers) for source, numbers, _ in rows.values()]
    order = [position for _, _, places in rows.values() for position in places] + positions
    if single:
        parts.append(OPERATORS["stack"].canonical(tuple(single), 0))
    joined = parts[0] if len(parts) == 1 else OPERATORS["cat"].canonical(tuple(parts), 0)
    if order == list(range(len(order))):
        return joined, True
    places = [0] * len(order)
    for row, position in enumerate(order):
        places[position] = row
    return _rows(joined, places), True


def _rows_of(source: Source, numbers: list[int]) -> Tensor:
    """Return rows of the results of a group: all of them, a part, or a copy in another order."""
    start, count = numbers[0], len(numbers)
    if numbers != list(range(start, start + count)):
        return _rows(source.tensor, numbers)
    if count == source.size:
        return source.tensor
    part: Tensor = OPERATORS["basic_index"].canonical(source.tensor, (slice(start, start + count, 1),))
    return part


def _rows(tensor: Tensor, numbers: list[int]) -> Tensor:
    """Return rows of a tensor by their numbers."""
    instance = tensor._instance
    while instance.depth:
        tensor_below: Tensor = tensor._fresh()._payload.tensor if instance.depth else tensor
        instance = tensor_below._instance
    index = upload(memoryview(array("q", numbers)).cast("B"), int64, (len(numbers),), instance)
    found: Tensor = OPERATORS["index_select"].canonical(tensor, 0, index)
    return found

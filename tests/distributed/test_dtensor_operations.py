"""Every operation with DTensors: the result is that on the whole tensors, or an error says that it is not supported.

The operations are all records and public callables, with the conformance suite's samples. Ranks are threads.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor
from candelabra.distributed import threads
from candelabra.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from candelabra.library import Operator, OverloadSet, open_device
from candelabra_conformance.bad_calls.calls import function_named, samples_of
from candelabra_conformance.bad_calls.judging import INTERNAL, prepared
from candelabra_conformance.records import CallableRecord, Record, everything_tested
from candelabra_conformance.samples.registry import DRAWS

from tests.sampling import partition

RANKS: Final = 2
PLACEMENTS: Final = {"Shard(0)": Shard(0), "Shard(1)": Shard(1), "Replicate()": Replicate()}
QUARTERS: Final = {"Shard(0)": (0, 1), "Shard(1)": (2, 3), "Replicate()": (0,)}
"""The quarters of the operations that ``make test`` tries for each placement."""
REFUSED: Final = 18
"""The number of operations that refuse DTensors: they need memory, or change a shape in place. It may only fall."""
COLLECTIVES: Final = "c10d_"
"""Their samples are for a group of one rank, and their tensors are a rank's own."""


class Call(NamedTuple):
    """A call of an operation, of which each use makes its own arguments."""

    record: Any
    kind: str
    sample: Any

    @property
    def draws(self) -> bool:
        """Whether the values of the result are random, or those of new memory."""
        if isinstance(self.record, Operator):
            named = self.record.schema.named("generator") is not None
            return self.record.random or named or self.record.name in DRAWS
        return bool(self.record.draws) or "empty" in self.record.name or self.record.name == "Tensor.new"

    def arguments(self) -> tuple[Any, Any]:
        """Return new arguments on the host."""
        args, kwargs = prepared((self.sample.args, self.sample.kwargs), open_device("cpu"))
        return copy.copy(args), kwargs

    def works(self) -> bool:
        """Return whether the plain call returns: samples of functions may not fit the form in place."""
        try:
            self.run(*self.arguments())
        except (RuntimeError, TypeError):
            return False
        return True

    def run(self, args: Any, kwargs: Any) -> Any:
        """Call the operation without warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.kind == "method":
                return getattr(args[0], self.record.entry.name)(*args[1:], **kwargs)
            return self.function(*args, **kwargs)

    @property
    def function(self) -> Any:
        """Return the form of a record, or what users call."""
        if isinstance(self.record, CallableRecord):
            return function_named(self.record.name) or self.record.function
        return self.record.form(self.kind)


def calls_of(record: Record, samples: int) -> Iterator[Call]:
    """Yield calls of a record with at least one tensor."""
    for sample in samples_of(record)[:samples]:
        kinds = ["function"]
        if isinstance(record, Operator) and record.inplace and "inplace" in record.methods().values():
            kinds.append("inplace")
        if isinstance(record, CallableRecord) and record.entry.name in record.entry.methods():
            kinds = ["method"] if not record.entry.is_function else ["function", "method"]
            if record.entry.is_property:
                kinds = ["function"]
        for kind in kinds:
            call = Call(record, kind, sample)
            if any(isinstance(leaf, Tensor) for leaf in leaves(call.arguments())) and call.works():
                yield call


@cache
def records() -> dict[str, Record]:
    """Return everything that has samples, by name."""
    found = {}
    for record in everything_tested():
        if not isinstance(record, OverloadSet) and not record.name.startswith(COLLECTIVES):
            found[record.name] = record
    return found


def leaves(value: Any) -> list[Any]:
    """Return the values in nested sequences and dicts, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [value]
    return [leaf for item in value for leaf in leaves(item)]


def distributed(value: Any, mesh: Any, placement: Any) -> Any:
    """Return arguments with DTensors in place of tensors; those with too few dims are replicated."""
    if isinstance(value, Tensor):
        fits = placement.is_replicate() or value.dim() > placement.dim
        return distribute_tensor(value, mesh, [placement if fits else Replicate()], src_data_rank=None)
    if isinstance(value, dict):
        return {name: distributed(item, mesh, placement) for name, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(distributed(item, mesh, placement) for item in value)
    return value


def plain(value: Any) -> Any:
    """Return what can be compared of a result: the values of tensors."""
    if isinstance(value, Tensor):
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        whole = whole.detach().to_dense() if whole.is_sparse else whole.detach()
        return whole.resolve_conj().resolve_neg()
    return value


def wholes(value: Any) -> Any:
    """Return a result with plain tensors in place of DTensors."""
    if not isinstance(value, (tuple, list)):
        return plain(value)
    items = [wholes(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def same(result: Any, expected: Any) -> bool:
    """Return whether two values are equal, up to the order of sums."""
    if isinstance(expected, Tensor):
        if not isinstance(result, Tensor) or result.shape != expected.shape or result.dtype != expected.dtype:
            return False
        return bool(cd.allclose(result, expected, rtol=1e-5, atol=1e-6, equal_nan=True))
    if isinstance(expected, np.ndarray):
        return bool(np.array_equal(result, expected, equal_nan=expected.dtype.kind in "fc"))
    return result == expected or (result != result and expected != expected) or type(result) is type(expected)


class Failure(NamedTuple):
    """What is wrong with a call."""

    name: str
    text: str


def outcome(call: Call, mesh: Any, placement: Any) -> str:
    """Return "" if a call with DTensors gives the plain result, "refused: …" for an error in words, or a failure."""
    args, kwargs = call.arguments()
    expected = call.run(args, kwargs)
    own, named = distributed(call.arguments(), mesh, placement)
    try:
        found = call.run(own, named)
    except Exception as error:
        if "DTensor" in str(error) and not INTERNAL.search(str(error).removeprefix("numpy()")):
            return f"refused: {type(error).__name__}: {error}"
        return f"{type(error).__name__}: {error}"
    found, expected = wholes(found), wholes(expected)
    if call.sample.of is not None:
        found, expected = call.sample.of(found), call.sample.of(expected)
    results = leaves(found)
    written = [plain(leaf) for leaf in leaves((own, named))]  # both ranks gather all, whatever is wrong with one
    wanted = leaves(expected)
    if len(results) != len(wanted):
        return f"{len(results)} results and not {len(wanted)}"
    # __deepcopy__ fills a dict that has been empty, so only the arguments that were given count.
    pairs = [*zip(results, wanted, strict=True), *zip(written, map(plain, leaves((args, kwargs))), strict=False)]
    for one, other in pairs:
        if call.draws and isinstance(one, Tensor):
            if one.shape != other.shape or one.dtype != other.dtype:
                return f"{one.dtype} {one.shape} and not {other.dtype} {other.shape}"
        elif not same(one, other):
            return f"{one} and not {other}"
    return ""


@pytest.mark.parametrize("samples", [1, pytest.param(8, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_operation(placement: str, samples: int) -> None:
    """The result and what is written are those of the plain call; the number of operations that refuse falls.

    ``make test`` takes one sample of each operation, divided along one dim; for a quarter, replicated, too.
    """
    quarters = partition(4, records(), lambda name: "")
    chosen = [name for name in records() if samples > 1 or quarters[name] in QUARTERS[placement]]
    calls = [call for name in chosen for call in calls_of(records()[name], samples)]

    def program() -> list[Failure]:
        mesh = init_device_mesh("cpu", (RANKS,))
        found = [Failure(call.record.name, outcome(call, mesh, PLACEMENTS[placement])) for call in calls]
        return [failure for failure in found if failure.text]

    first, second = threads.run(program, RANKS)
    assert [failure.name for failure in first] == [failure.name for failure in second]
    assert [failure for failure in first if not failure.text.startswith("refused: ")] == []
    assert len({failure.name for failure in first}) <= REFUSED

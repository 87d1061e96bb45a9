"""Groups of collected calls, their buckets, and their results.

The calls of one signature form a :class:`Group`, those of a group with one depth a :class:`Bucket`. Views of the
results of a bucket are a bucket, too, but no calls: when the results exist, one view of all of them is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._keys import DEFERRED, RECORDING_MODES, mode, state, switch
from candelabra._records.registry import OPERATORS
from candelabra._transforms.batching import run_batched

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor
    from candelabra._transforms.deferred import OperandKind, Results, Slot


class Group:
    """The collected calls of one signature, and the facts that they share."""

    def __init__(self, collector: Any, op: Operator[..., Any], args: Any, modes: int, results: Results | None) -> None:
        self.collector = collector
        self.op = op
        self.args = args
        """The arguments without tensors: :class:`~candelabra._transforms.agenda.Arguments`."""
        self.modes = modes
        self.results = results
        self.kind: Any = None if results is None else results.kinds[0]
        self.buckets: dict[int, Bucket] = {}
        """The calls by depth."""
        self.alone = False
        """Whether the calls must run one by one."""
        self.counters: tuple[int, ...] = ()
        """The positions of the counters of a draw of random numbers, which belong to each call."""
        self.links: list[Bucket] = []
        """For a chain of additions: its calls, which run as one."""
        self.shared = False
        """Whether all operands are parameters, or computed from them alone: all calls then have the same results."""
        self.common: Sequence[Slot] | None = None
        """These results."""
        self.simple = False
        """Whether each call has one result of its own, so that the fast path serves it."""
        self.ready: list[Bucket] = []
        """The buckets whose operands are known, while the agenda runs."""
        self.depths = self.left = 0
        """The sum of the depths, and the number, of the calls that have not run."""

    def bucket(self, depth: int) -> Bucket:
        """Return the bucket for the calls of a depth."""
        found = self.buckets.get(depth)
        if found is None:
            found = self.buckets[depth] = Bucket(self, depth, self.kind)
            if self.results is not None and len(self.results.kinds) > 1:
                found.outputs = [Bucket(self, depth, kind, found) for kind in self.results.kinds]
            self.collector.buckets.append(found)
        return found


class Bucket:
    """The collected calls of one signature and one depth: the length of the longest chain of calls that ends there.

    If the operator has several results, each of them has a bucket of its own, and so have views of the results.
    """

    __slots__ = (
        "consumers", "counters", "depth", "group", "inputs", "keys", "kind", "needs", "numbers", "offset", "outputs",
        "parts", "root", "source", "views", "waiting",
    )  # fmt: skip
    group: Group | None

    def __init__(self, group: Group | None, depth: int, kind: OperandKind, parent: Bucket | None = None) -> None:
        self.group = group
        """None after the calls have run, or were given up."""
        self.depth = depth
        self.kind = kind
        self.keys = 0 if kind is None else kind.keys | DEFERRED
        """The keys of the results."""
        self.inputs: list[Sequence[Slot]] = []
        """The operands of each call."""
        self.numbers: list[int] = []
        """For rows of a parameter: the number of each."""
        self.counters: list[Sequence[int]] = []
        """For draws of random numbers: the counters of each."""
        self.needs: set[Bucket] = set() if parent is None else {parent}
        """The buckets of the operands."""
        self.root: Bucket = self if parent is None else parent.root
        """The bucket whose calls compute the results."""
        self.outputs: list[Bucket] = []
        """The buckets of the results, if there are several."""
        self.views: dict[Any, ViewBucket] = {}
        """The views of results, by operator, arguments and modes."""
        self.parts: dict[Any, tuple[Any, list[ViewBucket]]] = {}
        """For several views that are taken together: their arguments, and their buckets."""
        self.source: CallResults | None = None
        """After the calls have run, their results."""
        self.offset = 0
        """The number of the first call in the source."""
        self.waiting = 0
        self.consumers: list[Bucket] = []

    def end(self, sources: Sequence[CallResults] | None, offset: int = 0) -> None:
        """Set the results, one source for each output, and release the operands."""
        self.inputs, self.numbers, self.counters, self.consumers = [], [], [], []
        for number, output in enumerate(self.outputs):
            output.resolve(None if sources is None else sources[number], offset)
        self.outputs = []
        self.resolve(None if sources is None else sources[0], offset)

    def resolve(self, source: CallResults | None, offset: int) -> None:
        """Set the results of one output, and of the views of it."""
        self.source, self.offset = source, offset
        self.group, self.depth, self.needs = None, 0, set()
        views, self.views, self.parts = self.views, {}, {}
        for key, view in views.items():
            view.resolve(None if source is None else source.view(key, view), offset)


class ViewBucket(Bucket):
    """Views of the results of a bucket by one operator, with the same arguments: as many as the bucket has calls."""

    __slots__ = ("modes", "op", "rest")

    def __init__(
        self, parent: Bucket, op: Operator[..., Any], rest: Sequence[Any], modes: int, kind: OperandKind
    ) -> None:
        super().__init__(parent.group, parent.depth + 1, kind, parent)
        self.op = op
        self.rest = rest
        """The arguments after the tensor."""
        self.modes = modes


class CallResults:
    """The results of the calls of one or several buckets: rows of a tensor, single tensors, or one tensor for all."""

    __slots__ = ("same", "singles", "size", "tensor", "views")

    def __init__(self, tensor: Any, size: int, singles: list[Tensor] | None = None, same: bool = False) -> None:
        self.tensor = tensor
        self.size = size
        self.singles = singles
        self.same = same
        self.views: dict[Any, CallResults] = {}

    def row(self, number: int) -> Tensor:
        """Return the result of one call."""
        if self.singles is not None:
            return self.singles[number]
        if self.same:
            found: Tensor = self.tensor
            return found
        with mode(exclude=RECORDING_MODES | DEFERRED):
            return OPERATORS["basic_index"].canonical(self.tensor, (number,))  # type: ignore[no-any-return]

    def view(self, key: Any, bucket: ViewBucket) -> CallResults:
        """Return views of all results."""
        found = self.views.get(key)
        if found is None:
            before = state.bits
            switch(bucket.modes)
            try:
                found = self.views[key] = self._view(bucket.op, bucket.rest)
            finally:
                switch(before)
        return found

    def _view(self, op: Operator[..., Any], rest: Sequence[Any]) -> CallResults:
        if self.singles is not None:
            return CallResults(None, self.size, [op.canonical(t, *rest) for t in self.singles])
        if self.same:
            return CallResults(op.canonical(self.tensor, *rest), self.size, None, True)
        marks = [True, *[False] * len(rest)]
        return CallResults(run_batched(op, self.size, marks, [self.tensor, *rest]), self.size)

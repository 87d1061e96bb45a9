"""Deferred tensors: the results of calls that a block of ``batching()`` has collected and not run yet.

The payload of a deferred tensor is a :class:`Slot`: its shape is known, and the call that will compute it. Calls whose
*signatures* are equal form a group (``candelabra._transforms.groups``): operator, modes, plain arguments, and the
:class:`OperandKind` of each operand agree. See ``candelabra._transforms.collecting``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple
from candelabra._device import open_device
from candelabra._dispatch.viewing import VIEW_SLOTS
from candelabra._keys import ANOMALY, DEFERRED, LAYER_MASK, NO_GRAD, OVERRIDE, PACK, RECORDING_MODES, VIEW, mode
from candelabra._layout import contiguous_strides, is_contiguous_layout
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra._transforms.groups import Bucket
from candelabra.dtypes import BY_BIT, DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._records.record import Operator


# -- signatures -------------------------------------------------------------------------------------------------------
class OperandKind:
    """The part of a signature for one operand: its shape, dtype and device, or which parameter it is.

    ``general``: the same without the identity of a parameter; the kind itself for any other operand. ``known``: the
    bucket of operands of this kind that no collected call computes.
    """

    __slots__ = ("general", "keys", "known", "shape", "shared")

    def __init__(self, shape: tuple[int, ...], keys: int, general: OperandKind | None = None) -> None:
        self.shape = shape
        self.keys = keys
        self.shared = general is not None
        self.general = self if general is None else general
        self.known = Bucket(None, 0, self)


class Results(NamedTuple):
    """The kinds of a call's results. ``view``: the result is a view of the first operand; ``itself``: it is that."""

    kinds: tuple[OperandKind, ...]
    view: bool
    itself: bool


IMMEDIATE: Final = PACK | ANOMALY
"""Modes whose hooks run with each call, so that it is not deferred."""
LIMIT: Final = 1 << 14
"""The number of kinds, and of signatures whose results are known, that are kept."""
_kinds: Final[dict[tuple[tuple[int, ...], int], OperandKind]] = {}
_results: Final[dict[Any, Results | None]] = {}


def kind_of(shape: tuple[int, ...], keys: int) -> OperandKind:
    """Return the kind of operands that are no parameters, the same object for equal ones."""
    found = _kinds.get((shape, keys))
    if found is None:
        if len(_kinds) > LIMIT:
            _kinds.clear()
        found = _kinds[shape, keys] = OperandKind(shape, keys)
    return found


def plain(value: Any) -> Any:
    """Return a hashable form of a plain argument, equal only for equal arguments of the same type."""
    kind = type(value)
    if kind is int or value is None:
        return value
    if kind is tuple or kind is list:
        found: list[Any] = []
        for v in value:  # an index, mostly: slices and integers take no frame
            if type(v) is slice:
                found.append((slice, v.start, v.stop, v.step))
            else:
                found.append(v if type(v) is int else plain(v))
        return tuple(found)
    if kind is slice:
        return (slice, value.start, value.stop, value.step)
    if not value and (kind is float or kind is complex):
        return (kind, str(value))  # the sign of zero
    return (kind, value)


def general(signature: Any) -> Any:
    """Return a signature without the identities of parameters."""
    if isinstance(signature, tuple):
        return tuple([general(part) for part in signature])
    return signature.general if isinstance(signature, OperandKind) else signature


def results_of(op: Operator[..., Any], args: tuple[Any, ...], bit: int, signature: Any) -> Results | None:
    """Return the results of a call, on the device or level with ``bit``. None: it cannot be deferred."""
    key = (bit, general(signature))
    if key in _results:
        return _results[key]
    if len(_results) > LIMIT:
        _results.clear()
    found = _results[key] = _inferred(op, args, bit)
    return found


def _inferred(op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Results | None:
    """Run a call on tensors without data. If it fails there, it will run at once: the error then is the device's."""
    meta = open_device("meta")

    def without_data(value: Any) -> Any:
        if isinstance(value, Tensor):
            dtype = BY_BIT[value._keys & DTYPE_MASK]
            return wrap(meta.backend.empty(0, tuple(value._payload.shape), dtype), meta.keys_for(dtype))
        return tuple([without_data(v) for v in value]) if isinstance(value, (tuple, list)) else value

    given = [without_data(value) for value in args]
    with mode(include=NO_GRAD, exclude=DEFERRED | LAYER_MASK):
        try:
            made = op.canonical(*given)
        except Exception:
            return None
    outs = made if isinstance(made, tuple) else (made,)
    kinds = tuple([kind_of(tuple(o._payload.shape), o._keys & DTYPE_MASK | bit) for o in outs])
    return Results(kinds, len(outs) == 1 and bool(outs[0]._keys & VIEW), made is given[0])


# -- slots -------------------------------------------------------------------------------------------------------------
class Slot:
    """The payload of a deferred tensor: a result of a collected call. Also an operand that is known already.

    There is one for each call, so what few of them have is not in a slot.
    """

    __slots__ = ("__dict__", "bucket", "kind", "row", "shape", "viewed")
    block = "batching()"
    tensor: Tensor | None = None
    """The result as a tensor, once something has asked for it."""
    version: int | None = None
    """For an operand from outside: its version when the first call used it."""
    given = False
    """Whether a tensor has taken over the result, so that another one with the same result needs a copy."""
    bucket: Bucket
    kind: OperandKind
    row: int
    """The number of the call in its bucket."""
    shape: tuple[int, ...]
    viewed: bool
    """Whether there is a view of the result."""

    def layout(self, tensor: Tensor) -> tuple[tuple[int, ...], int]:
        """Return the strides and the offset of a deferred tensor: C order, or for a view those of the view."""
        if not hasattr(tensor, "_replay"):
            return contiguous_strides(self.shape), 0
        op, args = tensor._replay  # type: ignore[misc]
        if op.geometry is None:
            return tensor._fresh()._layout()
        parent = tensor._parent
        found = op.geometry(tuple(parent._payload.shape), *parent._layout(), *args)
        return found[1], found[2]

    def contiguous(self, tensor: Tensor) -> Tensor:
        """Return a deferred tensor, or a copy of it, in C order."""
        if is_contiguous_layout(self.shape, tensor._layout()[0]):
            return tensor
        return OPERATORS["clone"].canonical(tensor)  # type: ignore[no-any-return]

    def value(self) -> Tensor:
        """Return the result as a tensor. Raise RuntimeError if it was not computed because of an error."""
        if self.tensor is None:
            source = self.bucket.source
            if source is None:
                raise RuntimeError(
                    f"this tensor was not computed: an operator failed before it in its block of {self.block}"
                )
            self.tensor = source.row(self.bucket.offset + self.row)
            self.given = source.same
        elif self.version is not None and self.tensor._counter[0] != self.version:
            raise RuntimeError(
                f"a tensor was changed in place in a block of {self.block} by other means than an operator, after a "
                "call had used it and before that call was computed"
            )
        return self.tensor

    def settle(self, tensor: Tensor) -> None:
        """Make a deferred tensor with this payload an ordinary one: run the collected calls, and take the value."""
        group = self.bucket.group
        if group is not None:
            group.collector.run()
            if not tensor._keys & DEFERRED:  # a tensor from outside that the block wrote: it was settled there
                return
        if hasattr(tensor, "_replay"):  # a view must show the memory of its parent
            op, args = tensor._replay  # type: ignore[misc]
            parent = tensor._parent._fresh()
            with mode(exclude=RECORDING_MODES | DEFERRED):
                become(tensor, op.canonical(parent, *args))
            return
        made = self.value()
        if self.given:
            with mode(exclude=RECORDING_MODES | DEFERRED):
                made = made.clone()
        self.given = True
        become(tensor, made)


def become(tensor: Tensor, other: Tensor) -> None:
    """Give a tensor the payload, keys, version and history of another."""
    for slot in ("_payload", "_node", "_counter", *(VIEW_SLOTS if other._keys & VIEW else ())):
        setattr(tensor, slot, getattr(other, slot))
    tensor._keys = other._keys | tensor._keys & OVERRIDE


class DeferredOperand(Slot):
    """The slot of an operand from outside."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor, kind: OperandKind) -> None:
        self.tensor = tensor
        self.version = tensor._counter[0]
        self.bucket = kind.known
        self.kind = kind
        self.shape = kind.shape
        self.row = 0
        self.viewed = False

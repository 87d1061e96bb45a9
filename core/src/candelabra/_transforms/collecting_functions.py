"""The functions in dispatch tables that collect calls inside a block of ``batching()``, generated for each key."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._codegen.source import build
from candelabra._dispatch.deferring import active_block, run_now, serve_collected
from candelabra._keys import DEFERRED, LAYER_MASK, SCALAR_FIRST, SCALAR_MASK, state
from candelabra._records.schema import INDEX, LIST, MASK, OPERAND, OPTIONAL, TENSOR, TENSOR_KINDS
from candelabra._tensor import Tensor, new
from candelabra._transforms.deferred import IMMEDIATE, Slot, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._device import Instance
    from candelabra._records.record import Operator
    from candelabra._records.schema import Parameter
    from candelabra._transforms.groups import Bucket, Group

ALWAYS_ONE: Final = (TENSOR, OPERAND, OPTIONAL, INDEX, MASK)
"""The kinds of parameters that are one tensor, or None."""

_RESULT: Final = (
    "_slot = new(Slot)",
    "_slot.bucket = _bucket",
    "_slot.kind = _kind = _bucket.kind",
    "_slot.shape = _kind.shape",
    "_slot.viewed = False",
    "_out = new(Tensor)",
    "_out._payload = _slot",
    "_out._keys = _bucket.keys",
    "_out._node = None",
    "_out._counter = _c.counter",
)
"""The statements that make the result of a call."""


def compiled(op: Operator[..., Any], key: int, instance: Instance) -> Callable[..., Any]:
    """Compile the function that collects the calls of one key.

    It knows which arguments are tensors, and serves the calls of groups that exist. The others go to
    ``Collector.call``, as do operators with lists or optional tensors.
    """
    depth, bit = instance.depth, instance.bit

    def collect(*args: Any) -> Any:
        collector = active_block.collector
        if collector is None or depth > collector.depth:
            return run_now(op, args)
        return collector.call(op, args, bit)

    parameters = op.schema.parameters
    tensors = [p.name for p in parameters if p.kind in ALWAYS_ONE]
    optional = [p.name for p in parameters if p.kind in ALWAYS_ONE and p.optional]
    if key & SCALAR_MASK:
        tensors.remove([p.name for p in parameters if p.kind == OPERAND][0 if key & SCALAR_FIRST else -1])
    if any(p.kind == LIST for p in parameters):
        return _compiled_for_list(op, depth, collect)
    if not tensors or any(p.kind in TENSOR_KINDS and p.kind not in ALWAYS_ONE for p in parameters):
        return collect
    if op.view:
        return _compiled_for_view(op, depth, collect) if tensors == [parameters[0].name] else collect
    names = ", ".join(p.name for p in parameters)
    plain_parts = {p.name: _plain_text(p) for p in parameters if p.name not in tensors}
    buckets = ", ".join(plain_parts.get(p.name, f"s_{p.name}.bucket") for p in parameters)
    kinds = ", ".join(plain_parts.get(p.name, f"s_{p.name}.kind") for p in parameters)
    lines = [
        *_guard(depth, names),
        *[f"if {name} is None: return slow({names})" for name in optional],
        "_known = _c.constants.get",
        *[f"s_{n} = {n}._payload if {n}._keys & DEFERRED else _known(id({n})) or _c.slot({n})" for n in tensors],
        f"_bucket = _c.successors.get(_key := (_op, {buckets}))",
        "if _bucket is None:",
        f"    _group = _c.table.get((_op, {kinds}))",
        f"    if _group is None or not _group.simple: return slow({names})",
        f"    _bucket = _c.successors[_key] = follow(_group, ({', '.join(f's_{n}' for n in tensors)},))",
        *_RESULT,
        "_slot.row = len(_bucket.inputs)",
        f"_bucket.inputs.append(({', '.join(f's_{n}' for n in tensors)},))",
        "return _out",
    ]
    return build(op.name, names, lines, _scope(op, collect), f"{op.name} collected")


def follow(group: Group, operands: Sequence[Slot]) -> Bucket:
    """Return the bucket of a group for the calls with operands of some buckets."""
    needs = [slot.bucket for slot in operands]
    bucket = group.bucket(1 + max([need.depth for need in needs], default=0))
    bucket.needs.update(needs)
    return bucket


def _compiled_for_view(op: Operator[..., Any], depth: int, collect: Callable[..., Any]) -> Callable[..., Any]:
    """Compile the function for an operator that returns a view: views of results whose calls wait follow them."""
    first, *rest = op.schema.parameters
    x, names = first.name, ", ".join(p.name for p in op.schema.parameters)
    lines = [
        *_guard(depth, names),
        f"if not {x}._keys & DEFERRED: return slow({names})",
        f"_parent = {x}._payload",
        f"_bucket = _parent.bucket.views.get((_op, {''.join(f'{_plain_text(p)}, ' for p in rest)}_c.modes))",
        f"if _bucket is None: return slow({names})",
        *_RESULT,
        "_slot.row = _parent.row",
        f"_out._replay, _out._parent = (_op, ({''.join(f'{p.name}, ' for p in rest)})), {x}",
        "_parent.viewed = True",
        "return _out",
    ]
    return build(op.name, names, lines, _scope(op, collect), f"{op.name} collected")


def _plain_text(p: Parameter) -> str:
    """Return the text of :func:`plain` of an argument, without a call for the usual values."""
    name = p.name
    if name == "index":
        part = f"(part := {name}[0])"
        one = f"{name}.__class__ is tuple and len({name}) == 1 and {part}.__class__ is slice"
        return f"((slice, part.start, part.stop, part.step),) if {one} else plain({name})"
    usual = f"{name} if {name}.__class__ is int or {name} is None"
    return f"({usual} else (bool, {name}) if {name}.__class__ is bool else plain({name}))"


def _scope(op: Operator[..., Any], collect: Callable[..., Any]) -> dict[str, Any]:
    """Return the names that a compiled function uses."""
    return {
        "active_block": active_block, "state": state, "_op": op, "plain": plain, "new": new, "Tensor": Tensor,
        "Slot": Slot, "follow": follow, "slow": collect, "DEFERRED": DEFERRED, "keep": IMMEDIATE | LAYER_MASK,
    }  # fmt: skip


def _guard(depth: int, names: str) -> tuple[str, str]:
    """Return the first lines of a compiled function: other blocks and modes take the general way."""
    return (
        "_c = active_block.collector",
        f"if _c is None or _c.depth < {depth} or state.bits != _c.modes or _c.modes & keep: return slow({names})",
    )


def _compiled_for_list(op: Operator[..., Any], depth: int, collect: Callable[..., Any]) -> Callable[..., Any]:
    """Compile the function for an operator of one list of tensors, such as ``cat``."""
    parameters = op.schema.parameters
    tensors = [p.name for p in parameters if p.kind in TENSOR_KINDS]
    if len(tensors) != 1 or op.view:
        return collect
    names = ", ".join(p.name for p in parameters)
    plain_parts = {p.name: _plain_text(p) for p in parameters if p.name not in tensors}
    buckets = ", ".join(plain_parts.get(p.name, "tuple([s.bucket for s in _slots])") for p in parameters)
    kinds = ", ".join(plain_parts.get(p.name, "tuple([s.kind for s in _slots])") for p in parameters)
    lines = [
        *_guard(depth, names),
        "_known = _c.constants.get",
        f"_slots = tuple([t._payload if t._keys & DEFERRED else _known(id(t)) or _c.slot(t) for t in {tensors[0]}])",
        f"_bucket = _c.successors.get(_key := (_op, {buckets}))",
        "if _bucket is None:",
        f"    _group = _c.table.get((_op, {kinds}))",
        f"    if _group is None or not _group.simple: return slow({names})",
        "    _bucket = _c.successors[_key] = follow(_group, _slots)",
        *_RESULT,
        "_slot.row = len(_bucket.inputs)",
        "_bucket.inputs.append(_slots)",
        "return _out",
    ]
    return build(op.name, names, lines, _scope(op, collect), f"{op.name} collected")


serve_collected(compiled)

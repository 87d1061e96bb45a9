"""Adapters: the functions in a dispatch table.

An adapter takes Tensors and returns Tensors. It passes payloads to a kernel and, if a gradient is required, creates the
graph node. Each adapter is generated for one operator and one key, so that dtype, device and mode are constants in it
and are not examined at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.anomaly import remember
from candelabra._autograd.node import Port, TensorSpec
from candelabra._autograd.saved import pack_saved
from candelabra._autograd.views import refreshed
from candelabra._codegen.nodes import Variant, forward_lines, refuse_inference
from candelabra._codegen.parameters import passed_on
from candelabra._codegen.source import build, indent
from candelabra._dispatch.failure import fail, fail_body, no_result
from candelabra._keys import ANOMALY, AUTOGRAD, INFERENCE, NO_GRAD, PACK, VIEW, state, switch
from candelabra._records.schema import (
    BOUND,
    DEVICE,
    DTYPE,
    INDEX,
    INDICES,
    LIST,
    MASK,
    OPERAND,
    OPTIONAL,
    TENSOR,
    Parameter,
)  # fmt: skip
from candelabra._tensor import Tensor
from candelabra.dtypes import ALL, COMPLEX_BITS, FLOATING

if TYPE_CHECKING:
    from candelabra._records.record import Operator

new = object.__new__


class ResolvedCall:
    """One resolved call: all facts that the generated code depends on."""

    def __init__(self, operator: Operator[..., Any], key: int, keys: tuple[int, ...], keymap: dict[Any, int]) -> None:
        self.operator = operator
        self.key = key
        self.keys = keys
        """The dispatch keys of each output, without AUTOGRAD and VIEW."""
        self.keymap = keymap
        self.scalar: str | None = None
        self.recording = False
        self.kernel: Callable[..., Any] | None = None
        """A function of payloads; with ``on_tensors``, the body of a composite that has a derivative of its own."""
        self.on_tensors = False
        self.declined: Callable[..., Any] | None = None
        """The function that serves a call if the kernel declines it by returning NotImplemented."""
        self.differentiable: tuple[bool, ...] = (True,)

    @property
    def variant(self) -> Variant:
        return Variant(self.scalar, bool(self.key & PACK), self.differentiable, not self.key & COMPLEX_BITS)


def payload_argument(p: Parameter, call: ResolvedCall) -> str:
    """Return the expression that passes one argument to a kernel."""
    if p.name == call.scalar:
        return p.name
    if p.kind in (TENSOR, OPTIONAL, OPERAND, INDEX, MASK):
        return f"(None if {p.name} is None else {p.name}._payload)" if p.optional else f"{p.name}._payload"
    if p.kind == BOUND:
        return f"getattr({p.name}, '_payload', {p.name})"
    if p.kind == LIST:
        return f"[_t._payload for _t in {p.name}]"
    if p.kind == INDICES:
        return f"[None if _t is None else _t._payload for _t in {p.name}]"
    return "device.index" if p.kind == DEVICE else p.name


def compile_adapter(call: ResolvedCall) -> Callable[..., Any]:
    """Compile the functional form."""
    op = call.operator
    names = [p.name for p in op.schema.parameters]
    passed = ", ".join(names)
    scope: dict[str, Any] = {
        "kernel": call.kernel, "declined": call.declined, "fail": fail, "fail_body": fail_body, "no_result": no_result,
        "_op": op, "new": new, "Tensor": Tensor,
        "keymap": call.keymap, "state": state, "switch": switch, "NO_GRAD": NO_GRAD, "AUTOGRAD": AUTOGRAD,
        "VIEW": VIEW, "TensorSpec": TensorSpec, "Port": Port, "ref": ref, "Result": op.schema.result,
        "new_tuple": tuple.__new__,
        **{f"K{i}": k for i, k in enumerate(call.keys)},
    }  # fmt: skip
    scope["KN"] = call.keys[0] | AUTOGRAD
    scope["KT"] = call.keys[0] | AUTOGRAD * call.recording | VIEW * op.view
    lines: list[str] = []
    if call.key & VIEW:
        lines += guard_lines(op, passed, scope, call.scalar)
    dynamic = next((p.name for p in op.schema.parameters if p.kind == DTYPE), None)
    if dynamic and not call.on_tensors:  # before the kernel: it never gets a dtype that the device lacks
        lines.append(f"_k = K0 if {dynamic} is None else keymap[{dynamic}]")
    lines += kernel_lines(call, passed)
    plan = None
    if call.recording:
        plan, making, cls = forward_lines(op, call.variant)
        scope["NodeClass"] = cls()
        lines += plan.edge_lines()
        if call.key & INFERENCE:
            scope["INFERENCE"], scope["refuse_inference"] = INFERENCE, refuse_inference
            lines += plan.inference_lines()
    if op.schema.result is None:
        lines += single_output_lines(call, dynamic)
        if call.recording:
            known = not dynamic and not call.on_tensors  # then the output's keys already contain the mark
            keys = "_k | AUTOGRAD" if dynamic else "_o0._keys & ~VIEW | AUTOGRAD" if call.on_tensors else "KN"
            node = [*making, "_node.shape = _p.shape", f"_node.keys = {keys}"]
            node += [*extra_lines(call, scope), "_o0._node = _node", *([] if known else ["_o0._keys |= AUTOGRAD"])]
            lines += [f"if _k & {FLOATING_BITS}:", *indent(node)] if dynamic else node
        lines.append("return _o0")
    else:
        lines += several_outputs_lines(call)
        if call.recording:
            lines += [*making, "_node.keys = 0", "_node.shape = ()", *port_lines(call), *extra_lines(call, scope)]
        # not Result(…): the constructor of a named tuple is a function in Python
        lines.append(f"return new_tuple(Result, ({', '.join(f'_o{i}' for i in range(len(call.keys)))}))")
    return build(op.name, passed, lines, scope, f"{op.name}{' recorded' if call.recording else ''}")


def kernel_lines(call: ResolvedCall, passed: str) -> list[str]:
    """Return the lines that run the kernel. If it raises, ``fail`` runs the operator's rule to describe the error."""
    arguments = ", ".join(
        passed_on(p) if call.on_tensors else payload_argument(p, call) for p in call.operator.schema.parameters
    )
    if not call.on_tensors:
        return [
            "try:", f"    _p = kernel({arguments})", f"except Exception as _error: fail(_op, _error, ({passed},))",
            *([f"if _p is NotImplemented: return declined({passed})"] if call.declined is not None else []),
            f"if _p is None: no_result(_op, ({passed},))",
        ]  # fmt: skip
    failing = f"except Exception as _error: fail_body(_op, _error, ({passed},))"
    if call.key & NO_GRAD or not call.key & AUTOGRAD:  # there is nothing to record
        return ["try:", f"    _o0 = kernel({arguments})", failing]
    return [
        "_mode = state.bits", "switch(_mode | NO_GRAD)", "try:", f"    _o0 = kernel({arguments})", failing,
        "finally: switch(_mode)",
    ]  # fmt: skip


def single_output_lines(call: ResolvedCall, dynamic: str | None) -> list[str]:
    """Return the lines that wrap the payload in a tensor. ``dynamic`` is the parameter that determines its dtype."""
    if call.on_tensors:
        return ["_p = _o0._payload", *(["_k = _o0._keys"] if dynamic else [])]
    recorded = call.recording and not dynamic
    lines = ["_o0 = new(Tensor)", "_o0._payload = _p", *([] if recorded else ["_o0._node = None"])]
    if call.operator.view:
        first = call.operator.schema.parameters[0].name
        arguments = ", ".join(p.name for p in call.operator.schema.parameters[1:])
        base = f"{first}._base" if call.key & VIEW else first
        if call.key & VIEW:
            base = f"{first}._base if {first}._keys & VIEW else {first}"
        lines += [
            f"_o0._counter = {first}._counter", f"_o0._seen = {first}._counter[0]", f"_o0._base = {base}",
            f"_o0._parent = {first}", f"_o0._replay = (_op, ({arguments}{',' if arguments else ''}))",
        ]  # fmt: skip
    else:
        lines.append("_o0._counter = [0]")
    if dynamic:
        mark = " | VIEW" if call.operator.view else ""
        return [*lines, f"_o0._keys = _k{mark}"]
    return [*lines, "_o0._keys = KT"]


def several_outputs_lines(call: ResolvedCall) -> list[str]:
    """Return the lines that wrap each payload of a tuple in a tensor."""
    if call.on_tensors:
        return [f"{', '.join(f'_o{i}' for i in range(len(call.keys)))} = _o0"]
    lines = []
    for i in range(len(call.keys)):
        lines += [
            f"_o{i} = new(Tensor)",
            f"_o{i}._payload = _p[{i}]",
            f"_o{i}._node = None",
            f"_o{i}._counter = [0]",
            f"_o{i}._keys = K{i}",
        ]
    return lines


def port_lines(call: ResolvedCall) -> list[str]:
    """Return the lines that give each differentiable output a port on ``_node``."""
    count = range(len(call.keys))
    lines = [
        f"_node.shapes = ({''.join(f'_o{i}._payload.shape, ' for i in count)})",
        f"_node.all_keys = ({''.join(f'K{i} | {AUTOGRAD * call.differentiable[i]}, ' for i in count)})",
    ]
    for i in count:
        if call.differentiable[i]:
            lines += [
                f"_o{i}._node = _q = new(Port)",
                "_q.e0 = _node",
                "_q.hooks = None",
                f"_q.index = {i}",
                f"_q.shape = _node.shapes[{i}]",
                f"_q.keys = _o{i}._keys = _node.all_keys[{i}]",
            ]
    # Restored saved outputs get the same ports. The references are weak, since a port refers to its node.
    ports = [f"ref(_o{i}._node)" if call.differentiable[i] else "None" for i in count]
    return [*lines, f"_node.ports = ({', '.join(ports)},)"]


def extra_lines(call: ResolvedCall, scope: dict[str, Any]) -> list[str]:
    """Return the lines for saved-tensor hooks and anomaly mode, or none if both are off."""
    lines = []
    if call.key & PACK:
        scope["pack_saved"] = pack_saved
        lines.append(f"pack_saved(_node, {call.operator.schema.outputs!r})")
    if call.key & ANOMALY:
        scope["remember"] = remember
        lines.append("remember(_node)")
    return lines


def guard_lines(op: Operator[..., Any], passed: str, scope: dict[str, Any], scalar: str | None = None) -> list[str]:
    """Return the lines that compare the version of each view with that of its base and refresh stale views."""
    scope["refreshed"] = refreshed
    tests = []
    for p in op.schema.tensors:
        n = p.name
        if n == scalar:
            continue
        if p.kind in (LIST, INDICES):
            tests.append(f"any([_t is not None and _t._keys & VIEW and _t._seen != _t._counter[0] for _t in {n}])")
        else:
            some = f"hasattr({n}, '_keys') and " if p.kind == BOUND else f"{n} is not None and " if p.optional else ""
            tests.append(f"({some}{n}._keys & VIEW and {n}._seen != {n}._counter[0])")
    if not tests:
        return []
    return [f"if {' or '.join(tests)}:", f"    return refreshed(_op, ({passed},))"]


def _floating_bits() -> int:
    return sum(d.bit for d in ALL if d.category >= FLOATING)


FLOATING_BITS = _floating_bits()

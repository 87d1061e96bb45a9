"""Forward mode as a device: a payload is a dual number, a tensor of the level below and its tangent.

The kernel of an operator calls it on the primals, and applies its tangent rule to the tangents; see
``candelabra._transforms.tangent_rules``. Dual numbers are immutable: an in-place write gives its target another
payload, and views of the target are computed again. So tangents need no memory layout.

Attribution: dual numbers for derivatives are Clifford's and Wengert's; nested levels, which keep perturbations apart,
are Siskind and Pearlmutter's ("Nesting forward-mode AD in a functional framework", 2008), as in functorch and JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.filling import zeros_like
from candelabra._autograd.views import check_writable
from candelabra._dispatch.viewing import same_tensor
from candelabra._keys import VIEW, mode, state
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import DEVICE
from candelabra._tensor import Tensor
from candelabra._transforms.level import Frame, Payload, Transform, below, frame_at, without_ended_levels
from candelabra._transforms.tangent_rules import rule_of
from candelabra.backend import Capabilities
from candelabra.dtypes import ALL

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class Dual(Payload):
    """A tensor of the level below and its tangent, of the same shape and dtype. None: the tangent is zero."""

    __slots__ = ("_tangent",)

    def __init__(self, tensor: Tensor, frame: Any, tangent: Any) -> None:
        self.tensor = tensor
        self.frame = frame
        self.shape = tuple(tensor._payload.shape)
        self._tangent = tangent

    @property
    def tangent(self) -> Any:
        """The tangent. A rule may leave it to a function, see ``Operator.jvp``: it is computed at its first use."""
        if isinstance(self._tangent, Waiting):
            self._tangent = self._tangent.computed()
        return self._tangent


class Waiting:
    """A tangent that nothing has used so far: a function that computes it, and the modes of the call."""

    __slots__ = ("bits", "function")

    def __init__(self, function: Callable[[], Tensor]) -> None:
        self.function = function
        self.bits = state.bits

    def computed(self) -> Tensor:
        """Return the tangent."""
        with mode(include=self.bits, exclude=~self.bits):
            return self.function()


class DualFrame(Frame):
    """One use of forward mode. Tensors of outer levels that are written inside it get their new values at its end."""

    def __init__(self) -> None:
        super().__init__(FORWARD)
        self.lifted: list[tuple[Tensor, Tensor]] = []

    def __exit__(self, *error: Any) -> None:
        values = [(lifted, outer, lifted._payload.tensor) for lifted, outer in self.lifted] if self.lifted else ()
        super().__exit__(*error)
        for lifted, outer, value in values:
            for slot in ("_payload", "_keys", "_node"):
                setattr(lifted, slot, getattr(outer, slot))
            OPERATORS["copied"].form("inplace")(lifted, value)

    def dual(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        """Return a tensor of this level."""
        if self.like is None:
            self.like = primal
        return self.wrap(Dual(primal, self, tangent))

    def primal_and_tangent(self, value: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return primal and tangent of a tensor, which may be one of an outer level: then it is constant."""
        if not value._keys & self.instance.bit or value._fresh()._payload.frame is not self:
            value = without_ended_levels(value)._fresh()  # a view may have become one of this level with its base
            if not value._keys & self.instance.bit:
                return value, None
        payload = value._payload
        return payload.tensor, payload.tangent

    def write_back(self, inputs: Sequence[Tensor], primals: Sequence[Tensor]) -> None:
        """Write to the primals what the function has written to its arguments. The block has ended."""
        for dual, primal in zip(inputs, primals, strict=True):
            value = dual._payload.tensor
            if value is not primal:
                OPERATORS["copied"].form("inplace")(primal, value)

    def lift(self, tensor: Tensor) -> None:
        """Make a tensor of an outer level, whose memory is its own, a tensor of this level until the block ends."""
        outer = same_tensor(tensor)
        outer._counter = [tensor._counter[0]]
        self.lifted.append((tensor, outer))
        tensor._payload = Dual(outer, self, None)
        tensor._keys = self.instance.keys_for(outer.dtype)
        tensor._node = None
        tensor._counter[0] += 1


class Forward(Transform):
    """The device type of forward mode. Its tensors act as their primals after the block of their level."""

    name = "jvp"
    transparent = True
    capabilities = Capabilities(frozenset(ALL), frozenset(ALL), strided=False, mutable=False, virtual=True)

    def kernel_of(self, op: Operator[..., Any]) -> Callable[..., Any] | None:
        return kernel_of(op)

    def adopted(self, frame: Any, tensor: Tensor) -> Dual:
        return Dual(tensor, frame, None)

    def writable(self, frame: Any, target: Tensor) -> Tensor:
        """Lift the memory of ``target``, with all its views, into the level; return ``target``."""
        target._fresh()
        if target._instance.depth > frame.depth:
            self.refuse(target, frame)
        with below(frame.instance):
            check_writable(target)
        frame.lift(target._base if target._keys & VIEW else target)
        return target._fresh()

    def copy_(self, destination: Dual, source: Dual) -> Dual:
        """Write a dual number into another, which no other tensor refers to."""
        destination.tensor, destination._tangent = source.tensor, source.tangent
        return destination

    def describe(self, tensor: Tensor) -> str:
        payload = tensor._payload
        primal = repr(payload.tensor)
        if payload.tangent is None or not payload.frame.alive:
            return primal
        inner = "\n    ".join([*primal.splitlines(), "tangent=", *repr(payload.tangent).splitlines()])
        return f"DualTensor(lvl={payload.frame.depth}, value=\n    {inner}\n)"


FORWARD: Final = Forward()


def kernel_of(op: Operator[..., Any]) -> Callable[..., Any] | None:
    """Return the kernel of an operator over dual numbers, or None if its body serves it."""
    found = rule_of(op)
    if found is None and op.body is not None and op.not_differentiable is None:
        return None
    rule: Any = found
    run = op.canonical
    several = op.schema.result is not None
    joint = op.tangent_is_joint
    places = [i for i, p in enumerate(op.schema.parameters) if p.kind == DEVICE]

    def kernel(*args: Any) -> Any:
        frame: Any = None
        primals: list[Any] = []
        tangents: list[Any] = []
        some = False
        for a in args:
            if type(a) is Dual:
                if frame is None or a.frame.alive:
                    frame = a.frame
                primals.append(a.tensor)
                t = a._tangent if a.frame.alive else None
                if t is not None:
                    some = True
                    if type(t) is Waiting:
                        t = a.tangent
                tangents.append(t)
            elif type(a) is list:
                frame, found = _listed(a, primals, tangents, frame)
                some = some or found
            else:
                primals.append(a)
                tangents.append(None)
        for i in places:
            frame = frame_at(primals[i]) if frame is None else frame
            primals[i] = frame.like._instance
        if some and rule is not None:
            if joint:
                out, t = rule(None, primals, tangents)
            else:
                out = run(*primals)
                t = rule(out, primals, tangents)
            if several:
                return tuple([
                    Dual(o, frame, Waiting(part) if callable(part) else part) for o, part in zip(out, t, strict=True)
                ])  # fmt: skip
            return Dual(out, frame, t)
        out = run(*primals)
        return tuple([Dual(o, frame, None) for o in out]) if several else Dual(out, frame, None)

    return kernel


def _listed(items: list[Any], primals: list[Any], tangents: list[Any], frame: Any) -> tuple[Any, bool]:
    """Add a list of tensors to ``primals`` and ``tangents``; return the frame, and whether one has a tangent."""
    values: list[Any] = []
    parts: list[Any] = []
    for item in items:
        if type(item) is not Dual:
            values.append(item)
            parts.append(None)
            continue
        if frame is None or item.frame.alive:
            frame = item.frame
        values.append(item.tensor)
        parts.append(item.tangent if item.frame.alive else None)
    primals.append(values)
    tangents.append(parts)
    return frame, any(part is not None for part in parts)


def tangent_of(value: Tensor, tangent: Tensor | None) -> Tensor:
    """Return a tangent, as zeros like ``value`` if it is absent."""
    return zeros_like(value) if tangent is None else tangent

"""Graph nodes, generated from derivative rules.

For every operator and every variant of its call (the operand that is a scalar, packed saved values) a subclass of
``Node`` is generated whose slots are exactly the values that its rules name. One plan gives two pieces of code: the
lines that *save* values in the forward pass, and the ``backward`` method that loads them, checks their versions, and
calls the rules.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.node import RELEASED, Node, TensorSpec, changed
from candelabra._autograd.saved import checked_list, saved_output, with_node, zero_gradient
from candelabra._codegen.source import build, indent
from candelabra._keys import active, state
from candelabra._records.derivative import Applied, Rule
from candelabra._records.schema import INDEX, INDICES, LIST, MASK, OPERAND, OPTIONAL, TENSOR

if TYPE_CHECKING:
    from candelabra._autograd.structure import Structure
    from candelabra._records.record import Operator


class Variant(NamedTuple):
    """The properties of a call that its node's slots depend on."""

    scalar: str | None = None
    """The name of the operand that is a Python scalar."""
    packed: bool = False
    """Whether saved tensors are packed by ``saved_tensors_hooks``."""
    differentiable: tuple[bool, ...] = (True,)
    """For each output, whether it has a gradient."""
    real: bool = False
    """Whether the call computes in a real dtype."""


class Plan:
    """The values that one variant of an operator saves, and the lines that save and load them."""

    def __init__(self, operator: Operator[..., Any], variant: Variant) -> None:
        self.operator = operator
        self.variant = variant
        schema = operator.schema
        self.edges: dict[str, str] = {}
        """Input name → the local variable of its edge (``_e0``), or for a list its slice of ``more``."""
        self.lists = [p.name for p in schema.differentiable if p.kind == LIST]
        singles = [p.name for p in schema.differentiable if p.kind != LIST]
        for position, name in enumerate(singles):
            self.edges[name] = f"_e{position}"
        self.singles = singles
        self.rules = list(operator.rules.values())
        self.kinds = {p.name: p.kind for p in schema.parameters}
        self.optional = {p.name for p in schema.parameters if p.optional}
        self.multiple = schema.result is not None

    # -- edges ------------------------------------------------------------------------------------------------------
    def edge_lines(self) -> list[str]:
        """Return the lines that read the edges from the inputs."""
        lines = []
        for name, variable in self.edges.items():
            if name == self.variant.scalar:
                lines.append(f"{variable} = None")
            elif self.kinds[name] == OPTIONAL:
                lines.append(f"{variable} = None if {name} is None else {name}._node")
            else:
                lines.append(f"{variable} = {name}._node")
        for name in self.lists:
            lines.append(f"_l_{name} = tuple([_t._node for _t in {name}])")
        return lines

    def store_edges(self) -> list[str]:
        names = list(self.edges.values())
        lines = [f"_node.e0 = {names[0] if names else 'None'}"]
        if len(names) > 1:
            lines.append(f"_node.e1 = {names[1]}")
        rest = [*(f"{n}," for n in names[2:]), *(f"*_l_{n}," for n in self.lists)]
        if rest:
            lines.append(f"_node.more = ({' '.join(rest)})")
        return lines

    def _rule_condition(self, rule: Rule) -> str | None:
        """Return the condition under which a rule runs, or None for always (a single edge is never absent)."""
        if len(self.edges) + len(self.lists) == 1:
            return None
        tests = [f"{self.edges[t]} is not None" if t in self.edges else f"any(_l_{t})" for t in rule.targets]
        return None if len(tests) == len(self.edges) + len(self.lists) else " or ".join(tests)

    def condition(self, name: str) -> str | None:
        """Return the condition under which a saved name is needed."""
        wanted = [self._rule_condition(rule) for rule in self.rules if name in rule.names]
        targets = {t for rule in self.rules if name in rule.names for t in rule.targets}
        if None in wanted or len(targets) == len(self.edges) + len(self.lists):
            return None
        return " or ".join(w for w in wanted if w)

    # -- forward ------------------------------------------------------------------------------------------------------
    def names(self) -> list[str]:
        """Return the distinct names that the rules ask for, without gradients and ``needs``."""
        asked: dict[str, None] = {}
        for rule in self.rules:
            asked.update(dict.fromkeys(n for n in rule.names if not _is_gradient(n) and n != "needs"))
        return list(asked)

    def save_lines(self) -> list[str]:
        """Return the lines that store the values that the rules need on ``_node``."""
        lines: list[str] = []
        for name in self.names():
            save = self._save(name)
            condition = self.condition(name)
            if save and condition is not None and not save[0].startswith("_node.a_"):
                lines += [f"if {condition}:", *indent(save)]
            else:
                lines += save
        return lines

    def _save(self, name: str) -> list[str]:
        if name.endswith("_spec") and name not in self.kinds:
            name = name[: -len("_spec")]
            if self._spec_from_edge(name):
                return []
            if self.kinds[name] == LIST:
                return [f"_node.q_{name} = [TensorSpec(_t._payload.shape, _t._keys) for _t in {name}]"]
            if name == self.variant.scalar:
                return [f"_node.q_{name} = None"]
            absent = f"None if {name} is None else " if name in self.optional else ""
            return [f"_node.q_{name} = {absent}TensorSpec({name}._payload.shape, {name}._keys)"]
        if name in self.operator.schema.outputs:
            position = self.operator.schema.outputs.index(name)
            source = f"_o{position}"
            if not self.variant.differentiable[position]:
                return [f"_node.s_{name} = {source}", f"_node.v_{name} = 0"]
            return [
                f"_node.p_{name} = {source}._payload", f"_node.c_{name} = {source}._counter",
                f"_node.v_{name} = {source}._counter[0]",
            ]  # fmt: skip
        kind = self.kinds[name]
        if kind not in (TENSOR, OPERAND, OPTIONAL, LIST, INDEX, MASK, INDICES) or name == self.variant.scalar:
            return [f"_node.a_{name} = {name}"]
        if kind in (LIST, INDICES):
            return [
                f"_node.s_{name} = {name}",
                f"_node.v_{name} = [0 if _t is None else _t._counter[0] for _t in {name}]",
            ]
        if name in self.optional:
            return [f"_node.s_{name} = {name}", f"_node.v_{name} = -1 if {name} is None else {name}._counter[0]"]
        return [f"_node.s_{name} = {name}", f"_node.v_{name} = {name}._counter[0]"]

    def inference_lines(self) -> list[str]:
        """Return the lines that refuse to save inference tensors, whose versions are not counted."""
        lines = []
        for name in self.names():
            kind = self.kinds.get(name)
            if kind not in (TENSOR, OPERAND, OPTIONAL, LIST, INDEX, MASK, INDICES) or name == self.variant.scalar:
                continue
            test = f"({name} is not None and {name}._keys & INFERENCE)"
            if kind in (LIST, INDICES):
                test = f"any([_t is not None and _t._keys & INFERENCE for _t in {name}])"
            condition = self.condition(name)
            lines.append(f"if {test if condition is None else f'({condition}) and {test}'}: refuse_inference()")
        return lines

    def _spec_from_edge(self, name: str) -> bool:
        """Return whether a rule can read its input's spec from the edge's node: only this edge triggers the rule."""
        asked = f"{name}_spec"
        return name in self.edges and all(rule.targets == (name,) for rule in self.rules if asked in rule.names)

    # -- backward -----------------------------------------------------------------------------------------------------
    def backward_lines(self) -> list[str]:
        edges = list(self.edges.values())
        lines = [
            f"{variable} = self.e{i}" if i < 2 else f"{variable} = self.more[{i - 2}]"
            for i, variable in enumerate(edges)
        ]
        start = max(len(edges) - 2, 0)
        if self.lists:  # at most one list input per operator
            lines.append(f"_l_{self.lists[0]} = self.more[{start}:]")
        if len(self.edges) + len(self.lists) > 1:
            lines += [f"_r{v[2:]} = None" for v in edges] + [f"_r_{n} = [None] * len(_l_{n})" for n in self.lists]
        for number, rule in enumerate(self.rules):
            body = self._call(number, rule)
            condition = self._rule_condition(rule)
            lines += body if condition is None else [f"if {condition}:", *indent(body)]
        targets = {t for rule in self.rules for t in rule.targets}
        missing = [f"_r{v[2:]} = None" for n, v in self.edges.items() if n not in targets and len(edges) == 1]
        results = [f"_r{v[2:]}," for v in edges[:2]]
        if not edges:
            results.append("None,")
        if self.lists or len(edges) > 2:
            if len(edges) < 2:
                results.append("None,")
            results += [f"_r{v[2:]}," for v in edges[2:]] + [f"*_r_{n}," for n in self.lists]
        return [*lines, *missing, f"return ({' '.join(results)})"]

    def _call(self, number: int, rule: Rule) -> list[str]:
        lines: list[str] = []
        arguments = []
        applied = rule.function if isinstance(rule.function, Applied) else None
        count = len(rule.names) if applied else rule.function.__code__.co_argcount
        for position, name in enumerate(rule.names):
            value, load = self._load(name, rule)
            lines += load
            if applied and applied.conjugated[position] and not self.variant.real:
                value = f"{value}.conjugate()" if name == self.variant.scalar else f"{value}.conj()"
            arguments.append(value if position < count else f"{name}={value}")
        into = ", ".join(f"_r{self.edges[t][2:]}" if t in self.edges else f"_r_{t}" for t in rule.targets)
        if rule.joint and len(rule.targets) == 1:
            into += ","
        if applied and all(self._is_tensor(name) for name in rule.names):
            named = [f"_a{i}" for i in range(len(arguments))]
            lines += [f"{variable} = {value}" for variable, value in zip(named, arguments, strict=True)]
            lines += [f"_key = {' | '.join(f'{n}._keys' for n in named)}", "if active: _key |= state.bits"]
            return [*lines, f"{into} = table_{number}[_key]({', '.join(named)})"]
        return [*lines, f"{into} = rule_{number}({', '.join(arguments)})"]

    def _is_tensor(self, name: str) -> bool:
        """Return whether the value of that name is always a tensor."""
        if name == "g" or name in self.operator.schema.outputs:
            return True
        return self.kinds.get(name) in (TENSOR, OPERAND) and name != self.variant.scalar

    def _load(self, name: str, rule: Rule) -> tuple[str, list[str]]:
        schema = self.operator.schema
        if name == "g":
            return "g", []
        if name.startswith("g_") and name[2:] in schema.outputs:
            position = schema.outputs.index(name[2:])
            if rule.optional(name):
                return f"g[{position}]", []
            return f"(zero_gradient(self, {position}, g) if g[{position}] is None else g[{position}])", []
        if name == "needs":
            tests = [
                f"{self.edges[t]} is not None" if t in self.edges else f"[_e is not None for _e in _l_{t}]"
                for t in rule.targets
            ]
            return f"({', '.join(tests)},)", []
        if name.endswith("_spec") and name not in self.kinds:
            name = name[: -len("_spec")]
            return (
                f"TensorSpec({self.edges[name]}.shape, {self.edges[name]}.keys)"
                if self._spec_from_edge(name)
                else f"self.q_{name}"
            ), []
        if name in schema.outputs:
            position = schema.outputs.index(name)
            if not self.variant.differentiable[position]:
                return self._checked(name)
            if self.variant.packed:
                return f"self.s_{name}.unpack(self)", []
            return f"saved_output(self, {position}, {name!r}, self.p_{name}, self.c_{name}, self.v_{name})", []
        kind = self.kinds[name]
        if kind not in (TENSOR, OPERAND, OPTIONAL, LIST, INDEX, MASK, INDICES) or name == self.variant.scalar:
            return f"self.a_{name}", []
        if kind in (LIST, INDICES):
            if self.variant.packed:
                return f"[_s.unpack(self) for _s in self.s_{name}]", []
            return f"checked_list(self, {name!r}, self.s_{name}, self.v_{name})", []
        return self._checked(name)

    def _checked(self, name: str) -> tuple[str, list[str]]:
        if self.variant.packed:
            return f"self.s_{name}.unpack(self)", []
        lines = [
            f"{name} = self.s_{name}",
            f"if {name}._counter[0] != self.v_{name}:",
            f"    _now, _shape = {name}._counter[0], {name}._payload.shape",
            f"    raise changed(self, {name!r}, _shape, {name}._keys, _now, self.v_{name})",
        ]
        if name in self.edges:
            # The tensor may have been detached since. The second derivative still uses the saved edge.
            lines.append(f"if {name}._node is not {self.edges[name]}: {name} = with_node({name}, {self.edges[name]})")
        if name in self.optional:
            lines = [f"{name} = self.s_{name}", f"if {name} is not None:", *indent(lines[1:])]
        return name, lines

    # -- structure ----------------------------------------------------------------------------------------------------
    def describe_lines(self) -> list[str]:
        """Return the lines that add what a node has saved to a structure ``to``."""
        lines = [
            f"{variable} = self.e{i}" if i < 2 else f"{variable} = self.more[{i - 2}]"
            for i, variable in enumerate(self.edges.values())
        ]
        if self.lists:
            lines.append(f"_l_{self.lists[0]} = self.more[{max(len(self.edges) - 2, 0)}:]")
        if self.variant.packed:
            return ["to.refuse('values that saved_tensors_hooks have packed')"]
        for name in self.names():
            described = self._described(name)
            condition = None if described.startswith("to.plain(self.a_") else self.condition(name)
            lines += [described] if condition is None else [f"if {condition}:", *indent([described])]
        return [*lines, "return None"]

    def _described(self, name: str) -> str:
        schema = self.operator.schema
        if name.endswith("_spec") and name not in self.kinds:
            name = name[: -len("_spec")]
            return "pass" if self._spec_from_edge(name) else f"to.plain(self.q_{name})"
        if name in schema.outputs:
            position = schema.outputs.index(name)
            if not self.variant.differentiable[position]:
                return f"to.tensor(self.s_{name}, self.v_{name}, self, {name!r})"
            keys = f"self.all_keys[{position}]" if self.multiple else "self.keys"
            return f"to.output(self.p_{name}, self.c_{name}, self.v_{name}, self, {keys}, {name!r})"
        kind = self.kinds[name]
        if kind not in (TENSOR, OPERAND, OPTIONAL, LIST, INDEX, MASK, INDICES) or name == self.variant.scalar:
            return f"to.plain(self.a_{name})"
        method = "tensors" if kind in (LIST, INDICES) else "tensor"
        return f"to.{method}(self.s_{name}, self.v_{name}, self, {name!r})"

    # -- slots --------------------------------------------------------------------------------------------------------
    def slots(self) -> tuple[list[str], list[str]]:
        """Return (all slots of the subclass, those with tensors, which are released after the backward pass)."""
        slots: list[str] = []
        tensors: list[str] = []
        if len(self.edges) > 1:
            slots.append("e1")
        if self.lists or len(self.edges) > 2:
            slots.append("more")
        for name in self.names():
            for line in self._save(name):
                slot = line.split(" ", 1)[0].removeprefix("_node.")
                slots.append(slot)
                if slot[:2] in ("s_", "p_", "c_"):
                    tensors.append(slot)
        if self.variant.packed:
            extra = [s.replace("p_", "s_", 1) for s in slots if s.startswith("p_")]
            slots += extra
            tensors += extra
        if self.multiple:
            slots += ["shapes", "all_keys", "ports"]
        return slots, tensors


def _is_gradient(name: str) -> bool:
    return name == "g" or name.startswith("g_")


def node_class(operator: Operator[..., Any], variant: Variant) -> type[Node]:
    """Return the node class of one variant, which is generated at the first use."""
    cached = operator.node_classes.get(variant)
    if cached is not None:
        return cached

    plan = Plan(operator, variant)
    slots, tensors = plan.slots()
    scope: dict[str, Any] = {
        f"rule_{i}": rule.function for i, rule in enumerate(plan.rules)
    } | {
        f"table_{i}": rule.function.operator.table
        for i, rule in enumerate(plan.rules)
        if isinstance(rule.function, Applied)
    } | {
        "TensorSpec": TensorSpec, "changed": changed, "RELEASED": RELEASED, "saved_output": saved_output,
        "with_node": with_node, "checked_list": checked_list, "zero_gradient": zero_gradient, "active": active,
        "state": state,
    }  # fmt: skip
    members: dict[str, Any] = {
        "__slots__": tuple(dict.fromkeys(slots)),
        "operator": operator.name,
        "outputs": len(operator.schema.outputs),
        "backward": build("backward", "self, g", plan.backward_lines(), scope, operator.name),
        "saved_slots": tuple(tensors),
        "plan": plan,
        "describe": _describe,
        "__module__": "candelabra.autograd.nodes",
    }
    if operator.add_to is not None:
        members["add_to"] = staticmethod(operator.add_to)
    members["consume"] = members["backward"]
    if tensors:
        release = f"self.{' = self.'.join(tensors)} = RELEASED"
        members["release"] = build("release", "self", [release], scope, operator.name)
        *compute, give = plan.backward_lines()
        members["consume"] = build("consume", "self, g", [*compute, release, give], scope, operator.name)
    title = "".join(part.capitalize() for part in operator.name.split("_")) + "Backward"
    cls = operator.node_classes[variant] = type(title, (Node,), members)
    return cls


def _describe(self: Any, to: Structure) -> None:
    """Add a node to a structure. The first call for a class replaces this method by a generated one."""
    cls = type(self)
    cls.describe = build("describe", "self, to", cls.plan.describe_lines(), {}, cls.operator)
    cls.describe(self, to)


def refuse_inference() -> None:
    """Raise the error for an inference tensor that would have to be saved."""
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
        "in autograd, or use no_grad() instead of inference_mode()."
    )


def forward_lines(operator: Operator[..., Any], variant: Variant) -> tuple[Plan, list[str], Callable[[], type[Node]]]:
    """Return the plan, the lines that create ``_node`` and save into it, and the node class, for the adapters."""
    plan = Plan(operator, variant)
    lines = ["_node = NodeClass()", *plan.store_edges(), "_node.hooks = None", *plan.save_lines()]
    return plan, lines, lambda: node_class(operator, variant)

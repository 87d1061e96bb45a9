"""Read the public names that sources declare from their syntax trees.

Three forms declare a public name, each at the top level of a module: a function with the decorator ``@operator(…)``,
one with ``@public`` or ``@public(…)``, and ``name = overloads("name", …)``. Their options are literals, so no code has
to run. ``candelabra._records`` interprets the same options at run time, and a test compares the two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Declared:
    """One declaration: its kind, its public names, and the functions whose signatures it has."""

    kind: str
    """``"operator"``, ``"public"`` or ``"overloads"``."""
    name: str
    module: Module
    options: dict[str, Any]
    functions: list[Overload]
    pointwise: bool = False
    view: bool = False

    @property
    def namespace(self) -> str:
        return str(self.options.get("namespace", ""))

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(self.options.get("aliases", ()))

    @property
    def public(self) -> bool:
        return bool(self.options.get("public", True))

    @property
    def is_property(self) -> bool:
        return bool(self.options.get("is_property", False))

    @property
    def public_name(self) -> str:
        space = self.namespace
        return f"{space}.{self.name.removeprefix(space.replace('.', '_') + '_')}" if space else self.name

    @property
    def has_inplace_form(self) -> bool:
        """Whether it has an in-place form."""
        return bool(self.options.get("inplace", self.pointwise))

    @property
    def inplace(self) -> bool:
        """Whether it has in-place methods. ``inplace="argument"``: its function has an argument instead."""
        return self.has_inplace_form and self.options.get("inplace") != "argument"

    @property
    def is_guarded(self) -> bool:
        """Whether its methods describe errors by the arguments, as ``PublicCallable.guarded`` says."""
        if self.kind != "public" or self.is_property:
            return True
        is_function = self.options.get("is_function", True)
        return bool(self.options.get("guarded", True) and (is_function or self.functions[0].parameter_count > 1))

    def public_names(self) -> list[str]:
        """Return the public functions."""
        if not self.public or not self.options.get("is_function", True):
            return []
        return [self.public_name, *self.aliases]

    def methods(self) -> dict[str, str]:
        """``{method of Tensor: form}``."""
        if not self.public:
            return {}
        method = self.options.get("method", True)
        if self.namespace and not isinstance(method, str):
            method = False
        plain = [alias for alias in self.aliases if "." not in alias] if method or self.namespace else []
        own = [method if isinstance(method, str) else self.name] if method else []
        result = dict.fromkeys([*own, *plain], "function")
        if self.inplace and self.kind == "operator":
            inplace = [*([] if self.namespace else [self.name]), *(a for a in self.aliases if "." not in a)]
            result |= {f"{name}_": "inplace" for name in inplace}
        elif self.inplace:
            result |= {f"{name}_": "inplace" for name in [*own, *plain]}
        return result


@dataclass
class Overload:
    """One signature: its function, the accepted parameters (None: all), and the declaration."""

    function: ast.FunctionDef
    module: Module
    accepted: set[str] | None
    declared: Declared | None = None

    @property
    def parameter_count(self) -> int:
        """The number of the function's parameters, one for ``*args``."""
        given = self.function.args
        return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) + (given.vararg is not None)


@dataclass
class Module:
    """A module's declarations, and its imports."""

    name: str
    tree: ast.Module
    declared: dict[str, Declared] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Local name → module and attribute; None for the attribute: the module itself."""
    deferred: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Names that the module imports at their first use → module and attribute; an empty attribute: the module."""
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)


@dataclass
class Distribution:
    """A folder ``src/candelabra`` with its modules."""

    name: str
    root: Path
    modules: list[Module]

    @property
    def suffix(self) -> str:
        """The suffix of the names of its generated files, empty for the core."""
        return "" if self.name == "core" else f"_{self.name}"

    @property
    def declared(self) -> list[Declared]:
        return [d for module in self.modules for d in module.declared.values()]


def read(roots: dict[str, Path]) -> list[Distribution]:
    """Return the distributions in folders ``src/candelabra``. Raise Python's ``SyntaxError`` for invalid sources."""
    result = [Distribution(name, root, [parsed(p, root) for p in sorted(root.rglob("*.py"))]) for name, root in
             roots.items() if root.is_dir()]  # fmt: skip
    modules = {module.name: module for distribution in result for module in distribution.modules}
    for module in modules.values():
        if any(defers_imports(node) for node in statements(module.tree)):
            module.deferred = deferred_imports(module, modules)
        for declared in module.declared.values():
            if declared.kind == "overloads":
                declared.functions = [member(node, module, modules) for node in declared.options.pop("members")]
    return result


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements below a node, also those of functions. ``ast.walk`` takes ten times as long."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        below = getattr(node, name, None)
        for child in below if isinstance(below, list) else ():
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)


def parsed(path: Path, root: Path) -> Module:
    """Return one module's declarations and imports."""
    relative = path.relative_to(root).with_suffix("").parts
    name = ".".join(("candelabra", *(relative[:-1] if relative[-1] == "__init__" else relative)))
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    module = Module(name, tree)
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module.imports[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                module.imports[alias.asname or alias.name] = (alias.name, None)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            module.classes.add(statement.name)
        elif isinstance(statement, ast.FunctionDef):
            module.functions[statement.name] = statement
            declare_function(module, statement)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            declare_overloads(module, statement)
    return module


def defers_imports(node: ast.AST) -> bool:
    """Return whether a statement is ``__getattr__ = deferred_imports(__name__)``."""
    return (
        isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "__getattr__"
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "deferred_imports"
    )


def deferred_imports(module: Module, modules: dict[str, Module]) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports below ``if TYPE_CHECKING:`` at its top level."""
    found: dict[str, tuple[str, str]] = {}
    for statement in module.tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for node in statement.body:
                if not isinstance(node, ast.ImportFrom) or not node.module:
                    raise ValueError(f"{module.name}, line {node.lineno}: expected ``from … import …`` alone")
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found[alias.asname or alias.name] = (whole, "") if whole in modules else (node.module, alias.name)
    return found


def declare_function(module: Module, function: ast.FunctionDef) -> None:
    """Add a function that is decorated as an operator or a public callable."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        named = call.func if call else decorator
        if not isinstance(named, ast.Name) or named.id not in ("operator", "public"):
            continue
        options = literals(call, module) if call else {}
        if call and any(keyword.arg == "view" for keyword in call.keywords):
            options.setdefault("out", False)  # a view has no ``out=`` form
        first = call.args[0] if call and call.args else None
        default = function.name.rstrip("_") if named.id == "operator" else function.name
        declared = Declared(named.id, options.pop("name", default), module, options, [])
        declared.functions = [Overload(function, module, None, declared)]
        rule = first.func if isinstance(first, ast.Call) else first
        declared.pointwise = isinstance(rule, ast.Name) and rule.id in ("pointwise", "checked_pointwise")
        declared.view = "view" in [keyword.arg for keyword in (call.keywords if call else [])]
        module.declared[function.name] = declared


def declare_overloads(module: Module, statement: ast.Assign) -> None:
    """Add an overload set. Its members are looked up after all modules are read."""
    call = statement.value
    assert isinstance(call, ast.Call)
    target = statement.targets[0]
    if not (isinstance(call.func, ast.Name) and call.func.id == "overloads" and isinstance(target, ast.Name)):
        return
    options = literals(call, module) | {"members": call.args[1:]}
    module.declared[target.id] = Declared("overloads", ast.literal_eval(call.args[0]), module, options, [])


LITERAL = (
    "name", "method", "is_function", "is_property", "namespace", "aliases", "public", "inplace", "out", "factory",
    "doc", "guarded",
)  # fmt: skip


def literals(call: ast.Call, module: Module) -> dict[str, Any]:
    """Return the options for the public names of a declaration. Raise ``ValueError`` if one is not a literal."""
    result = {}
    for keyword in call.keywords:
        if keyword.arg not in LITERAL:
            continue
        try:
            result[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError as error:
            raise ValueError(
                f"{module.name}, line {call.lineno}: the option {keyword.arg}= has to be a literal: the index is "
                "written without running the module"
            ) from error
    return result


def member(node: ast.expr, module: Module, modules: dict[str, Module]) -> Overload:
    """Return one member of an overload set: a name, ``module.name``, or ``(member, "parameters")``."""
    accepted = None
    if isinstance(node, ast.Tuple):
        node, words = node.elts
        accepted = set(str(ast.literal_eval(words)).split())
    home, name = located(node, module)
    while home != module.name and name not in modules[home].functions and name in modules[home].imports:
        home, other = modules[home].imports[name]  # re-exported
        name = other or name
    return Overload(modules[home].functions[name], modules[home], accepted, modules[home].declared.get(name))


def located(node: ast.expr, module: Module) -> tuple[str, str]:
    """Return the module and the name that an expression denotes."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        home, attribute = module.imports[node.value.id]
        return (f"{home}.{attribute}" if attribute else home), node.attr
    assert isinstance(node, ast.Name)
    if node.id in module.functions:
        return module.name, node.id
    home, attribute = module.imports[node.id]
    return home, attribute or node.id

"""Write the documentation of every operator from its record: ``docs/operators/<family>.md`` and an index.

``python tools/operators.py`` writes signature, shapes, dtypes, derivative and forms of each record, and how each device
that works here serves it: by a kernel, by the composite body, by the fallback, or not at all. A front (an overloaded
function over several records) is documented as its author wrote it, with the operators that it names.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from candelabra._cli.routes import instances, table
from candelabra._namespace.publishing import methods_of
from candelabra._operators.fronts.registry import FRONTS, Front
from candelabra._records.record import OPERATORS, Operator
from stubs import front_signature, record_result, record_signature

PAGES = Path(__file__).resolve().parent.parent / "docs" / "operators"
HEADER = "<!-- Written by tools/operators.py (make docs) from the operators' records: do not edit. -->\n"
NAMESPACES = ("linalg", "fft", "special", "signal", "masked")
"""One page for each; elsewhere a page is a module, or modules of one name."""
ACCEPTED = {
    None: "all",
    "real": "all but complex",
    "numeric": "all but bool",
    "numeric operands": "all but bool, each operand",
    "real numeric": "integers and real floats",
    "floating": "floats and complex",
    "real floating": "real floats",
    "integral": "bool and integers",
    "integer": "integers",
    "complex": "complex",
    "signed": "all but bool",
}
"""What a record's ``accepts`` means."""
PROMOTED = {
    "common": "",
    "unpromoted": "",
    "to_float": "integers and bools become the default float first",
    "to_integer": "bools become int64 first",
}
RESULTS = {
    "same": "",
    "boolean": "gives bool",
    "index": "gives int64",
    "real_part": "gives the real dtype",
    "accumulated": "integers and bools give int64",
}
SHAPES = {
    "like_input": "the first tensor's",
    "reduced_to_one": "`dim` goes, or stays as 1 with `keepdim`; it may not be empty",
    "unchecked": "as the text says",
}
ROUTES = {"native": "kernel", "strided": "strides", "composite": "its body", "unsupported": "not"}


def family(module: str) -> str:
    """The page of a module: its file's name, or the subject whose folder it stands in."""
    parts = module.split(".")
    if parts[1] in NAMESPACES:
        return parts[1]
    return f"nn-{parts[-1]}" if parts[1] == "nn" else parts[-1]


def anchor(name: str) -> str:
    """The fragment by which GitHub and others link to a heading."""
    return re.sub(r"[^\w-]", "", name.lower())


def plain(signature: str) -> str:
    """A stub's parameter list for people: without the prefixes that stubs need."""
    return re.sub(r"\b_(dtype|device)\b", r"\1", signature.replace("builtins.", ""))


def text(doc: str | None) -> str:
    """A docstring as Markdown."""
    made = inspect.cleandoc(doc or "")
    made = re.sub(r":(?:func|class|data|meth|mod):`~?(?:candelabra\.)?([^`]+)`", r"`\1`", made)
    return made.replace("``", "`")


def first_sentence(doc: str | None) -> str:
    """The first line of a documentation, on one line."""
    return " ".join(text(doc).split("\n\n")[0].split())


def shapes(record: Operator) -> str:
    """What the record's rule says about shapes."""
    kinds = {"a view": record.view, "random": record.random, "the shape depends on the data": record.data_dependent}
    if getattr(record.rule, "pointwise", False):
        shape = "the input's" if len(record.schema.tensors) == 1 else "all tensors broadcast together"
    else:
        shape = (
            SHAPES.get(record.rule.__name__) or first_sentence(record.rule.__doc__).rstrip(".") or "as the text says"
        )
    return "; ".join([shape, *(word for word, holds in kinds.items() if holds)])


def dtypes(record: Operator) -> str:
    """What goes in and what comes out."""
    lines = [f"takes {ACCEPTED[record.accepts]}", _said(PROMOTED, record.promote)]
    results = [_said(RESULTS, rule) for rule in record.results]
    if len(results) > 1:
        results = [f"`{name}` {said}" for name, said in zip(record.schema.outputs, results, strict=True) if said]
    return "; ".join(filter(None, lines + results))


def _said(words: dict[str, str], rule: Any) -> str:
    known = words.get(rule.__name__)
    return first_sentence(rule.__doc__).rstrip(".") if known is None else known


def derivative(record: Operator) -> str:
    """Where gradients come from."""
    if record.rules:
        inputs = [f"`{name}`" for targets in record.rules for name in targets]
        return f"its own, with respect to {', '.join(dict.fromkeys(inputs))}"
    if record.not_differentiable is not None:
        return f"none: {record.not_differentiable}"
    return "that of the operators in its body" if record.body is not None else "none is declared"


def facts(record: Operator, routes: dict[str, dict[str, Any]]) -> list[str]:
    """Shape, dtypes, derivative and devices of a record, a line each."""
    taken = {device: rows[record.name].route for device, rows in routes.items()}
    served = [f"{device}: {ROUTES.get(route, route)}" for device, route in taken.items()]
    return [
        f"- shape: {shapes(record)}",
        f"- dtypes: {dtypes(record)}",
        f"- derivative: {derivative(record)}",
        f"- devices: {', '.join(served)}",
    ]


def of_record(record: Operator, routes: dict[str, dict[str, Any]]) -> str:
    """The section of one record."""
    name, signature = record.public_name, plain(record_signature(record, False))
    found = [f"candelabra.{name}", *(f"Tensor.{method}" for method in methods_of(record))] if record.public else []
    found += [f"candelabra.{alias}" for alias in record.aliases]
    lines = [
        f"## {name}\n",
        f"```python\n{name}({signature}) -> {plain(record_result(record))}\n```\n",
        text(record.doc) + "\n",
        *([f"- forms: {', '.join(f'`{f}`' for f in found)}"] if found else []),
        *facts(record, routes),
        "",
    ]
    return "\n".join(lines)


def of_front(names: list[str], front: Front, routes: dict[str, dict[str, Any]]) -> str:
    """The section of one front, published under several names."""
    signature, result = front_signature(front.function, False)
    fronts = [(name, FRONTS[name]) for name in names]
    found = [f"`candelabra.{name}`" for name, each in fronts if each.is_function]
    found += [f"`Tensor.{each.method}`" + " (an attribute)" * each.is_property for _, each in fronts if each.method]
    title = names[0] if front.is_function else f"Tensor.{front.method}"
    lines = [f"## {title}\n"]
    if not front.is_property:
        lines.append(f"```python\n{title}({plain(signature)}) -> {plain(result)}\n```\n")
    lines += [text(front.function.__doc__) + "\n", f"- forms: {', '.join(found)}"]
    function = inspect.unwrap(front.function)
    named = {n for n in names_in(function.__code__) if not inspect.ismodule(function.__globals__.get(n))}
    used = sorted({n for n in named if n in OPERATORS} - {names[0]})
    if used:
        lines.append("- calls: " + ", ".join(f"[{n}]({link(n)})" for n in used))
    record = OPERATORS.get(names[0].replace(".", "_"))
    if record is not None and record.public_name == names[0]:
        lines += facts(record, routes)
    return "\n".join([*lines, ""])


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function's code mentions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def link(name: str) -> str:
    """Where an operator is documented."""
    record = OPERATORS[name]
    front = FRONTS.get(record.public_name)
    module = record.declared.__module__ if front is None else front.function.__module__
    page = family(module) if record.public else "internal"
    return f"{page}.md#{anchor(record.public_name)}"


def fronts() -> Iterator[tuple[list[str], Front]]:
    """Each front with its names, the one that it was written under first."""
    names = defaultdict(list)
    for name, front in sorted(FRONTS.items()):
        names[front.function].append(name)
    for function, found in names.items():
        found.sort(key=lambda name: name.rpartition(".")[2] != function.__name__)
        yield found, FRONTS[found[0]]


def sections() -> dict[str, dict[str, tuple[str, str]]]:
    """``{page: {title: (section, first sentence)}}``; records that only operators call have a page of their own."""
    routes = {instance.device.type: table(instance) for instance in instances(None)}
    pages: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for names, front in fronts():
        title = names[0] if front.is_function else f"Tensor.{front.method}"
        sentence = first_sentence(front.function.__doc__)
        pages[family(front.function.__module__)][title] = (of_front(names, front, routes), sentence)
    for record in OPERATORS.values():
        if record.public_name in FRONTS and record.public:
            continue  # the front of that name is what users call, and tells of the record
        page = family(record.declared.__module__) if record.public else "internal"
        pages[page][record.public_name] = (of_record(record, routes), first_sentence(record.doc))
    return pages


def titled(page: str) -> str:
    """``nn-pooling`` → ``nn: pooling``, ``order_statistics`` → ``Order statistics``."""
    return page.replace("nn-", "nn: ") if page.startswith("nn-") else page.replace("_", " ").capitalize()


def write(folder: Path) -> int:
    """Write every page and the index; pages of families that are gone are removed. Returns how many sections."""
    pages = sections()
    folder.mkdir(parents=True, exist_ok=True)
    for stale in set(folder.glob("*.md")) - {folder / f"{page}.md" for page in (*pages, "index")}:
        stale.unlink()
    index = [HEADER, "# The operators\n", "One record each; see [adding an operator](../adding-an-operator.md).\n"]
    for page, found in sorted(pages.items(), key=lambda item: (item[0] == "internal", item[0])):
        title = "Called by other operators only" if page == "internal" else titled(page)
        body = "\n".join(section for _, (section, _) in sorted(found.items()))
        (folder / f"{page}.md").write_text(f"{HEADER}\n# {title}\n\n{body}")
        index.append(f"## [{title}]({page}.md)\n\n| | |\n|---|---|")
        index += [
            f"| [{name}]({page}.md#{anchor(name)}) | {line.replace('|', chr(92) + '|')} |"
            for name, (_, line) in sorted(found.items())
        ]
        index.append("")
    (folder / "index.md").write_text("\n".join(index))
    return sum(map(len, pages.values()))


def stale(folder: Path) -> list[str]:
    """The pages that are not as they would be written now, but for the devices, which depend on what is installed."""
    with tempfile.TemporaryDirectory() as fresh:
        write(Path(fresh))
        wanted, present = (
            {page.name: _without_devices(page.read_text()) for page in Path(place).glob("*.md")}
            for place in (fresh, folder)
        )
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def _without_devices(page: str) -> list[str]:
    return [line for line in page.splitlines() if not line.startswith("- devices: ")]


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=PAGES, help="where to (docs/operators)")
    parser.add_argument("--check", action="store_true", help="only say whether the pages are current")
    arguments = parser.parse_args()
    if not arguments.check:
        print(f"operators: {write(arguments.folder)} sections in {arguments.folder}")
        return 0
    pages = stale(arguments.folder)
    if pages:
        print(f"operators: {', '.join(pages)} not current: run make docs", file=sys.stderr)
    return 1 if pages else 0


if __name__ == "__main__":
    sys.exit(main())

"""Write the documentation of every operator from its record: ``docs/operators/<subject>.md`` and an index.

``python tools/operators.py`` writes signature, shapes, dtypes, derivative and forms of each record, and how each device
that works here serves it: by a kernel, by the composite body, by the fallback, or not at all. An overload set is
documented with its members, a public callable with the operators that it names.
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
from typing import Any

from candelabra._cli.routes import instances, table
from candelabra._namespace.calls import called_by
from candelabra.library import OPERATORS, Operator, OverloadSet, entries, entry_named, title_of

PAGES = Path(__file__).resolve().parent.parent / "docs" / "operators"
HEADER = "<!-- Written by tools/operators.py (make docs) from the operators' records: do not edit. -->\n"
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
"""The meaning of a record's ``accepts``."""
PROMOTED = {
    "common": "",
    "highest": "",
    "unpromoted": "",
    "identical": "all tensors must have the same dtype",
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
    """Return the page of a module: the subject under ``_operators`` that it belongs to, or the module's name."""
    _, package, *rest = module.split(".")
    if package == "nn":
        return f"nn-{rest[-1]}"
    return rest[0] if package == "_operators" else [package, *rest][-1]


def anchor(name: str) -> str:
    """Return the fragment by which GitHub and others link to a heading."""
    return re.sub(r"[^\w-]", "", name.lower())


def text(doc: str | None) -> str:
    """Return a docstring as Markdown."""
    made = inspect.cleandoc(doc or "")
    made = re.sub(r":(?:func|class|data|meth|mod):`~?(?:candelabra\.)?([^`]+)`", r"`\1`", made)
    return made.replace("``", "`")


def first_sentence(doc: str | None) -> str:
    """Return the first line of a documentation, on one line."""
    return " ".join(text(doc).split("\n\n")[0].split())


def shapes(record: Operator) -> str:
    """Return the shape rule of a record in words."""
    kinds = {"a view": record.view, "random": record.random, "looks at values": record.data_dependent}
    if getattr(record.rule, "pointwise", False):
        shape = "the input's" if len(record.schema.tensors) == 1 else "all tensors broadcast together"
    else:
        shape = (
            SHAPES.get(record.rule.__name__) or first_sentence(record.rule.__doc__).rstrip(".") or "as the text says"
        )
    return "; ".join([shape, *(word for word, holds in kinds.items() if holds)])


def dtypes(record: Operator) -> str:
    """Return the dtypes of arguments and results."""
    lines = [f"takes {ACCEPTED[record.accepts]}", _described(PROMOTED, record.promote)]
    results = [_described(RESULTS, rule) for rule in record.results]
    if len(results) > 1:
        results = [f"`{name}` {said}" for name, said in zip(record.schema.outputs, results, strict=True) if said]
    return "; ".join(filter(None, lines + results))


def _described(words: dict[str, str], rule: Any) -> str:
    known = words.get(rule.__name__)
    return first_sentence(rule.__doc__).rstrip(".") if known is None else known


def derivative(record: Operator) -> str:
    """Return the source of the gradients."""
    if record.rules:
        inputs = [f"`{name}`" for targets in record.rules for name in targets]
        return f"its own, with respect to {', '.join(dict.fromkeys(inputs))}"
    if record.not_differentiable is not None:
        return f"none: {record.not_differentiable}"
    return "that of the operators in its body" if record.body is not None else "none is declared"


def facts(record: Operator, routes: dict[str, dict[str, Any]]) -> list[str]:
    """Return shape, dtypes, derivative and devices of a record, a line each."""
    taken = {device: rows[record.name].route for device, rows in routes.items()}
    served = [f"{device}: {ROUTES.get(route, route)}" for device, route in taken.items()]
    return [
        f"- shape: {shapes(record)}",
        f"- dtypes: {dtypes(record)}",
        f"- derivative: {derivative(record)}",
        f"- devices: {', '.join(served)}",
    ]


def of_entry(entry: Any, routes: dict[str, dict[str, Any]]) -> str:
    """Return the section of one public name, or of a record that only operators call."""
    name = title_of(entry)
    lines = [f"## {name}\n"]
    if not entry.is_property:
        written = "\n".join(f"{name}{signature}" for signature in entry.signatures())
        lines.append(f"```python\n{written}\n```\n")
    lines.append(text(entry.doc) + "\n")
    if found := forms(entry):
        lines.append(f"- forms: {', '.join(found)}")
    if isinstance(entry, OverloadSet):
        members = [f"[{m.name}]({link(m)})" if isinstance(m, Operator) else f"`{m.name}`" for m, _ in entry.members]
        lines.append(f"- overloads of: {', '.join(members)}")
    elif isinstance(entry, Operator):
        lines += facts(entry, routes)
    else:
        names = {name: OPERATORS.get(name) or entry_named(name) for name in called_by(entry)}
        if names:
            lines.append("- calls: " + ", ".join(f"[{name}]({link(called)})" for name, called in names.items()))
    return "\n".join([*lines, ""])


def forms(entry: Any) -> list[str]:
    """Return every public name of an entry."""
    if not entry.public:
        return []
    functions = [f"`candelabra.{name}`" for name in (entry.public_name, *entry.aliases) if entry.is_function]
    return functions + [f"`Tensor.{method}`" + " (an attribute)" * entry.is_property for method in entry.methods()]


def link(entry: Any) -> str:
    """Return the link to the documentation of an operator or a public name."""
    page = family(entry.declared_in) if entry.public else "internal"
    return f"{page}.md#{anchor(title_of(entry))}"


def documented() -> Iterator[Any]:
    """Return every public name's entry once, then the records that only operators call."""
    yield from {id(entry): entry for entry in (*entries(), *OPERATORS.values())}.values()


def sections() -> dict[str, dict[str, tuple[str, str]]]:
    """Return ``{page: {title: (section, first sentence)}}``; records that only operators call have a separate page.

    Raises ``ValueError`` for two equal titles on one page.
    """
    routes = {instance.device.type: table(instance) for instance in instances(None)}
    pages: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for entry in documented():
        page = family(entry.declared_in) if entry.public else "internal"
        if title_of(entry) in pages[page]:
            raise ValueError(f"{title_of(entry)} would occur twice on the page {page}")
        pages[page][title_of(entry)] = (of_entry(entry, routes), first_sentence(entry.doc))
    return pages


def titled(page: str) -> str:
    """Return a title: ``nn: pooling`` for ``nn-pooling``, ``Order statistics`` for ``order_statistics``."""
    return page.replace("nn-", "nn: ") if page.startswith("nn-") else page.replace("_", " ").capitalize()


def write(folder: Path) -> int:
    """Write every page and the index, remove pages of former subjects, and return the number of sections."""
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
    """Return the pages that are not current, ignoring the devices, which depend on the installation."""
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

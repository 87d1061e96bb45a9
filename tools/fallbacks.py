"""Write the list of operators that fall back to the reference device: ``docs/reports/<device type>-fallbacks.md``.

``python tools/fallbacks.py --device opencl:0`` asks dispatch how it runs each operator in each dtype that the operator
and the device support. ``--check`` compares, and changes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from candelabra._cli.routes import instances
from candelabra.dtypes import ALL
from candelabra.library import ENTRIES, OPERATORS, Instance, Operator, PublicCallable, explain_key, refusal

REPORTS = Path(__file__).resolve().parent.parent / "docs" / "reports"
LEFT = ("fallback", "unsupported")
"""The routes that do not use the device."""


def routes(record: Operator[..., Any], instance: Instance) -> dict[str, list[str]]:
    """Return the dtypes by route."""
    result: dict[str, list[str]] = defaultdict(list)
    for d in ALL:
        if d in instance.keys and refusal(record, d) is None:
            try:
                result[explain_key(record, instance, d, False).route].append(d.name)
            except RuntimeError:  # the dtype cannot be promoted to one that the operator computes in
                continue
    return result


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function's code mentions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def reaching(left: set[str]) -> dict[str, list[str]]:
    """Return the operators and functions whose body calls one of these by name, with the called ones."""
    words = {OPERATORS[name].public_name.rpartition(".")[2]: OPERATORS[name].public_name for name in left}
    words |= {name: OPERATORS[name].public_name for name in left}
    bodies = {record.public_name: record.declared for name, record in OPERATORS.items() if name not in left}
    bodies |= {name: entry.declared for name, entry in ENTRIES.items() if isinstance(entry, PublicCallable)}
    result = {}
    for name, function in bodies.items():
        called = sorted({words[word] for word in names_in(function.__code__) if word in words} - {name})
        if called:
            result[name] = called
    return result


def text(instance: Instance, names: Sequence[str]) -> str:
    """Return the page of these operators."""
    served = {name: routes(OPERATORS[name], instance) for name in names}
    wholly, partly, unserved = [], [], []
    for name, found in served.items():
        public = OPERATORS[name].public_name
        dtypes = found.get("fallback", [])
        if found.get("unsupported"):
            unserved.append(f"- `{public}`: {', '.join(found['unsupported'])}")
        if dtypes and set(found) <= set(LEFT):
            wholly.append(public)
        elif dtypes:
            partly.append(f"- `{public}`: {', '.join(dtypes)}")
    bodies = reaching({name for name, found in served.items() if "fallback" in found and set(found) <= set(LEFT)})
    kind = instance.device.type
    own = sum(not any(route in found for route in LEFT) for found in served.values())
    lines = [
        f"# What falls back on `{kind}`",
        "",
        "Written by `tools/fallbacks.py` from what dispatch says: do not edit. These operators run on the reference",
        f"device, with a copy there and one back, and a `FallbackWarning` the first time. The other {own} of",
        f"{len(served)} run on the device in every dtype: by a kernel, as a view, or by a body of such operators.",
        "",
        "## In every dtype",
        "",
        *[f"- `{name}`" for name in sorted(wholly)],
    ]
    for title, part in (
        ("In some dtypes", sorted(partly)),
        ("Not served", sorted(unserved)),
        ("Functions whose body calls one of these", [f"- `{n}`: {', '.join(c)}" for n, c in sorted(bodies.items())]),
    ):
        if part:
            lines += ["", f"## {title}", "", *part]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or compare the page. Return 1 if it is not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    (instance,) = instances(arguments.device)
    page, expected = REPORTS / f"{instance.device.type}-fallbacks.md", text(instance, sorted(OPERATORS))
    if not arguments.check:
        page.write_text(expected, "utf-8")
        return 0
    if page.exists() and page.read_text("utf-8") == expected:
        return 0
    print(f"{page} is not current: run tools/fallbacks.py --device {arguments.device}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

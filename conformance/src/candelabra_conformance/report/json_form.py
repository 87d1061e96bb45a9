"""A run as JSON, for storage, comparison and publication. The file ``run.schema.json`` in this folder describes it.

Each result is one row on its own line, so that 50,000 of them stay small and line-based tools work; trailing columns
with default values are omitted. Rows are sorted by case, since the order in which workers finish is not information.
JSON has neither infinities nor NaN: such an error is the text "inf" or "nan". Characters outside ASCII are escaped, so
that every Python string, even with half a surrogate pair, is preserved.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from candelabra_conformance.model import LEVELS, VERDICTS, Case, NextKernel, Result, Run, Subject
from candelabra_conformance.report import tally

SCHEMA: Final = 1
"""The version of the format. It is raised if a reader of the old format would misread the new one."""
KIND: Final = "candelabra-conformance"
COLUMNS: Final = (
    "operator",
    "property",
    "dtype",
    "layout",
    "level",
    "verdict",
    "route",
    "seconds",
    "ulp",
    "missing",
    "message",
    "blocked_by",
    "reproducer",
    "uses",
    "declined",
)
_REQUIRED: Final = COLUMNS.index("verdict") + 1
_DEFAULTS: Final[dict[str, Any]] = {
    "route": "",
    "seconds": 0.0,
    "ulp": None,
    "missing": [],
    "message": "",
    "blocked_by": "",
    "reproducer": "",
    "uses": [],
    "declined": [],
}
"""The default values of the columns that a row may omit."""
_TEXTS: Final = (
    "device",
    "description",
    "backend",
    "backend_version",
    "reference",
    "core",
    "suite",
    "python",
    "platform",
)
_NON_FINITE: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class ReportError(ValueError):
    """Raised for a file that is not a report, or one that this version cannot read. The message names the position."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the format, as published with the package."""
    text = resources.files(__package__).joinpath("run.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


# Writing


def to_json(run: Run) -> str:
    """Return the run as JSON text, in ASCII, with one line per result. The same run gives the same text.

    Options of JSON's types are preserved; others become text.
    """
    head = {
        "schema": SCHEMA,
        "kind": KIND,
        "subject": {name: getattr(run.subject, name) for name in (*_TEXTS, "contributions")}
        | {"facts": dict(run.subject.facts)},
        "started": run.started,
        "seconds": _number(run.seconds),
        "level": run.level,
        "required": run.required,
        "conforms": run.conforms,
        "obstacles": tally.obstacles(run),
        "counts": tally.counts(run.results),
        "options": _plain(run.options),
        "next_kernels": [
            [each.operator, list(each.unlocks), list(each.dtypes), each.broken, each.declines]
            for each in run.next_kernels
        ],
        "stale": list(run.stale),
        "remaining": {str(level): count for level, count in run.remaining.items()},
        "stopped": list(run.stopped),
        "columns": COLUMNS,
    }
    lines = [f"{json.dumps(name)}: {_dumps(value)}" for name, value in head.items()]
    rows = ",\n".join(_dumps(_row(result)) for result in sorted(run.results, key=lambda result: result.case))
    return "{\n" + ",\n".join(lines) + ',\n"results": [\n' + rows + ("\n" if rows else "") + "]\n}\n"


def write_json(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the run to `path` atomically: a reader never sees half a file."""
    target = Path(path)
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(to_json(run), encoding="ascii", newline="\n")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _row(result: Result) -> list[Any]:
    case = result.case
    row: list[Any] = [case.operator, case.property, case.dtype, case.layout, case.level, result.verdict]
    row += [result.route, _number(result.seconds), _number(result.ulp)]
    row += [list(result.missing), result.message, result.blocked_by, result.reproducer, list(result.uses)]
    row += [list(result.declined)]
    while len(row) > _REQUIRED and row[-1] == _DEFAULTS[COLUMNS[len(row) - 1]]:
        row.pop()
    return row


def _number(value: float | None) -> float | str | None:
    return str(float(value)) if value is not None and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """Convert `value` to JSON's types: mappings with text keys, lists, numbers, strings, booleans, null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(entry) for entry in value), key=str)
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return str(value)


# Reading


def read_json(path: str | os.PathLike[str]) -> Run:
    """Return the run in the file at `path`. Raises ``ReportError``, which names file and position, and ``OSError``."""
    try:
        return from_json(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ReportError(f"{os.fspath(path)}: not a report: not UTF-8 text ({error.reason})") from error
    except ReportError as error:
        raise ReportError(f"{os.fspath(path)}: {error}") from error


def from_json(text: str) -> Run:
    """Return the run from which ``to_json`` wrote `text`. Unknown keys are ignored: a later release may add some.

    Raises ``ReportError`` with the position for any other text, or for a newer schema.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReportError(f"not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise ReportError(f"not a report: expected an object whose kind is {KIND!r}")
    version = _get(data, "schema", int, "")
    if version > SCHEMA:
        raise ReportError(f"schema {version} is newer than what this version reads ({SCHEMA}); install a newer suite")
    if version < 1:
        raise ReportError(f"schema: expected a version from 1 to {SCHEMA}, got {version}")
    columns = _texts(data, "columns")
    missing = [name for name in COLUMNS[:_REQUIRED] if name not in columns]
    if missing:
        raise ReportError(f"columns: {', '.join(missing)} missing")
    rows = _get(data, "results", list, "")
    return Run(
        subject=_subject(_get(data, "subject", dict, "")),
        results=tuple(_result(row, columns, f"results[{at}]") for at, row in enumerate(rows)),
        started=_get(data, "started", str, ""),
        seconds=_float(data.get("seconds"), "seconds"),
        options=_get(data, "options", dict, ""),
        next_kernels=tuple(
            _kernel(row, f"next_kernels[{at}]") for at, row in enumerate(_get(data, "next_kernels", list, ""))
        ),
        stale=tuple(_texts(data, "stale")),
        remaining=_remaining(data.get("remaining", {})),
        stopped=_names(data.get("stopped", []), "stopped"),
    )


_KIND_NAMES: Final[dict[type, str]] = {
    str: "a text", int: "an integer", bool: "true or false", list: "a list", dict: "an object",
}  # fmt: skip


def _is(value: Any, kind: type, position: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ReportError(f"{position}: expected {_KIND_NAMES[kind]}, got {value!r:.80}")
    return value


def _get(data: Mapping[str, Any], name: str, kind: type, position: str) -> Any:
    position = f"{position}.{name}" if position else name
    if name not in data:
        raise ReportError(f"{position}: missing")
    return _is(data[name], kind, position)


def _texts(data: Mapping[str, Any], name: str) -> list[str]:
    return list(_names(_get(data, name, list, ""), name))


def _float(value: Any, position: str) -> float:
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ReportError(f'{position}: expected a number, "inf" or "nan", got {value!r:.80}')
    return value


def _subject(data: Mapping[str, Any]) -> Subject:
    facts = _get(data, "facts", dict, "subject")
    checked = {name: _is(fact, str, f"subject.facts.{name}") for name, fact in facts.items()}
    contributions = _is(data.get("contributions", ""), str, "subject.contributions")  # older reports have none
    texts = {name: _get(data, name, str, "subject") for name in _TEXTS}
    return Subject(**texts, facts=checked, contributions=contributions)


def _remaining(value: Any) -> dict[int, int]:
    known = {str(level): level for level in LEVELS}
    level = _one_of(known, str)
    counts = _is(value, dict, "remaining").items()
    return {known[level(name, "remaining")]: _is(count, int, f"remaining.{name}") for name, count in counts}


def _kernel(row: Any, position: str) -> NextKernel:
    if not isinstance(row, list) or len(row) not in (4, 5):  # 4 before there was a word for kernels that decline
        raise ReportError(
            f"{position}: expected [operator, [operators that it unlocks], [dtypes], is it broken, does it decline], "
            f"got {row!r:.80}"
        )
    operator, unlocks, dtypes, broken, declines = row if len(row) == 5 else [*row, False]
    return NextKernel(
        _is(operator, str, f"{position}[0]"),
        _names(unlocks, f"{position}[1]"),
        _names(dtypes, f"{position}[2]"),
        _is(broken, bool, f"{position}[3]"),
        _is(declines, bool, f"{position}[4]"),
    )


def _one_of(known: Mapping[Any, Any], kind: type) -> Callable[[Any, str], Any]:
    def check(value: Any, position: str) -> Any:
        if _is(value, kind, position) not in known:
            raise ReportError(f"{position}: expected one of {', '.join(map(str, known))}, got {value!r:.80}")
        return value

    return check


def _text(value: Any, position: str) -> Any:
    return _is(value, str, position)


def _names(value: Any, position: str) -> tuple[str, ...]:
    return tuple(_is(name, str, f"{position}[{at}]") for at, name in enumerate(_is(value, list, position)))


def _optional_float(value: Any, position: str) -> float | None:
    return None if value is None else _float(value, position)


_CHECKS: Final[dict[str, Callable[[Any, str], Any]]] = {
    **dict.fromkeys(COLUMNS, _text),
    "level": _one_of(LEVELS, int),
    "verdict": _one_of(VERDICTS, str),
    "seconds": _float,
    "ulp": _optional_float,
    "missing": _names,
    "uses": _names,
    "declined": _names,
}


def _result(row: Any, columns: list[str], position: str) -> Result:
    if not isinstance(row, list) or len(row) > len(columns):
        raise ReportError(f"{position}: expected a list of at most {len(columns)} columns, got {row!r:.80}")
    values = {**_DEFAULTS, **dict(zip(columns, row))}
    for name in COLUMNS:
        if name not in values:
            raise ReportError(f"{position}.{name}: missing")
    fields = {name: _CHECKS[name](values[name], f"{position}.{name}") for name in COLUMNS}
    case = Case(*(fields.pop(name) for name in COLUMNS[:5]))
    return Result(case, **fields)

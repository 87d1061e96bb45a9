"""Judge all bad calls, and write the report.

``python tools/bad_calls.py --report docs/reports/bad-calls.md`` calls every public function with one wrong argument. It
compares the results with PyTorch's verdicts in ``tests/core/bad_calls/verdicts.txt``. The counts may only fall: a test
compares them with the report. With ``--journal`` an interrupted run goes on with the function at which it stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import sys
import warnings
from pathlib import Path

import candelabra as cd
from candelabra.library import open_device
from candelabra_conformance.bad_calls import Survey, names_called, read, read_reasons, surveyed
from oracle_journal import SOURCES, Journal

DATA = Path(__file__).resolve().parents[1] / "tests/core/bad_calls"
JUDGED = (*SOURCES, "conformance/src", "tests/core/bad_calls")
"""What a verdict depends on: the generator of the calls, and PyTorch's verdicts, too."""
MEMORY = 16 << 30
"""The address space: sizes such as 2**40 fail instead of filling the machine."""


def report(survey: Survey) -> str:
    """Return the report in Markdown."""
    rows = "\n".join(f"| {words} | {count} |" for words, count in survey.counts().items())
    reasons = "\n".join(f"- `{call}`" for call in survey.unending)
    return f"""# Bad calls

Every public function was called with one argument spoilt: None, a string, NaN, a huge or negative number, a tensor of
another dtype or rank, a list for a scalar, and so on (`tools/bad_calls.py`). Of {survey.calls} calls, PyTorch refuses
{survey.compared}. {survey.listed} of those return here on purpose; `tests/core/bad_calls/wider.txt` lists them with the
reasons. The numbers below may only fall.

| calls that | number |
|---|---:|
{rows}

Calls that do not end within 5 seconds:

{reasons or "none"}
"""


def survey_of(names: list[str], journal: Journal) -> Survey:
    """Judge one function after the other, except those in the journal, and return the sum."""
    instance = open_device(cd.get_default_device())
    verdicts, reasons = read(DATA / "verdicts.txt"), read_reasons(DATA / "wider.txt")
    total = Survey()
    for number, name in enumerate(names):
        if name not in journal.verdicts:
            journal.record(name, dataclasses.asdict(surveyed([name], instance, verdicts, reasons)))
            print(f"\r{number + 1}/{len(names)} {name:40}", end="", file=sys.stderr, flush=True)
        total.add(Survey(**journal.verdicts[name]))
    return total


def main() -> int:
    """Run, print the wrong calls, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these functions")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the counts there, as Markdown")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write each verdict there as it comes, and go on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    journal = Journal(options.journal, {}, JUDGED)
    survey = survey_of(options.names or names_called(), journal)
    for kind in (survey.silent, survey.leaking, survey.changing):
        print("".join(f"{line}\n" for line in kind), end="")
    print(f"{survey.calls} calls, {survey.listed} wider on purpose; " + "; ".join(map(str, survey.counts().items())))
    if options.report:
        options.report.write_text(report(survey), encoding="utf-8")
    return int(any(survey.counts().values()))


if __name__ == "__main__":
    sys.exit(main())

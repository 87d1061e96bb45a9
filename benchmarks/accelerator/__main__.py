"""Ours and the peer's times on a device, taking turns, each in a process of its own.

Usage: ``python -m benchmarks.accelerator --device cuda:0 [--peer PYTHON] [--size tiny] [--only TEXT] [--json FILE]``.
Exits with 1 where a mark does not hold or could not be measured, with 3 where the time was too short for some.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

from rich.console import Console

from benchmarks.accelerator.comparing import Comparison, Row, kept, table
from benchmarks.accelerator.sizes import SIZES


def main() -> int:
    """Measure, print, and (with ``--json``) write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="as candelabra calls it")
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch for that device")
    parser.add_argument("--library", default="torch", help="the peer")
    parser.add_argument("--size", choices=sorted(SIZES), default="full")
    parser.add_argument("--rounds", type=int, default=2, help="turns of both sides, of which the better counts")
    parser.add_argument("--only", default="", help="what has this in its name")
    parser.add_argument("--json", type=Path, help="write the figures to this file, after each measurement")
    parser.add_argument("--resume", type=Path, help="take over what this file has, and measure the rest")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no measurement later")
    given = parser.parse_args()
    comparison = Comparison(given.device, given.size, given.rounds, time.monotonic() + given.minutes * 60)

    def write(rows: list[Row]) -> None:
        if given.json:
            names = [row["name"] for row in rows]
            remaining = [name for name in comparison.wanted(given.only) if name not in names]
            found = {"peer": comparison.peer_version, "rows": rows, "remaining": remaining}
            given.json.write_text(json.dumps(found, indent=1) + "\n")

    try:
        comparison.start(sys.executable, given.peer, given.library)
        rows = comparison.measured(given.only, known(given.resume, comparison.peer_version), write)
    except RuntimeError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 3 if time.monotonic() >= comparison.until else 1  # what was too slow may have lacked nothing but time
    finally:
        comparison.close()
    write(rows)
    Console(width=120).print(table(rows, given.device))
    return 1 if not kept(rows) else 3 if len(rows) < len(comparison.wanted(given.only)) else 0


def known(file: Path | None, peer: str) -> list[Row]:
    """The rows of an earlier comparison. ``RuntimeError`` where that was with another peer."""
    if file is None:
        return []
    found = json.loads(file.read_text())
    if found["peer"] != peer:
        raise RuntimeError(f"{file} compares with {found['peer']}, and this is {peer}")
    rows: list[Row] = found["rows"]
    return rows


if __name__ == "__main__":
    raise SystemExit(main())

"""Measure candelabra and the peer on a device in turns, each in its own process.

Usage: ``python -m benchmarks.accelerator --device cuda:0 [--peer PYTHON] [--size tiny] [--only TEXT] [--json FILE]``.
Exits with 1 if a mark does not hold or could not be measured, with 3 if the time was too short for some marks.
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
    """Measure and print the times and, with ``--json``, write them to a file."""
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
    options = parser.parse_args()
    comparison = Comparison(options.device, options.size, options.rounds, time.monotonic() + options.minutes * 60)

    def write(rows: list[Row]) -> None:
        if options.json:
            names = [row["name"] for row in rows]
            remaining = [name for name in comparison.requested(options.only) if name not in names]
            content = {"peer": comparison.peer_version, "rows": rows, "remaining": remaining}
            options.json.write_text(json.dumps(content, indent=1) + "\n")

    try:
        comparison.start(sys.executable, options.peer, options.library)
        rows = comparison.measured(options.only, known(options.resume, comparison.peer_version), write)
    except RuntimeError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 3 if time.monotonic() >= comparison.until else 1  # a mark that was too slow may only have lacked time
    finally:
        comparison.close()
    write(rows)
    Console(width=120).print(table(rows, options.device))
    return 1 if not kept(rows) else 3 if len(rows) < len(comparison.requested(options.only)) else 0


def known(file: Path | None, peer: str) -> list[Row]:
    """Return the rows of an earlier comparison. Raise ``RuntimeError`` if it was with another peer."""
    if file is None:
        return []
    content = json.loads(file.read_text())
    if content["peer"] != peer:
        raise RuntimeError(f"{file} compares with {content['peer']}, and this is {peer}")
    rows: list[Row] = content["rows"]
    return rows


if __name__ == "__main__":
    raise SystemExit(main())

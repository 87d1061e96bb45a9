"""Ours and the peer's times on a device, taking turns, each in a process of its own.

Usage: ``python -m benchmarks.accelerator --device cuda:0 [--peer PYTHON] [--size tiny] [--only TEXT] [--json FILE]``.
Exits with 1 where a mark does not hold or could not be measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.accelerator.comparing import Comparison, kept, table
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
    parser.add_argument("--json", help="write the figures to this file")
    given = parser.parse_args()
    comparison = Comparison(given.device, given.size, given.rounds)
    try:
        comparison.start(sys.executable, given.peer, given.library)
        rows = comparison.measured(given.only)
    except RuntimeError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    finally:
        comparison.close()
    if given.json:
        Path(given.json).write_text(json.dumps({"peer": comparison.peer_version, "rows": rows}, indent=1) + "\n")
    Console(width=120).print(table(rows, given.device))
    return 0 if kept(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())

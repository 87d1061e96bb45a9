"""``python tools/generate [--check]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from generate import ROOT, generated, write


def main() -> int:
    """Write the generated files, or with ``--check`` print those that are not current (exit status 1)."""
    parser = argparse.ArgumentParser(description="Write the index of public names and the type stubs.")
    parser.add_argument("--check", action="store_true", help="only check whether they are current")
    if not parser.parse_args().check:
        for path in write():
            print(f"generate: {path.relative_to(ROOT)}")
        return 0
    stale = [p for p, text in generated().items() if not p.exists() or p.read_text() != text]
    for path in stale:
        print(f"generate: {path.relative_to(ROOT)} is not current: run `make index`", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())

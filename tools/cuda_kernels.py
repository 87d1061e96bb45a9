"""Every kernel that candelabra-cuda can generate becomes machine code with NVRTC. It takes no GPU, and some minutes.

Usage: ``python tools/cuda_kernels.py [--capability 90 ...] [--dtypes all]``. The tests do the quicker part of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from candelabra.library import OPERATORS, plugins
from candelabra_clike import CUDA
from candelabra_clike.source import units
from candelabra_cuda.compiling import CompilationError, compile_program, options
from cuda_recording import ALL_NAMES, QUICK, RecordingBackend, record

GENERATIONS = ("80", "90", "100")


def main(words: Sequence[str] | None = None) -> int:
    """Compile; 1 if a unit does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--capability", nargs="+", default=GENERATIONS, help="compute capabilities, without the point")
    parser.add_argument("--dtypes", choices=("all", "quick"), default="quick", help="quick: one of each kind")
    parser.add_argument("--operator", nargs="+", default=sorted(OPERATORS), help="only these")
    given = parser.parse_args(words)
    backend = RecordingBackend()
    remove = plugins.add_backend(backend)
    try:
        record(backend, given.operator, QUICK if given.dtypes == "quick" else ALL_NAMES)
    finally:
        remove()
    programs = list(units(backend.recorder.sources, CUDA))
    failed = 0
    for capability in given.capability:
        start = time.monotonic()
        for first, program in programs:
            try:
                compile_program(first.name, program, options(first, capability))
            except CompilationError as error:
                failed += 1
                print(f"sm_{capability}: {error}", file=sys.stderr)
        count, seconds = len(backend.recorder.sources), time.monotonic() - start
        print(f"sm_{capability}: {count} kernels in {len(programs)} programs, {seconds:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

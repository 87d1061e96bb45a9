"""Compile the kernels of candelabra-cuda to machine code with NVRTC, which needs no GPU.

Usage: ``python tools/cuda_kernels.py [--capability 90 ...] [--all]`` only says whether they compile: those of a dtype
of each kind, or all. With ``--archive FILE`` (``make cuda-kernels``) all that ``make cuda-check`` needs is packed for a
machine with a GPU of that compute capability: some 10,000 kernels, ten minutes of a core.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from candelabra.library import plugins
from candelabra_clike import CUDA, Source
from candelabra_clike.cache import ProgramCache
from candelabra_clike.source import units
from candelabra_cuda import nvrtc
from candelabra_cuda.compiling import Compiler, compile_program, options, prebuilt_key
from candelabra_cuda.nvrtc import CompilationError
from cuda_archive import pack
from cuda_needed import everything, needed, quick
from cuda_recording import RecordingBackend
from rich.console import Console
from rich.progress import track

GENERATIONS = ("80", "90", "100")
LARGEST = 20 * 2**20
"""The maximum size of an archive, in bytes."""
FOLDER = Path(__file__).resolve().parents[1] / ".venv" / "kernels"
"""The folder in which machine code is kept, so that the next archive compiles only new kernels."""


def main(words: Sequence[str] | None = None) -> int:
    """Compile the kernels. Return 1 if one does not compile or the archive is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", nargs="+", default=GENERATIONS, help="compute capabilities, without the point")
    parser.add_argument("--all", action="store_true", help="all that the check needs, not a dtype of each kind")
    parser.add_argument("--operator", nargs="+", default=[], help="only these")
    parser.add_argument("--archive", type=Path, help="write the machine code for one capability into this .tar.xz")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="keep the machine code of an archive here")
    options = parser.parse_args(words)
    if options.archive and len(options.capability) != 1:
        parser.error("an archive is of one --capability")
    backend = RecordingBackend()
    remove = plugins.add_backend(backend)
    try:
        sources = needed(backend, options.operator, everything if options.all or options.archive else quick)
    finally:
        remove()
    if options.archive:
        return archived(sources, options.capability[0], options.folder, options.archive)
    return max([compiled(sources, capability) for capability in options.capability])


def compiled(sources: Sequence[Source], capability: str) -> int:
    """Print whether the kernels compile, many in a program. Return 1 unless all do."""
    programs, failed, start = list(units(sources, CUDA)), 0, time.monotonic()
    for first, program in programs:
        try:
            compile_program(first.name, program, options(first, capability))
        except CompilationError as error:
            failed += 1
            print(f"sm_{capability}: {error}", file=sys.stderr)
    seconds = time.monotonic() - start
    print(f"sm_{capability}: {len(sources)} kernels in {len(programs)} programs, {seconds:.0f} s, {failed} failed")
    return min(failed, 1)


def archived(sources: Sequence[Source], capability: str, folder: Path, file: Path) -> int:
    """Pack the machine code of each kernel. Return 1 if one does not compile or the file is too large."""
    major, minor = nvrtc.load().version()
    cache = ProgramCache(folder / f"nvrtc-{major}.{minor}")
    keys: dict[str, Source] = {}
    for source in sources:
        keys[prebuilt_key(source.program(CUDA), options(source, capability))] = source
    new = [key for key in keys if not cache.path(key).exists()]
    compiler = Compiler(capability, None)
    failed = 0

    def compiled_key(key: str) -> str:
        try:
            cache.write(key, compiler.machine_code(keys[key]))
        except CompilationError as error:
            return str(error)
        return ""

    start = time.monotonic()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for problem in track(
            threads.map(compiled_key, new), f"sm_{capability}", len(new), console=Console(stderr=True)
        ):
            if problem:
                failed += 1
                print(f"sm_{capability}: {problem}", file=sys.stderr)
    if failed:
        return 1
    size = pack(cache, keys, file)
    seconds = time.monotonic() - start
    print(f"{file}: {len(keys)} kernels for sm_{capability} by NVRTC {major}.{minor}, {size / 2**20:.1f} MiB, ", end="")
    print(f"{len(new)} of them compiled in {seconds:.0f} s")
    if size > LARGEST:
        print(f"{file} has more than {LARGEST >> 20} MiB", file=sys.stderr)
    return int(size > LARGEST)


if __name__ == "__main__":
    raise SystemExit(main())

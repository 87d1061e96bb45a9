"""What ``candelabra run`` starts on each rank: set the variables that programs read, then run the program."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

_SOURCES: Final = {
    "RANK": ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
    "LOCAL_RANK": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    "LOCAL_WORLD_SIZE": ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"),
    "GROUP_RANK": ("OMPI_COMM_WORLD_NODE_RANK", "SLURM_NODEID"),
}
"""What programs read, and what MPICH, Open MPI and Slurm set."""
_DEFAULTS: Final = {
    "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "0",
}  # fmt: skip


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return RANK, WORLD_SIZE and their like from what the launcher has set."""
    found = {}
    for name, sources in _SOURCES.items():
        values = [environment[source] for source in sources if source in environment]
        found[name] = values[0] if values else _DEFAULTS[name]
    return found


def abort(code: int) -> None:
    """End all ranks with an exit status."""
    from mpi4py import MPI

    MPI.COMM_WORLD.Abort(code)


def main(arguments: Sequence[str]) -> None:
    """Run a program as this rank. If it raises, or exits with a status other than 0, end all ranks."""
    os.environ.update(variables(os.environ))
    kind, rest = (arguments[0], arguments[1:]) if arguments[0] in ("--module", "--no-python") else ("", arguments)
    if kind == "--no-python":
        raise SystemExit(subprocess.run(rest, check=False).returncode)
    from candelabra.distributed._failures import announce, end_all, install_hook

    install_hook(int(os.environ["RANK"]), abort)
    sys.argv[:] = rest
    try:
        if kind == "--module":
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
            runpy.run_path(rest[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            status = ended.code if isinstance(ended.code, int) else 1
            announce(int(os.environ["RANK"]), f"by exit status {ended.code}")
            end_all(abort, status)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])

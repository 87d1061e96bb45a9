"""``candelabra run``: start a program on several ranks, over ``mpiexec``. It accepts the arguments of ``torchrun``."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import IO, Final

from candelabra.distributed._buffers import host_device
from candelabra.distributed._failures import ANNOUNCED

__all__ = ["command", "main"]

GRACE: Final = 5.0
"""Seconds within which mpiexec must end after a rank has ended all ranks."""
PAUSE: Final = 0.1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="candelabra run",
        description="Start a program on several ranks by mpiexec. A rank that raises ends all others.",
        epilog="RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set for the program.",
    )
    parser.add_argument("-n", "--nproc-per-node", "--nproc_per_node", default="1", metavar="N",
                        help="ranks on each machine: a number, or auto, cpu or gpu")  # fmt: skip
    parser.add_argument("--nnodes", default="1", metavar="N", help="machines; more than one need --hosts")
    parser.add_argument("--hosts", default="", metavar="A,B", help="names of the machines, for mpiexec")
    parser.add_argument("--mpiexec", default="", metavar="PATH", help="the mpiexec to use instead of the one found")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("--no-python", "--no_python", action="store_true", help="the program is no Python program")
    parser.add_argument("--master-addr", "--master_addr", default="", metavar="HOST", help="value of MASTER_ADDR")
    parser.add_argument("--master-port", "--master_port", type=int, default=0, metavar="PORT", help="of MASTER_PORT")
    for option in ("--standalone", "--run-path", "--run_path"):
        parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    for option in ("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "node-rank", "start-method", "role",
                   "monitor-interval", "log-dir", "redirects", "tee", "local-addr", "max-restarts"):  # fmt: skip
        parser.add_argument(f"--{option}", f"--{option.replace('-', '_')}", default=None, help=argparse.SUPPRESS)
    parser.add_argument("program", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _number(text: str, parser: argparse.ArgumentParser) -> int:
    if text.isdecimal() and int(text):
        return int(text)
    if text in ("auto", "gpu"):
        import candelabra as cd

        devices = cd.accelerator.device_count()
        if text == "gpu" and not devices:
            parser.error("--nproc-per-node gpu: there is no accelerator")
        return devices or _processors()
    if not text.isalpha() or text != host_device().type:
        parser.error(f"--nproc-per-node must be a positive number, auto, cpu or gpu, got {text!r}")
    return _processors()


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def find_mpiexec(chosen: str = "") -> str:
    """Return the path of mpiexec: the chosen one, that of this Python's environment, or that of PATH.

    Raises ``FileNotFoundError`` with the extra to install.
    """
    folder = os.path.dirname(sys.executable)
    for name, path in ((chosen, None), ("mpiexec", folder), ("mpiexec", None), ("mpirun", None)):
        found = shutil.which(name, path=path) if name else None
        if found is not None:
            return found
        if chosen:
            raise FileNotFoundError(f"candelabra run: there is no {chosen!r}")
    raise FileNotFoundError(
        'candelabra run: there is no mpiexec: pip install "candelabra[distributed]", or load your cluster\'s MPI'
    )


def is_open_mpi(mpiexec: str) -> bool:
    """Return whether an mpiexec is Open MPI's, whose options differ from MPICH's."""
    done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in done.stdout or "OpenRTE" in done.stdout


def command(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line of mpiexec for arguments of ``candelabra run``, and additions to the environment."""
    parser = _parser()
    given = parser.parse_args(arguments)
    per_node = _number(given.nproc_per_node, parser)
    nodes = given.nnodes.partition(":")[0]
    if not nodes.isdecimal() or int(nodes) < 1:
        parser.error(f"--nnodes must be a positive number, got {given.nnodes!r}")
    hosts = [host for host in given.hosts.split(",") if host]
    count = len(hosts) or int(nodes)
    if count > 1 and len(hosts) < int(nodes):
        parser.error(
            f"--nnodes {nodes} needs --hosts with their names: mpiexec starts the ranks of all machines from this one"
        )
    mpiexec = find_mpiexec(given.mpiexec)
    line = [mpiexec, "-n", str(per_node * count)]
    open_mpi = is_open_mpi(mpiexec)
    if open_mpi:
        line += ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    if hosts:
        line += ["--host", ",".join(f"{h}:{per_node}" for h in hosts)] if open_mpi else [
            "-hosts", ",".join(hosts), "-ppn", str(per_node)
        ]  # fmt: skip
    environment = {
        "MASTER_ADDR": given.master_addr or (hosts[0] if hosts else "127.0.0.1"),
        "MASTER_PORT": str(given.master_port or _free_port()),
        "TORCHELASTIC_RUN_ID": given.rdzv_id or uuid.uuid4().hex,
        "GROUP_WORLD_SIZE": str(count),
    }
    if per_node > 1:  # as torchrun: ranks share the cores of the machine
        environment["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
    kind = ["--no-python"] if given.no_python else ["--module"] if given.module else []
    started = [sys.executable, "-u", "-m", "candelabra.distributed._rank", *kind, given.program, *given.arguments]
    return [*line, *started], environment


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Output(Thread):
    """Passes the errors of the ranks on, and notes when one of them says that it ends all ranks."""

    def __init__(self, source: IO[bytes], target: IO[bytes]) -> None:
        super().__init__(name="candelabra run", daemon=True)
        self._source, self._target = source, target
        self.said = Event()

    def run(self) -> None:
        for line in self._source:
            self._target.write(line)
            self._target.flush()
            if ANNOUNCED.match(line):
                self.said.set()


@contextmanager
def _forwarding(signals: signal.Signals) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Pass a signal on to the processes that are appended to a list. Only the main thread can set a handler."""
    processes: list[subprocess.Popen[bytes]] = []
    if current_thread() is not main_thread():
        yield processes
        return

    def forward(number: int, _: object) -> None:
        for process in processes:
            process.send_signal(number)

    before = signal.signal(signals, forward)
    try:
        yield processes
    finally:
        signal.signal(signals, before)


def supervise(line: Sequence[str], environment: Mapping[str, str], grace: float = GRACE) -> int:
    """Run mpiexec and return its exit status; end it ``grace`` seconds after a rank has said that it ends all ranks.

    mpiexec ends the ranks of a job that is aborted and waits for all machines. It would wait for ever for one that has
    lost its power or its network.
    """
    surroundings = {**os.environ, **environment}
    with (
        _forwarding(signal.SIGTERM) as processes,
        subprocess.Popen(line, env=surroundings, stderr=subprocess.PIPE) as process,
    ):
        processes.append(process)
        assert process.stderr is not None
        output = Output(process.stderr, sys.stderr.buffer)
        output.start()
        try:
            while process.poll() is None and not output.said.wait(PAUSE):
                pass
            status = process.wait(grace)
        except subprocess.TimeoutExpired:
            _end(process.pid)
            process.wait()
            sys.stderr.write(
                f"candelabra run: ended mpiexec, which has not ended within {grace:g} s after a rank ended all ranks: "
                "a machine may be gone\n"
            )
            status = 1
        output.join(PAUSE)  # a process that a rank has left behind may keep the pipe open
        return status


def _end(pid: int) -> None:
    """End a process and its descendants at once."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)  # so that it starts no further ones
    with suppress(FileNotFoundError):  # it has ended, or this is no Linux
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            _end(int(child))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program on several ranks and return the exit status of mpiexec."""
    try:
        line, added = command(list(sys.argv[1:] if arguments is None else arguments))
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return supervise(line, added)


def __dir__() -> list[str]:
    return sorted(__all__)


if __name__ == "__main__":
    sys.exit(main())

"""Ranks that MPI has not started: processes of ``multiprocessing.spawn``, of a shell, or of another launcher.

Such a process knows RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which is PyTorch's ``env://``. MPICH's processes
find each other through a connection to the process manager that ``mpiexec`` gives to each process it starts (PMI). So
rank 0 starts ``mpiexec`` with a *delegate* for each rank, and a delegate hands its connection to the rank, over a
socket of the file system (SCM_RIGHTS). Then MPI starts in the rank as if ``mpiexec`` had started it.

The socket stays open. When a rank ends without MPI's shutdown, its delegate fails, and ``mpiexec`` ends the others;
when a delegate ends, its rank does. This works on one machine, since a connection cannot be sent to another one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from candelabra.distributed.engine import EngineUnavailable

_MANAGED: Final = ("PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""What a process has in its environment if a process manager of MPI has started it."""
_SENT: Final = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
_PAUSE: Final = 0.01
_LOCAL: Final = ("", "localhost", "127.0.0.1", "::1")
GOODBYE: Final = b"."
"""What a rank sends before it ends as it should."""
_line: Final[list[socket.socket]] = []
"""The socket to this rank's delegate."""
_ended: Final[list[socket.socket]] = []


def managed(environment: Mapping[str, str]) -> bool:
    """Return whether a process manager of MPI has started this process."""
    return any(name in environment for name in _MANAGED)


def _folder(port: str) -> str:
    """Return the folder of the sockets of a job on this machine, which only this user can read."""
    folder = os.path.join(tempfile.gettempdir(), f"candelabra-{os.getuid()}-{port}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.getuid():
        raise EngineUnavailable(f"the folder {folder} belongs to another user: choose another MASTER_PORT")
    return folder


def join(rank: int, world_size: int, seconds: float) -> None:
    """Make this process a rank of MPI, before MPI starts in it. All ranks call it.

    Raises :class:`EngineUnavailable` if MASTER_ADDR is another machine, if mpiexec is not MPICH's, or if it or a rank
    does not arrive in time.
    """
    address, port = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not port:
        raise EngineUnavailable("environment variable MASTER_PORT expected, but not set; or use `candelabra run`")
    if address not in (*_LOCAL, socket.gethostname()):
        raise EngineUnavailable(
            f"MASTER_ADDR is {address}, but ranks that no launcher of MPI has started find each other on one machine "
            "only, as localhost: start ranks of several machines by `candelabra run --hosts …`, mpiexec or srun"
        )
    path = os.path.join(_folder(port), str(rank))
    with socket.socket(socket.AF_UNIX) as listening:
        if os.path.exists(path):  # of a job that has been killed
            os.unlink(path)
        _bind(listening, path)
        listening.listen(1)
        listening.settimeout(seconds)
        starter = _start_delegates(world_size, os.path.dirname(path), seconds) if rank == 0 else None
        try:
            line, _ = listening.accept()
        except TimeoutError:
            status = "" if starter is None or starter.poll() is None else f"; mpiexec has ended with {starter.poll()}"
            raise EngineUnavailable(
                f"rank {rank} of {world_size} has found no other ranks at MASTER_PORT {port} within {seconds:g} s"
                f"{status}"
            ) from None
        finally:
            os.unlink(path)
            with suppress(OSError):  # the last rank succeeds
                os.rmdir(os.path.dirname(path))
    _receive(line)


def _bind(listening: socket.socket, path: str) -> None:
    """Bind a socket in the folder of the job, which another rank that has arrived earlier may just have removed."""
    while True:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            return listening.bind(path)


def _start_delegates(world_size: int, folder: str, seconds: float) -> subprocess.Popen[bytes]:
    from candelabra.distributed.run import find_mpiexec, is_open_mpi

    try:
        mpiexec = find_mpiexec()
    except FileNotFoundError as error:
        raise EngineUnavailable(str(error)) from None
    if is_open_mpi(mpiexec):
        raise EngineUnavailable(
            f"{mpiexec} is Open MPI's, which starts all ranks itself: use `candelabra run -n {world_size}`"
        )
    line = [mpiexec, "-n", str(world_size), sys.executable, __file__, folder, str(seconds)]
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, start_new_session=True)


def _receive(line: socket.socket) -> None:
    """Take the delegate's connection to the process manager, and end this process when the delegate ends."""
    line.settimeout(None)
    data, descriptors, _, _ = socket.recv_fds(line, 4096, 1)
    os.environ.update(dict(item.split("=", 1) for item in data.decode().split("\n")))
    os.environ["PMI_FD"] = str(descriptors[0])
    _line.append(line)
    threading.Thread(target=_watch, args=(line,), name="candelabra.distributed delegate", daemon=True).start()


def _watch(line: socket.socket) -> None:
    if not line.recv(1) and _line:
        sys.stderr.write(f"rank {os.environ['PMI_RANK']} ends because another rank has ended without MPI's shutdown\n")
        sys.stderr.flush()
        os._exit(1)


def leave() -> None:
    """Say goodbye to the delegate, after MPI's shutdown. The socket stays open until the process ends."""
    while _line:
        _ended.append(_line.pop())
        _ended[-1].sendall(GOODBYE)


def main(folder: str, seconds: str) -> int:
    """Be the delegate of a rank: pass the connection on, and end when the rank does."""
    values = [f"{name}={os.environ[name]}" for name in _SENT if name in os.environ]
    line = socket.socket(socket.AF_UNIX)
    end = time.monotonic() + float(seconds)
    while True:
        try:
            line.connect(os.path.join(folder, os.environ["PMI_RANK"]))
            break
        except OSError:
            if time.monotonic() > end:
                return 1
        time.sleep(_PAUSE)
    descriptor = int(os.environ["PMI_FD"])
    socket.send_fds(line, ["\n".join(values).encode()], [descriptor])
    os.close(descriptor)
    status = 0 if line.recv(1) == GOODBYE else 1
    line.recv(1)  # returns when the rank's process ends: MPICH uses the connection until then
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

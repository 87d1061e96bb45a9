"""MPICH's ``mpiexec`` where something else starts programs on the nodes: a scheduler, or ``ip netns exec``.

With its launcher ``manual``, ``mpiexec`` prints the command of a proxy for each node and waits. The proxies connect to
it, start the ranks of their nodes, and forward their output.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Final

from candelabra.distributed.engine import EngineUnavailable
from candelabra.distributed.run import find_mpiexec, is_open_mpi

_COMMAND: Final = "HYDRA_LAUNCH: "
_LAST: Final = "HYDRA_LAUNCH_END"


def end(process: subprocess.Popen[str]) -> None:
    """End a process with its children, at once: mpiexec ignores SIGTERM until its proxies have come."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class ProxyLaunch:
    """An ``mpiexec`` that waits for proxies.

    Args:
        program: what each rank runs, with its arguments.
        nodes, ranks_per_node: the numbers of proxies, and of the ranks of each.
        address: the address of this machine, to which the proxies connect.
        environment: additions to the environment of the ranks.

    Attributes:
        proxies: the command of the proxy of each node.
        lines: the output of the ranks, with ``[rank] `` before each line; None after the last line.

    Raises:
        EngineUnavailable: there is no mpiexec, it is not MPICH's, or it has printed no commands.
    """

    def __init__(
        self, program: Sequence[str], nodes: int, ranks_per_node: int, address: str, environment: Mapping[str, str]
    ) -> None:
        try:
            mpiexec = find_mpiexec()
        except FileNotFoundError as error:
            raise EngineUnavailable(str(error)) from None
        if is_open_mpi(mpiexec):
            raise EngineUnavailable(f"{mpiexec} is Open MPI's; proxies that others start need MPICH's mpiexec")
        hosts = ",".join(f"node{number}" for number in range(nodes))  # labels, which mpiexec does not resolve
        line = [mpiexec, "-localhost", address, "-launcher", "manual", "-prepend-rank"]
        line += ["-hosts", hosts, "-ppn", str(ranks_per_node), "-n", str(nodes * ranks_per_node), *program]
        self._process = subprocess.Popen(
            line, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, env={**os.environ, **environment},
        )  # fmt: skip
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.proxies: list[list[str]] = []
        Thread(target=self._read, name="candelabra.distributed mpiexec", daemon=True).start()
        said: list[str] = []
        while (text := self.lines.get()) is not None and text != _LAST:
            said.append(text)
            if text.startswith(_COMMAND):
                self.proxies.append(text.removeprefix(_COMMAND).split())
        if len(self.proxies) != nodes:
            self.stop()
            raise EngineUnavailable(f"mpiexec has not asked for {nodes} proxies: {' '.join(said)}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def status(self) -> int | None:
        """Return the exit status of mpiexec, or None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """End mpiexec. Its proxies and their ranks end too."""
        end(self._process)

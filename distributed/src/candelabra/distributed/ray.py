"""Run a function on the ranks of a Ray cluster: ``ray.run(function, nodes=2)``. Needs the extra ``ray``.

Ray reserves the nodes, starts the processes and sees that a node is gone. MPI moves the data: an actor on the first
node runs ``mpiexec``, and one on each node runs its proxy. The function's results, its arguments and its checkpoints
are files of ``folder``, which all nodes share; nothing is pickled by candelabra.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import candelabra as cd
from candelabra.distributed._proxies import ProxyLaunch, end
from candelabra.distributed._work import DistError
from candelabra.distributed.engine import EngineUnavailable

__all__ = ["RunFailed", "last_checkpoint", "new_checkpoint", "report", "run"]

FOLDER: Final = "CANDELABRA_RAY_FOLDER"
"""The variable with which ranks find the folder of their run."""
_REPORT: Final = "candelabra.distributed.ray report "
_PAUSE: Final = 0.05
_KEPT: Final = 20
"""The number of lines that the error of a failed run shows."""


class RunFailed(DistError):
    """The ranks have failed, and no restart is left. The text has their last lines."""


# -- called by the function, on the ranks -----------------------------------------------------------------------------
def _folder(call: str) -> str:
    if FOLDER not in os.environ:
        raise RuntimeError(f"{call}() is called by a function that candelabra.distributed.ray.run() has started")
    return os.environ[FOLDER]


def report(values: dict[str, Any]) -> None:
    """Send JSON to the ``on_report`` of :func:`run`, for example the step and the loss."""
    _folder("report")
    sys.stdout.write(f"{_REPORT}{json.dumps(values)}\n")
    sys.stdout.flush()


def new_checkpoint(step: int) -> str:
    """Return the folder for ``candelabra.distributed.checkpoint.save``, all ranks the same."""
    return os.path.join(_folder("new_checkpoint"), "checkpoints", f"{step:012}")


def last_checkpoint() -> str | None:
    """Return the folder of the last complete checkpoint, of this attempt or a former one; None for a fresh start."""
    folder = os.path.join(_folder("last_checkpoint"), "checkpoints")
    steps = sorted(os.listdir(folder), reverse=True) if os.path.isdir(folder) else []
    paths = (os.path.join(folder, step) for step in steps)
    return next((path for path in paths if os.path.exists(os.path.join(path, "manifest.json"))), None)


# -- on the nodes -----------------------------------------------------------------------------------------------------
class Supervisor:
    """The actor of a node: it runs the proxy, and on the first node mpiexec."""

    def __init__(self) -> None:
        self._launch: ProxyLaunch | None = None
        self._proxy: subprocess.Popen[str] | None = None

    def address(self) -> str:
        """Return the address of this node."""
        found: str = _library().util.get_node_ip_address()
        return found

    def launch(self, nodes: int, ranks_per_node: int, address: str, environment: dict[str, str]) -> list[list[str]]:
        """Start mpiexec, and return the commands of the proxies."""
        program = [sys.executable, "-u", "-m", "candelabra.distributed._rank", "--module"]
        program += ["candelabra.distributed._ray_rank"]
        self._launch = ProxyLaunch(program, nodes, ranks_per_node, address, environment)
        return self._launch.proxies

    def start_proxy(self, command: Sequence[str]) -> None:
        """Start the proxy of this node, whose path may differ from that on the first node."""
        name = os.path.basename(command[0])
        path = shutil.which(name, path=os.path.dirname(sys.executable)) or shutil.which(name) or command[0]
        self._proxy = subprocess.Popen(
            [path, *command[1:]], text=True, stdin=subprocess.DEVNULL, start_new_session=True
        )

    def poll(self) -> tuple[list[str], int | None]:
        """Return new lines of the ranks, and the exit status of mpiexec after the last one."""
        lines: list[str] = []
        if self._launch is None:
            return lines, None
        while True:
            try:
                line = self._launch.lines.get_nowait()
            except queue.Empty:
                return lines, None
            if line is None:
                return lines, self._launch._process.wait()
            lines.append(line)

    def stop(self) -> None:
        """End the processes of this node."""
        if self._launch is not None:
            self._launch.stop()
        if self._proxy is not None:
            end(self._proxy)


# -- on the driver ----------------------------------------------------------------------------------------------------
def _library() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise EngineUnavailable(
            f'candelabra.distributed.ray needs Ray ({error}): pip install "candelabra[distributed-ray]"'
        ) from error
    return ray


def _task(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Return how a rank finds the function and its arguments."""
    name = getattr(function, "__qualname__", "")
    if not name.isidentifier():
        raise TypeError(f"run: ranks import the function by its name, so it must be one of a module, got {function!r}")
    module = function.__module__
    file = getattr(sys.modules["__main__"], "__file__", None) if module == "__main__" else ""
    if file is None:
        raise TypeError(f"run: {name}() was typed into an interpreter; write it to a file, from which ranks import it")
    path = [os.path.abspath(each) for each in sys.path]
    return {"module": module, "name": name, "file": file and os.path.abspath(file), "path": path, "args": list(args)}


def run(
    function: Callable[..., Any],
    *args: Any,
    folder: str,
    nodes: int = 1,
    ranks_per_node: int = 1,
    restarts: int = 0,
    resources: dict[str, float] | None = None,
    timeout: float = 300.0,
    on_report: Callable[[int, dict[str, Any]], Any] | None = None,
    on_log: Callable[[str], Any] | None = None,
) -> list[Any]:
    """Call ``function(*args)`` on ``nodes * ranks_per_node`` ranks, and return their results in the order of ranks.

    Args:
        function: a function of a module, or of the program; ranks import it by its name. It calls
            ``init_process_group()`` as under ``candelabra run``.
        args: JSON and tensors, as the results.
        folder: of this run, on a file system that all nodes share. Checkpoints in it are those that the function finds.
        nodes: different nodes of the cluster. ``ray.init()`` has connected to it, or is called here.
        restarts: how often to start all ranks again after a failure; ``last_checkpoint()`` is where they go on.
        resources: what each node reserves, by default a CPU for each rank.
        timeout: the seconds for which nodes, and answers of a node, are waited for.
        on_report: called with rank and values for each :func:`report`.
        on_log: called with each line of output, ``"[rank] text"``; by default it goes to standard output.

    Raises:
        RunFailed: the ranks have failed, and no restart is left, or the cluster has no such nodes.
        EngineUnavailable: Ray, or MPICH's mpiexec, is not installed.
        TypeError, ValueError: an argument is wrong.
    """
    for name, value, least in (("nodes", nodes, 1), ("ranks_per_node", ranks_per_node, 1), ("restarts", restarts, 0)):
        if value < least:
            raise ValueError(f"run: {name} must be at least {least}, got {value}")
    task = _task(function, args)
    library = _library()
    os.makedirs(folder, exist_ok=True)
    cd.save(task, os.path.join(folder, "task"))
    if not library.is_initialized():
        library.init()
    bundle = {"CPU": float(ranks_per_node)} if resources is None else resources
    show = on_log or (lambda line: sys.stdout.write(f"{line}\n"))
    attempt = _Attempt(library, os.path.abspath(folder), nodes, ranks_per_node, bundle, timeout)
    for number in range(restarts + 1):
        failure = attempt.run(show, on_report or (lambda rank, values: None))
        if failure is None:
            paths = [os.path.join(folder, f"result-{rank}") for rank in range(nodes * ranks_per_node)]
            return [cd.load(path)["result"] for path in paths]
        if number < restarts:
            show(f"candelabra.distributed.ray: attempt {number + 1} has failed, {failure}; all ranks start again")
    raise RunFailed(f"the ranks have failed {restarts + 1} times, at last: {failure}")


class _Attempt:
    """Starts all ranks once, and follows them to their end."""

    def __init__(
        self, library: Any, folder: str, nodes: int, ranks_per_node: int, bundle: dict[str, float], timeout: float
    ) -> None:
        self._ray, self._folder, self._timeout = library, folder, timeout
        self._nodes, self._ranks_per_node, self._bundle = nodes, ranks_per_node, bundle

    def run(self, show: Callable[[str], Any], on_report: Callable[[int, dict[str, Any]], Any]) -> str | None:
        """Return None, or why the ranks have failed."""
        library = self._ray
        group = library.util.placement_group([self._bundle] * self._nodes, strategy="STRICT_SPREAD")
        supervisors: list[Any] = []
        last: list[str] = []
        try:
            if not group.wait(self._timeout):
                return f"the cluster has no {self._nodes} nodes with {self._bundle} within {self._timeout:g} s"
            supervisors += [self._supervisor(group, number) for number in range(self._nodes)]
            self._start(supervisors)
            status = None
            while status is None:
                found = [self._get(each.poll.remote()) for each in supervisors]
                lines, status = found[0]
                for line in lines:
                    rank, _, text = line.partition("] ")
                    if text.startswith(_REPORT):
                        on_report(int(rank.removeprefix("[")), json.loads(text.removeprefix(_REPORT)))
                    else:
                        last[:] = [*last[1 - _KEPT :], line]
                        show(line)
                time.sleep(_PAUSE)
        except (library.exceptions.RayActorError, library.exceptions.GetTimeoutError) as error:
            return f"a node is gone: {type(error).__name__}: {str(error).splitlines()[0]}"
        finally:
            self._end(supervisors, group)
        return None if status == 0 else "\n".join([f"mpiexec has ended with status {status}:", *last])

    def _get(self, reference: Any) -> Any:
        return self._ray.get(reference, timeout=self._timeout)

    def _supervisor(self, group: Any, number: int) -> Any:
        strategy = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            group, placement_group_bundle_index=number
        )
        return self._ray.remote(Supervisor).options(num_cpus=0, scheduling_strategy=strategy).remote()

    def _start(self, supervisors: Sequence[Any]) -> None:
        address = self._get(supervisors[0].address.remote())
        environment = {FOLDER: self._folder, "MASTER_ADDR": address, "TORCHELASTIC_RUN_ID": str(time.time_ns())}
        if self._ranks_per_node > 1:
            environment["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        commands = self._get(supervisors[0].launch.remote(self._nodes, self._ranks_per_node, address, environment))
        for supervisor, command in zip(supervisors, commands, strict=True):
            self._get(supervisor.start_proxy.remote(command))

    def _end(self, supervisors: Sequence[Any], group: Any) -> None:
        for each in supervisors:
            try:
                self._ray.get(each.stop.remote(), timeout=10.0)
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
                pass  # gone already, with its processes
            self._ray.kill(each)
        self._ray.util.remove_placement_group(group)


def __dir__() -> list[str]:
    return sorted(__all__)

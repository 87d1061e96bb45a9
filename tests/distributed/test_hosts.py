"""Two hosts, which are network namespaces of this machine, one of which loses its network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ADDRESSES = ("10.77.0.1", "10.77.0.2")
TIMEOUT = 4
PROGRAM = f"""
import sys, time
from datetime import timedelta
import candelabra as cd, candelabra.distributed as dist
dist.init_process_group("mpi", timeout=timedelta(seconds=60))
group = None  # the start may take long on a busy machine
for step in range(10_000):
    dist.all_reduce(cd.ones(3), group=group)
    if step == 2:
        group = dist.new_group(timeout=timedelta(seconds={TIMEOUT}))
    if step == 3 and dist.get_rank() == 0:
        open(sys.argv[1], "w").close()
    time.sleep(0.01)
"""
LAUNCHER = """#!/bin/sh
# As ssh: OPTIONS HOST COMMAND
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "candelabra-$host" sh -c "$*"
"""


def ip(*arguments: str) -> bool:
    """Call ``ip`` and return whether it has succeeded."""
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode == 0


def connected() -> bool:
    """Create two namespaces with a cable between them, and return whether this machine allows it."""
    good = all(ip("netns", "add", f"candelabra-{address}") for address in ADDRESSES)
    names = [f"candelabra-{address}" for address in ADDRESSES]
    good = good and ip("link", "add", "e0", "netns", names[0], "type", "veth", "peer", "name", "e0", "netns", names[1])
    for name, address in zip(names, ADDRESSES, strict=True):
        good = good and ip("-n", name, "address", "add", f"{address}/24", "dev", "e0")
        good = good and ip("-n", name, "link", "set", "e0", "up") and ip("-n", name, "link", "set", "lo", "up")
    return good and all(map(is_running, names))


def is_running(name: str) -> bool:
    """Wait until a namespace's network runs, which Linux finds out up to a second after both ends of the cable are up,
    and return whether it does. MPI does not use a network before.
    """
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        shown = subprocess.run(["ip", "-n", name, "link", "show", "e0"], capture_output=True, text=True, check=False)
        if "state UP" in shown.stdout:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def hosts() -> Iterator[None]:
    """Create the hosts, and remove them with all that runs on them."""
    if shutil.which("ip") is None:
        pytest.skip("there is no command `ip` (Debian's package iproute2), so hosts cannot be simulated")
    try:
        if not connected():
            pytest.skip("this machine allows no network namespaces (they need root), so hosts cannot be simulated")
        yield
    finally:
        for address in ADDRESSES:
            found = subprocess.run(["ip", "netns", "pids", f"candelabra-{address}"], capture_output=True, text=True)
            for pid in found.stdout.split():
                os.kill(int(pid), 9)
            ip("netns", "delete", f"candelabra-{address}")


@pytest.mark.usefixtures("hosts")
def test_the_run_ends_when_a_host_is_gone(tmp_path: Path) -> None:
    """Within the timeout and some seconds; the error names the rank that is left, and the collective."""
    program, launcher, started = tmp_path / "program.py", tmp_path / "launcher", tmp_path / "started"
    program.write_text(PROGRAM)
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    # Both hosts share this machine's name and memory, which MPI must not use.
    environment = {
        **os.environ, "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(launcher), "MPIR_CVAR_NOLOCAL": "1",
        "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "e0",
    }  # fmt: skip
    line = ["ip", "netns", "exec", f"candelabra-{ADDRESSES[0]}", sys.executable, "-m", "candelabra", "run", "-n", "1"]
    line += ["--hosts", ",".join(ADDRESSES), str(program), str(started)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment) as process:
        limit = time.monotonic() + 60
        while not started.exists() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
        assert started.exists()
        assert ip("-n", f"candelabra-{ADDRESSES[1]}", "link", "set", "e0", "down")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "rank 0 ends all ranks because of DistBackendError: rank 0: all_reduce(float32[3], ReduceOp.SUM)" in errors
    assert f"did not complete within {TIMEOUT} s: another rank is late, has ended" in errors

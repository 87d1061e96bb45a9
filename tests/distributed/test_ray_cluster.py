"""``candelabra.distributed.ray`` on a cluster of two local nodes and a spare one, with the real Ray."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from candelabra.distributed import run

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install --group ray (260 MB); test_ray.py tests what needs no cluster",
    ),
]
TRAIN = """
import time
from datetime import timedelta
import candelabra as cd
import candelabra.distributed as dist
from candelabra.distributed import checkpoint, ray

def train(steps, loses_a_node):
    dist.init_process_group("mpi", timeout=timedelta(seconds=20))
    state = {"x": cd.zeros(3), "step": 0}
    last = ray.last_checkpoint()
    if last is not None:
        checkpoint.load(state, checkpoint_id=last)
    first = state["step"]
    for step in range(first, steps):
        ones = cd.ones(3)
        dist.all_reduce(ones)
        state["x"] += ones
        state["step"] = step + 1
        ray.report({"step": step})
        while loses_a_node and last is None and step == 7:  # until the node is gone, however late that is
            dist.all_reduce(ones)
        if step % 5 == 4:
            checkpoint.save(state, checkpoint_id=ray.new_checkpoint(step))
        time.sleep(0.05)
    dist.destroy_process_group()
    return [state["x"].sum().item(), first]
"""
DRIVE = """
import faulthandler, json, sys, threading
faulthandler.dump_traceback_later(200, exit=True)
import ray as library
from ray.cluster_utils import Cluster
from candelabra.distributed import ray
import train

folder, mode = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
library.init(address=cluster.address, log_to_driver=False)
removed = []

def on_report(rank, values):
    if mode == "remove" and values["step"] == 7 and not removed:
        groups = library.util.placement_group_table().values()
        used = {id for group in groups if group["state"] == "CREATED" for id in group["bundles_to_node_id"].values()}
        node = next(node for node in reversed(nodes) if node.node_id in used)
        removed.append(threading.Thread(target=cluster.remove_node, args=(node, False)))
        removed[0].start()

logs = []
found = ray.run(
    train.train, 20, mode == "remove", folder=folder, nodes=2, restarts=1, on_report=on_report, on_log=logs.append,
    timeout=60.0,
)
for thread in removed:
    thread.join()
library.shutdown()
cluster.shutdown()
print(json.dumps({"found": found, "logs": logs}))
"""


@pytest.mark.parametrize("mode", ["remove", "stay"])
def test_a_run_ends_on_a_real_cluster(tmp_path: Path, mode: str) -> None:
    """Also when a node is removed: all ranks start again from the last checkpoint, one on another node."""
    try:
        run.find_mpiexec()
    except FileNotFoundError:
        pytest.skip("there is no mpiexec here")
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "drive.py").write_text(DRIVE)
    path = os.pathsep.join([str(tmp_path), *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])])
    line = [sys.executable, str(tmp_path / "drive.py"), str(tmp_path / "run"), mode]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    starts = {first for _, first in result["found"]}
    assert [total for total, _ in result["found"]] == [20 * 2 * 3.0] * 2
    if mode == "stay":
        assert starts == {0}
    else:
        assert starts == {5}
        assert any("attempt 1 has failed, a node is gone" in each for each in result["logs"])

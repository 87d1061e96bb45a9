"""Distributed checkpoints: written by some ranks, loaded by others. Ranks are threads; one test kills a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import checkpoint, threads
from candelabra.distributed.checkpoint import CheckpointException
from candelabra.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from candelabra.distributed.fsdp import fully_shard
from candelabra.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


def network(sharded: bool) -> Any:
    """Return a network with fixed weights, plain or sharded."""
    net = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 3)).double()
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(number, *p.shape))
    return fully_shard(net) if sharded else net


def step(net: Any, optimizer: Any, number: int, rank: int = 0) -> None:
    """Make one training step."""
    optimizer.zero_grad()
    (net(numbers(100 + number, 4, 5)) ** 2).mean().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("writers", "ranks"),
    [(1, 3), (3, 2), *(pytest.param(*pair, marks=pytest.mark.thorough) for pair in ((1, 1), (1, 2), (3, 1), (3, 3)))],
)
def test_any_number_of_ranks_continues_training(writers: int, ranks: int, tmp_path: Path) -> None:
    """Parameters, buffers and the optimizer's state of one number of ranks serve another; one rank is plain."""

    def begin() -> None:
        net = network(writers > 1)
        optimizer = optim.AdamW(net.parameters(), lr=0.1)
        for number in range(2):
            step(net, optimizer, number)
        model, state = get_state_dict(net, optimizer)
        checkpoint.save(
            {"model": model, "optimizer": state, "epoch": 2, "notes": ["a", {"b": 1.5}]}, checkpoint_id=tmp_path
        )

    def resume() -> list[Any]:
        net = network(ranks > 1)
        optimizer = optim.AdamW(net.parameters(), lr=0.5)
        model, state = get_state_dict(net, optimizer)
        loaded: dict[str, Any] = {"model": model, "optimizer": state, "epoch": 0, "notes": ["", {"b": 0}]}
        checkpoint.load(loaded, checkpoint_id=tmp_path)
        assert (loaded["epoch"], loaded["notes"]) == (2, ["a", {"b": 1.5}])
        set_state_dict(net, optimizer, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
        step(net, optimizer, 2)
        return list(get_model_state_dict(net, options=StateDictOptions(full_state_dict=True)).values())

    plain = network(False)
    optimizer = optim.AdamW(plain.parameters(), lr=0.1)
    for number in range(3):
        step(plain, optimizer, number)
    threads.run(begin, writers)
    for found in threads.run(resume, ranks):
        for one, other in zip(found, plain.state_dict().values(), strict=True):
            assert cd.allclose(one, other)


def test_boxes_of_other_placements(tmp_path: Path) -> None:
    """A tensor in rows is loaded in columns; each byte is written once, tensors of all ranks are shared out."""
    whole, replicated = numbers(0, 7, 5), [numbers(n, 10) for n in range(4)]

    def write() -> None:
        mesh = init_device_mesh("cpu", (4,))
        state = {"x": distribute_tensor(whole, mesh, [Shard(0)]), "y": replicated, "s": cd.tensor(3)}
        checkpoint.save(state, storage_writer=checkpoint.FileSystemWriter(tmp_path))

    def read() -> None:
        mesh = init_device_mesh("cpu", (2, 1))
        x = distribute_tensor(cd.zeros(7, 5).double(), mesh, [Shard(1), Replicate()])
        state: dict[str, Any] = {"x": x, "y": [cd.zeros(10).double() for _ in range(4)], "s": cd.tensor(0)}
        checkpoint.load(state, storage_reader=checkpoint.FileSystemReader(tmp_path))
        assert cd.equal(x.full_tensor(), whole)
        assert all(cd.equal(one, other) for one, other in zip(state["y"], replicated, strict=True))
        assert state["s"].item() == 3

    threads.run(write, 4)
    sizes = [sum(t.numel() for t in cd.load(file)["tensors"].values()) for file in tmp_path.glob("*.safetensors")]
    assert sum(sizes) == 35 + 40 + 1
    assert max(sizes) <= 24
    threads.run(read, 2)
    alone: dict[str, Any] = {"x": cd.zeros(7, 5).double()}
    checkpoint.load(alone, checkpoint_id=tmp_path, no_dist=True)
    assert cd.equal(alone["x"], whole)


def test_objects_with_states(tmp_path: Path) -> None:
    """Modules and optimizers may be values of the state; a checkpoint replaces the former one in its folder."""
    net, other = network(False), network(False)
    for number in (1, 2):
        with cd.no_grad():
            net[0].weight.fill_(number)
        checkpoint.save({"net": net, "number": number}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    state = {"net": other, "number": 0}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["number"] == 2
    assert (other[0].weight == 2).all()


def test_a_rank_that_fails(tmp_path: Path, monkeypatch: Any) -> None:
    """Every rank raises with its error; the folder has the former checkpoint, and no other file."""
    checkpoint.save({"x": cd.ones(3)}, checkpoint_id=tmp_path)
    before = sorted(tmp_path.iterdir())
    original = cd.save

    def failing(obj: Any, f: Any) -> None:
        if str(f).endswith("-1.safetensors"):
            raise OSError("no space left on device")
        original(obj, f)

    monkeypatch.setattr(cd, "save", failing)

    def program() -> None:
        with pytest.raises(
            CheckpointException, match="not written: rank 1: OSError: no space left on device"
        ) as caught:
            checkpoint.save({"x": cd.zeros(3)}, checkpoint_id=tmp_path)
        assert list(caught.value.failures) == [1]

    threads.run(program, 2)
    assert sorted(tmp_path.iterdir()) == before
    state = {"x": cd.zeros(3)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1.0] * 3


KILLED = """
import os, signal, sys
import candelabra as cd
from candelabra.distributed import checkpoint
from candelabra.distributed.checkpoint import _manifest
moment = sys.argv[2]
if moment == "files":
    save = cd.save
    def dying(obj, f):
        save(obj, f)
        os.kill(os.getpid(), signal.SIGKILL)
    cd.save = dying
else:
    _manifest.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save({"x": cd.zeros(3)}, checkpoint_id=sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["files", pytest.param("manifest", marks=pytest.mark.thorough)])
def test_a_killed_save(moment: str, tmp_path: Path) -> None:
    """The former checkpoint stays complete; the next save removes what the killed one has left."""
    checkpoint.save({"x": cd.ones(3)}, checkpoint_id=tmp_path)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), moment], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    state = {"x": cd.zeros(3)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1.0] * 3
    checkpoint.save({"x": cd.ones(2)}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_whole_states() -> None:
    """Whole states are those of one process, and load into shards; so do the states of an optimizer."""

    def program() -> None:
        net = network(True)
        optimizer = optim.AdamW(net.parameters(), lr=0.1)
        step(net, optimizer, 0)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        model, state = get_state_dict(net, optimizer, options=options)
        assert model["0.weight"].shape == (7, 5)
        assert state["state"]["0.weight"]["exp_avg"].shape == (7, 5)
        assert state["param_groups"][0]["params"] == [name for name, _ in net.named_parameters()]
        other = network(True)
        twin = optim.AdamW(other.parameters(), lr=0.3)
        set_model_state_dict(other, model)
        set_optimizer_state_dict(other, twin, state)
        step(net, optimizer, 1)
        step(other, twin, 1)
        for one, two in zip(net.parameters(), other.parameters(), strict=True):
            assert cd.equal(one.to_local(), two.to_local())
        assert get_model_state_dict(other, options=StateDictOptions(cpu_offload=True))["0.weight"].placements
        with pytest.raises(KeyError, match=r"the state of the optimizer has no parameter '0\.weight'"):
            set_optimizer_state_dict(other, twin, {"state": {}, "param_groups": []})

    threads.run(program, 2)


def test_a_state_before_the_first_step() -> None:
    """It exists, and changes neither parameters nor the first step."""
    net, plain = network(False), network(False)
    optimizer, expected = optim.AdamW(net.parameters(), lr=0.1), optim.AdamW(plain.parameters(), lr=0.1)
    state = get_optimizer_state_dict(net, optimizer)
    assert (state["state"]["0.weight"]["exp_avg"] == 0).all()
    step(net, optimizer, 0)
    step(plain, expected, 0)
    assert all(cd.equal(p, q) for p, q in zip(net.parameters(), plain.parameters(), strict=True))


def test_wrong_checkpoints(tmp_path: Path) -> None:
    """The errors name the folder, the key, the shape, or the argument."""
    with pytest.raises(CheckpointException, match=r"FileNotFoundError: .* has no complete checkpoint: there is no man"):
        checkpoint.load({"x": cd.ones(1)}, checkpoint_id=tmp_path)
    checkpoint.save({"x": cd.ones(2), "n": 1}, checkpoint_id=tmp_path)
    for state, text in (
        ({"y": cd.ones(1)}, "KeyError: .* has no 'y'"),
        ({"x": cd.ones(3)}, r"'x' has the shape \[3\] in the state, but \[2\] in the checkpoint"),
        ({"n": cd.ones(3)}, "'n' is a tensor in the state, but 1 in the checkpoint"),
    ):
        with pytest.raises(CheckpointException, match=text):
            checkpoint.load(state, checkpoint_id=tmp_path)
    found: dict[str, Any] = {"x": None}
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert found["x"].tolist() == [1.0, 1.0]
    for call in (checkpoint.save, checkpoint.load):
        with pytest.raises(ValueError, match="pass checkpoint_id, the folder, or a storage with a path"):
            call({})
        with pytest.raises(NotImplementedError, match="planner must be None"):
            call({}, checkpoint_id=tmp_path, planner=1)
    with pytest.raises(ValueError, match=r"two values of the state have the path 'a\.b'"):
        checkpoint.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    text = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**text, "version": 9}))
    with pytest.raises(CheckpointException, match="has version 9, this program reads 1"):
        checkpoint.load({}, checkpoint_id=tmp_path)
    assert not dist.is_initialized()

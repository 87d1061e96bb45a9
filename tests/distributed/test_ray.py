"""``candelabra.distributed.ray``: what needs no cluster. Ray itself is a double here, or absent."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from candelabra.distributed import EngineUnavailable, _proxies, ray


def function() -> int:
    """Return a number."""
    return 1


def test_without_ray_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written before it."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineUnavailable, match=r'needs Ray .*pip install "candelabra\[distributed-ray\]"'):
        ray.run(function, folder=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_wrong_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are too small, and functions that ranks cannot import."""
    for name, least in (("nodes", 1), ("ranks_per_node", 1), ("restarts", 0)):
        with pytest.raises(ValueError, match=f"run: {name} must be at least {least}, got -1"):
            ray.run(function, folder=str(tmp_path), **{name: -1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ranks import the function by its name, so it must be one of a module"):
        ray.run(lambda: 1, folder=str(tmp_path))
    typed = SimpleNamespace(__qualname__="train", __module__="__main__")
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace())
    with pytest.raises(TypeError, match=r"train\(\) was typed into an interpreter"):
        ray.run(typed, folder=str(tmp_path))  # type: ignore[arg-type]


def test_the_last_complete_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a manifest; outside a run there is none."""
    for call in (lambda: ray.report({}), ray.last_checkpoint, lambda: ray.new_checkpoint(1)):
        with pytest.raises(RuntimeError, match=r"\(\) is called by a function that candelabra.distributed.ray.run"):
            call()
    monkeypatch.setenv(ray.FOLDER, str(tmp_path))
    assert ray.last_checkpoint() is None
    for step in (2, 10, 11):
        os.makedirs(ray.new_checkpoint(step))
        if step < 11:  # a rank was killed before it wrote the manifest
            (Path(ray.new_checkpoint(step)) / "manifest.json").touch()
    assert ray.last_checkpoint() == ray.new_checkpoint(10)


def double(ends: list[tuple[list[str], int]]) -> Any:
    """Return a double of what Ray's API is used for: one node, whose mpiexec ends as given, once per attempt."""

    class Gone(Exception):
        """Ray's error of an actor whose node is gone."""

    attempts = iter(ends)

    def end() -> tuple[list[str], int]:
        lines, status = next(attempts)
        if status < 0:
            raise Gone("the actor died")
        return lines, status

    def method(answer: Any) -> Any:
        return SimpleNamespace(remote=lambda *_: answer)

    actor = SimpleNamespace(
        address=method(lambda: "127.0.0.1"), launch=method(lambda: [["proxy"]]), start_proxy=method(lambda: None),
        poll=method(end), stop=method(lambda: None),
    )  # fmt: skip
    group = SimpleNamespace(wait=lambda seconds: bool(ends))
    return SimpleNamespace(
        is_initialized=lambda: True, get=lambda call, timeout: call(), kill=lambda actor: None,
        remote=lambda cls: SimpleNamespace(options=lambda **_: method(actor)),
        exceptions=SimpleNamespace(RayActorError=Gone, GetTimeoutError=TimeoutError),
        util=SimpleNamespace(
            placement_group=lambda bundles, strategy: group, remove_placement_group=lambda group: None,
            scheduling_strategies=SimpleNamespace(PlacementGroupSchedulingStrategy=lambda *_, **__: None),
        ),
    )  # fmt: skip


def test_failed_ranks_start_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as allowed, after errors and after lost nodes; reports are no logs."""
    monkeypatch.setattr(ray, "_PAUSE", 0)
    ray.cd.save({"result": 5}, tmp_path / "result-0")
    library = double([(["[0] bad batch"], 1), ([], -1), ([f'[0] {ray._REPORT}{{"step": 3}}', "[0] done"], 0)])
    monkeypatch.setattr(ray, "_library", lambda: library)
    logs: list[str] = []
    reports: list[Any] = []
    options: Any = {"folder": str(tmp_path), "on_log": logs.append, "on_report": lambda *each: reports.append(each)}
    assert ray.run(function, restarts=2, **options) == [5]
    assert reports == [(0, {"step": 3})]
    assert [line for line in logs if line.startswith("[")] == ["[0] bad batch", "[0] done"]
    assert any("attempt 2 has failed, a node is gone: Gone: the actor died; all ranks start again" in x for x in logs)
    library = double([(["[0] bad batch"], 1)])
    with pytest.raises(ray.RunFailed, match=r"the ranks have failed 1 times, at last: mpiexec .* 1:\n\[0\] bad batch"):
        ray.run(function, **options)
    library = double([])
    with pytest.raises(ray.RunFailed, match="the cluster has no 1 nodes with"):
        ray.run(function, **options)


def test_proxies_need_the_mpiexec_of_mpich(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others, and none, are refused."""
    monkeypatch.setattr(_proxies, "find_mpiexec", lambda: "/bin/true")
    with pytest.raises(EngineUnavailable, match="mpiexec has not asked for 1 proxies"):
        _proxies.ProxyLaunch(["true"], 1, 1, "127.0.0.1", {})
    monkeypatch.setattr(_proxies, "is_open_mpi", lambda _: True)
    with pytest.raises(EngineUnavailable, match="/bin/true is Open MPI's; proxies that others start need MPICH's"):
        _proxies.ProxyLaunch(["true"], 1, 1, "127.0.0.1", {})

    def missing() -> str:
        raise FileNotFoundError("candelabra run: there is no mpiexec")

    monkeypatch.setattr(_proxies, "find_mpiexec", missing)
    with pytest.raises(EngineUnavailable, match="there is no mpiexec"):
        _proxies.ProxyLaunch(["true"], 1, 1, "127.0.0.1", {})

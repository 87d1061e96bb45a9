"""Finding engines, the checks at registration, and the conformance level."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from candelabra.distributed import _engines, _threads, conformance, threads
from candelabra.distributed.engine import Communicator, Engine, EngineUnavailable, hookimpl


class Candle(Engine):
    """An engine that is not there."""

    name = "candle"

    def start(self, rank: int, world_size: int, timeout: timedelta) -> Communicator:
        raise EngineUnavailable("no candle")


def plugin(returned: Any) -> Any:
    """Return an object with the hook."""

    class Plugin:
        @hookimpl
        def candelabra_engine(self) -> Any:
            return returned

    return Plugin()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Return a function that installs a plugin, or an error at its import, as the engine ``candle``."""
    monkeypatch.setattr(_engines, "_engines", {})

    def install(value: Any) -> None:
        def load() -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        entry: Any = SimpleNamespace(name="candle", load=load)
        monkeypatch.setattr(_engines, "entry_points", lambda group: [entry])

    return install


def test_an_engine_is_found_by_its_entry_point(installed: Callable[[Any], None]) -> None:
    """It is imported once, when it is named."""
    engine = Candle()
    installed(plugin(engine))
    assert _engines.names() == ["candle"]
    assert _engines.engine("candle") is engine
    installed(ImportError("not imported again"))
    assert _engines.engine("candle") is engine
    assert _engines.available("candle")


def test_the_engines_of_this_repository_are_entry_points() -> None:
    """The metadata name modules that exist."""
    assert {"mpi", "threads"} <= set(_engines.names())
    assert isinstance(_engines.engine("threads"), _threads.ThreadEngine)
    assert EntryPoint("x", "candelabra.distributed._threads", _engines.GROUP).load() is _threads


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (plugin(3), TypeError, r"candelabra_engine\(\) returned 3, not a candelabra\.distributed\.engine\.Engine"),
        (
            plugin(_threads.ThreadEngine()),
            TypeError,
            "engine 'candle' has the name 'threads'; the two names must be equal",
        ),
        (plugin(SimpleNamespace()), TypeError, "engine 'candle'"),
        (
            ImportError("no wax"),
            EngineUnavailable,
            r"the engine 'candle' cannot be imported \(no wax\): reinstall the package",
        ),
    ],
)
def test_broken_engines_are_refused(
    installed: Callable[[Any], None], value: Any, error: type[Exception], text: str
) -> None:
    """The error names the engine and the contract."""
    installed(value)
    with pytest.raises(error, match=text):
        _engines.engine("candle")
    if error is EngineUnavailable:
        assert not _engines.available("candle")


@pytest.mark.parametrize("api", [(2, 0), (1, 9), (0, 5)])
def test_engines_of_another_api_are_refused(installed: Callable[[Any], None], api: tuple[int, int]) -> None:
    """Of another major version, or of a later minor one."""
    engine = Candle()
    engine.api = api
    installed(plugin(engine))
    with pytest.raises(
        TypeError, match=rf"engine 'candle' was built for API {api[0]}\.{api[1]}, candelabra\.distributed has"
    ):
        _engines.engine("candle")


def test_without_mpi4py_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any import error of the engine does."""

    def load(_: Any) -> Any:
        raise ModuleNotFoundError("No module named 'mpi4py'")

    monkeypatch.setattr(_engines, "_engines", {})
    monkeypatch.setattr(EntryPoint, "load", load)
    with pytest.raises(EngineUnavailable, match=r'No module named .mpi4py.\): pip install "candelabra\[distributed\]"'):
        _engines.engine("mpi")


def test_a_program_may_add_its_own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its name, after the same checks."""
    monkeypatch.setattr(_engines, "_engines", {})
    engine = Candle()
    _engines.add_engine(engine)
    assert _engines.engine("candle") is engine
    assert "candle" in _engines.names()


def checked(change: Callable[[Any], None] = lambda _: None, size: int = 3) -> list[dict[str, str]]:
    """Run the conformance level on threads, after a change of each communicator."""

    def program() -> dict[str, str]:
        communicator = _engines.engine("threads").start(-1, -1, timedelta(seconds=60))
        change(communicator)
        return conformance.failures(communicator)

    return threads.run(program, size, init=False)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_engine_of_threads_conforms(size: int) -> None:
    """On any number of ranks. It uses the contract's own definitions of optional calls."""
    assert checked(size=size) == [{}] * size


def _wrong_sum(c: Any) -> None:
    right = c.all_reduce

    def all_reduce(buffer: memoryview, dtype: str, op: str) -> None:
        right(buffer, dtype, "max" if (op, dtype) == ("sum", "int16") else op)

    c.all_reduce = all_reduce


def _rounded_differently(c: Any) -> None:
    right = c.all_reduce

    def all_reduce(buffer: memoryview, dtype: str, op: str) -> None:
        right(buffer, dtype, op)
        if dtype == "float32" and c.rank == 1 and len(buffer) > 8:
            array = np.frombuffer(buffer, dtype)
            array[:] = np.nextafter(array, np.float32(np.inf))

    c.all_reduce = all_reduce


def _wrong_order(c: Any) -> None:
    right = c.all_gather

    def all_gather(send: memoryview, receive: memoryview) -> None:
        right(send, receive)
        receive[:] = bytes(reversed(receive))

    c.all_gather = all_gather


def _unordered_root(c: Any) -> None:
    right = c.broadcast
    c.broadcast = lambda buffer, root: right(buffer, 0)


def _writing_reduce(c: Any) -> None:
    c.reduce = lambda buffer, dtype, op, root: c.all_reduce(buffer, dtype, op)


def _open_barrier(c: Any) -> None:
    c.barrier = lambda: None


def _ordered_subset(c: Any) -> None:
    right = c.subset
    c.subset = lambda ranks: right(sorted(ranks))


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        (_wrong_sum, "all_reduce"),
        (_rounded_differently, "same_bits"),
        (_wrong_order, "gathers"),
        (_unordered_root, "broadcast"),
        (_writing_reduce, "reduce_to_one"),
        (_open_barrier, "barriers"),
        (_ordered_subset, "subsets"),
    ],
)
def test_broken_engines_are_caught(change: Callable[[Any], None], caught: str) -> None:
    """Each mistake fails the check of its subject, with a text."""
    found = checked(change)
    assert any(caught in failed for failed in found)
    assert all(text for failed in found for text in failed.values())


def test_a_subset_must_be_a_communicator_inside() -> None:
    """The ranks are no longer in step then, so the check ends with an error."""

    def no_group(c: Any) -> None:
        c.subset = lambda ranks: None

    with pytest.raises(TypeError, match=r"subset\(\) has returned None on a rank of the group"):
        checked(no_group)

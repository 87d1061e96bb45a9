"""Stores: tables that ranks share, in one process, in a file, and over a connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from candelabra.distributed import DistStoreError, FileStore, HashStore, PrefixStore, TCPStore

SHORT = timedelta(milliseconds=30)
Pair = tuple[Any, Any]


def _hash(folder: Path) -> Iterator[Pair]:
    store = HashStore()
    yield store, store


def _file(folder: Path) -> Iterator[Pair]:
    yield FileStore(str(folder / "table"), 2), FileStore(str(folder / "table"))


def _tcp(folder: Path) -> Iterator[Pair]:
    with (
        closing(TCPStore("127.0.0.1", 0, is_master=True)) as master,
        closing(TCPStore(master.host, master.port)) as other,
    ):
        yield master, other


def _prefix(folder: Path) -> Iterator[Pair]:
    store = HashStore()
    yield PrefixStore("a", store), PrefixStore("a", store)


@pytest.fixture(params=[_hash, _file, _tcp, _prefix], ids=lambda each: each.__name__[1:])
def pair(request: Any, tmp_path: Path) -> Iterator[Pair]:
    """Return a store as two ranks have it."""
    yield from request.param(tmp_path)


def test_a_store_is_a_table(pair: Pair) -> None:
    """What one rank sets, adds or appends, the other reads, as bytes of any value."""
    one, other = pair
    assert other.num_keys() == 0
    one.set("key", "välue")
    assert other.get("key") == "välue".encode()
    one.set("key", bytes(range(256)))
    assert other.get("key") == bytes(range(256))
    assert (one.add("count", 2), other.add("count", 3), one.get("count")) == (2, 5, b"5")
    one.append("text", "a")
    other.append("text", b"b")
    assert one.get("text") == b"ab"
    other.multi_set(["x", "y"], ["1", b"2"])
    assert one.multi_get(["y", "x"]) == [b"2", b"1"]
    assert one.num_keys() == 5
    assert one.delete_key("x")
    assert not other.delete_key("x")
    assert one.check(["key", "y"])
    assert not other.check(["key", "x"])


def test_compare_and_set(pair: Pair) -> None:
    """A missing key is compared with the empty value; the result is the value after the call."""
    one, other = pair
    assert one.compare_set("key", "no", "first") == b"no"
    assert not other.check(["key"])
    assert one.compare_set("key", "", "first") == b"first"
    assert other.compare_set("key", "wrong", "second") == b"first"
    assert other.compare_set("key", b"first", b"second") == b"second"


def test_reading_waits(pair: Pair) -> None:
    """``get`` returns once another rank has set the key; after the timeout it names the keys that are missing."""
    one, other = pair
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(other.get("late")))
    thread.start()
    one.set("late", "here")
    thread.join()
    assert found == [b"here"]
    other.wait(["late"])
    with pytest.raises(DistStoreError, match=r"wait timeout after 0.03 s, keys not set: 'b', 'c'"):
        one.wait(["late", "b", "c"], SHORT)
    one.set_timeout(SHORT)
    assert one.timeout == SHORT
    with pytest.raises(DistStoreError, match="keys not set: 'b'"):
        one.get("b")
    with pytest.raises(ValueError, match="multi_set: keys and values must be equally many, got 2 and 1"):
        one.multi_set(["a", "b"], ["1"])


def test_many_threads_count_together(pair: Pair) -> None:
    """``add`` is atomic."""
    one, other = pair

    def count(store: Any) -> None:
        for _ in range(20):
            store.add("count", 1)

    threads = [threading.Thread(target=count, args=(store,)) for store in (one, other, one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.get("count") == b"80"


def test_prefixes_are_separate_tables() -> None:
    """Keys with another prefix are other keys of the store below."""
    store = HashStore()
    PrefixStore("a", PrefixStore("b", store)).set("key", "1")
    assert store.get("b/a/key") == b"1"
    assert not PrefixStore("c", store).check(["key"])


def test_a_master_waits_for_its_users() -> None:
    """Of two ranks, the master returns when the other has connected; without it, the error says how many have."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    opened: list[TCPStore] = []

    def opening(master: bool) -> Callable[[], None]:
        return lambda: opened.append(TCPStore("127.0.0.1", port, 2, master, timedelta(seconds=30)))

    ranks = [threading.Thread(target=opening(master)) for master in (False, True)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert len(opened) == 2
    for store in sorted(opened, key=lambda each: each._server is not None):
        store.close()
    with pytest.raises(DistStoreError, match=r"1 of 2 users have connected within 0.03 s"):
        TCPStore("127.0.0.1", 0, 2, True, SHORT)
    with pytest.raises(DistStoreError, match=rf"no connection to 127.0.0.1:{port} within 0.03 s"):
        TCPStore("127.0.0.1", port, timeout=SHORT)


def test_a_master_that_ends() -> None:
    """The other rank's next call raises; so does a command that the table cannot execute."""
    master = TCPStore("127.0.0.1", 0, is_master=True)
    with closing(TCPStore("127.0.0.1", master.port)) as other:
        other.set("text", "no number")
        with pytest.raises(DistStoreError, match="add has failed: ValueError: invalid literal"):
            other.add("text", 1)
        other._socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(DistStoreError, match=r"(has ended|has failed)"):
            other.get("text")
    master.close()

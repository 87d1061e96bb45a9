"""Stores: small tables of keys and bytes that all ranks share, as PyTorch's, for what a program arranges by itself.

A store executes the commands of :class:`Table`, each atomically: in this process (``HashStore``), in a file
(``FileStore``), or in the process of one rank (``TCPStore``). The text of a command is JSON.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import socketserver
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from candelabra.distributed._work import DistError

DEFAULT_TIMEOUT: Final = timedelta(seconds=300)
_PAUSE: Final = 0.01
"""The longest pause in seconds between two reads of a key that is waited for."""


class DistStoreError(DistError):
    """A key was not set in time, or the store cannot be reached."""


class Table:
    """The keys and values of a store. Values are text in which each character is a byte (Latin-1)."""

    def __init__(self, values: dict[str, str] | None = None) -> None:
        self.values: dict[str, str] = {} if values is None else values

    def execute(self, command: str, keys: Sequence[str], *arguments: Any) -> Any:
        """Execute a command, one of the methods below."""
        return getattr(self, f"do_{command}")(list(keys), *arguments)

    def do_set(self, keys: list[str], *values: str) -> None:
        """Set keys to values."""
        self.values.update(zip(keys, values, strict=True))

    def do_read(self, keys: list[str]) -> list[str] | None:
        """Return the values of keys, or None if one is missing."""
        return [self.values[key] for key in keys] if all(key in self.values for key in keys) else None

    def do_add(self, keys: list[str], amount: int) -> int:
        """Add to a counter, 0 if it is missing, and return its new value."""
        total = int(self.values.get(keys[0], "0")) + amount
        self.values[keys[0]] = str(total)
        return total

    def do_append(self, keys: list[str], value: str) -> None:
        """Append to a value, empty if it is missing."""
        self.values[keys[0]] = self.values.get(keys[0], "") + value

    def do_compare_set(self, keys: list[str], expected: str, desired: str) -> str:
        """Set a key if its value is ``expected``, or it is missing and ``expected`` is empty. Return its value."""
        if self.values.get(keys[0], "") == expected:
            self.values[keys[0]] = desired
        return self.values.get(keys[0], expected)

    def do_delete(self, keys: list[str]) -> bool:
        """Delete a key and return whether it existed."""
        return self.values.pop(keys[0], None) is not None

    def do_count(self, keys: list[str]) -> int:
        """Return the number of keys."""
        return len(self.values)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value.encode().decode("latin-1")


class Store(ABC):
    """A table of keys and bytes. Reading a key waits until a rank has set it.

    Raises :class:`DistStoreError` if a key is not set within the timeout.
    """

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout

    @abstractmethod
    def _execute(self, command: str, keys: Sequence[str], *arguments: Any) -> Any:
        """Execute a command of :class:`Table` atomically."""

    @property
    def timeout(self) -> timedelta:
        """The time for which a key is waited for."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time for which a key is waited for."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key."""
        self._execute("set", [key], _text(value))

    def get(self, key: str) -> bytes:
        """Return the value of a key, once it is set."""
        return self.multi_get([key])[0]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys at once."""
        if len(keys) != len(values):
            raise ValueError(f"multi_set: keys and values must be equally many, got {len(keys)} and {len(values)}")
        self._execute("set", keys, *[_text(value) for value in values])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys, once all are set."""
        return [value.encode("latin-1") for value in self._await(list(keys), self._timeout)]

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which begins with 0, and return its new value."""
        found: int = self._execute("add", [key], int(amount))
        return found

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key."""
        self._execute("append", [key], _text(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key if its value is ``expected_value`` (empty for a missing key), and return its value then."""
        found: str = self._execute("compare_set", [key], _text(expected_value), _text(desired_value))
        return found.encode("latin-1")

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys are set, without waiting."""
        return self._execute("read", keys) is not None

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return once all keys are set."""
        self._await(list(keys), self._timeout if timeout is None else timeout)

    def delete_key(self, key: str) -> bool:
        """Delete a key and return whether it existed."""
        return bool(self._execute("delete", [key]))

    def num_keys(self) -> int:
        """Return the number of keys."""
        found: int = self._execute("count", [])
        return found

    def _await(self, keys: list[str], timeout: timedelta) -> list[str]:
        end, pause = time.monotonic() + timeout.total_seconds(), 0.0
        while True:
            found: list[str] | None = self._execute("read", keys)
            if found is not None:
                return found
            if time.monotonic() > end:
                missing = ", ".join(repr(key) for key in keys if not self.check([key]))
                raise DistStoreError(f"wait timeout after {timeout.total_seconds():g} s, keys not set: {missing}")
            time.sleep(pause)  # 0 at first: it gives way to other threads
            pause = min(pause + 1e-3, _PAUSE)


class HashStore(Store):
    """A store of this process, for ranks that are threads."""

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout)
        self._table, self._lock = Table(), threading.Lock()

    def _execute(self, command: str, keys: Sequence[str], *arguments: Any) -> Any:
        with self._lock:
            return self._table.execute(command, keys, *arguments)


class FileStore(Store):
    """A store in a file that all ranks can lock, on a local disk or on a network file system with locks.

    Each write replaces the file, so that a killed rank leaves the last complete table.
    """

    def __init__(self, file_name: str, world_size: int = -1, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout)
        self.path = os.fspath(file_name)
        self.world_size = world_size

    def _execute(self, command: str, keys: Sequence[str], *arguments: Any) -> Any:
        with open(f"{self.path}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, also by the end of the process
            table = self._read()
            result = table.execute(command, keys, *arguments)
            if command not in ("read", "count"):
                temporary = f"{self.path}.new"
                with open(temporary, "w", encoding="utf-8") as file:
                    json.dump(table.values, file)
                os.replace(temporary, self.path)
            return result

    def _read(self) -> Table:
        try:
            with open(self.path, encoding="utf-8") as file:
                return Table(json.loads(file.read() or "{}"))
        except FileNotFoundError:
            return Table()


class _Server(socketserver.ThreadingTCPServer):
    """Executes commands, one per line, in the order in which they arrive."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int]) -> None:
        self.table, self.lock = Table(), threading.Lock()
        super().__init__(address, _Connection)


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        for line in self.rfile:
            try:
                with self.server.lock:
                    answer = {"result": self.server.table.execute(*json.loads(line))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class TCPStore(Store):
    """A store in the process of one rank, the master, to which the others connect.

    Args:
        host_name, port: the address of the master. The master may pass port 0, and finds its port in ``store.port``.
        world_size: the number of users, for which the master waits, or None.
        is_master: whether this process serves the table.
        timeout: for connecting, and for waiting for keys.
        wait_for_workers: whether the master waits for all users.
        multi_tenant: accepted and not used.
        master_listen_fd, use_libuv: accepted and not used.

    Raises:
        DistStoreError: the master cannot be reached, or not all users have connected, within the timeout.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(timeout)
        self.host, self.world_size = host_name, world_size
        self._lock = threading.Lock()
        self._server: _Server | None = None
        if is_master:
            self._server = _Server((host_name, port))
            port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.02,), name="TCPStore", daemon=True).start()
        self.port: int = port
        self._socket = self._connected()
        self._lines = self._socket.makefile("rb")
        joined = self.add("/candelabra/users", 1)
        if is_master and wait_for_workers and world_size is not None:
            self._await_users(joined, world_size)

    def _connected(self) -> socket.socket:
        end, pause = time.monotonic() + self.timeout.total_seconds(), 0.001
        while True:
            try:
                found = socket.create_connection((self.host, self.port), timeout=self.timeout.total_seconds())
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return found
            except OSError as error:
                if time.monotonic() > end:
                    raise DistStoreError(
                        f"TCPStore: no connection to {self.host}:{self.port} within "
                        f"{self.timeout.total_seconds():g} s ({error})"
                    ) from error
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _await_users(self, joined: int, count: int) -> None:
        end = time.monotonic() + self.timeout.total_seconds()
        while joined < count:
            if time.monotonic() > end:
                self.close()
                raise DistStoreError(
                    f"TCPStore: {joined} of {count} users have connected within {self.timeout.total_seconds():g} s"
                )
            time.sleep(_PAUSE)
            joined = self.add("/candelabra/users", 0)

    def _execute(self, command: str, keys: Sequence[str], *arguments: Any) -> Any:
        with self._lock:
            try:
                self._socket.sendall(json.dumps([command, list(keys), *arguments]).encode() + b"\n")
                line = self._lines.readline()
            except OSError as error:
                raise DistStoreError(
                    f"TCPStore: the connection to {self.host}:{self.port} has failed: {error}"
                ) from error
        if not line:
            raise DistStoreError(f"TCPStore: the master at {self.host}:{self.port} has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise DistStoreError(f"TCPStore: {command} has failed: {answer['error']}")
        return answer["result"]

    def num_keys(self) -> int:
        """Return the number of keys that programs have set."""
        return super().num_keys() - 1  # the count of users

    def close(self) -> None:
        """Close the connection; on the master, end the service."""
        self._lines.close()
        self._socket.close()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class PrefixStore(Store):
    """Another store, with a prefix before each key."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self.prefix, self.underlying_store = prefix, store

    def _execute(self, command: str, keys: Sequence[str], *arguments: Any) -> Any:
        return self.underlying_store._execute(command, [f"{self.prefix}/{key}" for key in keys], *arguments)

    def num_keys(self) -> int:
        """Return the number of keys of the other store, with any prefix."""
        return self.underlying_store.num_keys()

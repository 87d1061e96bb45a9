"""The arrays of a fake device. Only their shape is public; only the device reads their content."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from candelabra.dtypes import dtype

from candelabra_conformance.fake.memory import Ledger


class Block:
    """One allocation: charged to a ledger while it lives, overwritten with ``freed`` when its last array is deleted.

    ``hidden`` is an array of the reference device that covers the whole allocation. Memory that was exported through
    DLPack (``exported``) has other owners and is not overwritten.
    """

    __slots__ = ("device", "exported", "freed", "hidden", "index", "ledger", "nbytes", "write")

    def __init__(self, device: object, index: int, hidden: Any, nbytes: int, ledger: Ledger) -> None:
        self.device: Final = device
        self.index: Final = index
        self.hidden: Final = hidden
        self.nbytes: Final = nbytes
        self.ledger: Final = ledger
        self.exported = False
        self.freed: Any = None
        self.write: Any = None

    def __del__(self) -> None:
        # The interpreter may run this at any time, so it takes no lock: the ledger only records it.
        if self.freed is not None and not self.exported:
            self.write(self.hidden, self.freed)
        self.ledger.give(self.nbytes)


class FakeArray:
    """A payload. The core can only read its ``shape``: it has no buffer, ``__array__``, dtype, truth value or
    comparison."""

    __slots__ = ("__weakref__", "_block", "_dtype", "_hidden", "shape")

    def __init__(self, block: Block, hidden: Any, shape: tuple[int, ...], d: dtype) -> None:
        self._block: Final = block
        self._hidden: Final = hidden
        self._dtype: Final = d
        self.shape: Final = shape

    def __bool__(self) -> NoReturn:
        raise TypeError("a device's array has no truth value: its content is not in the host's memory")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("a device's array cannot be compared: its content is not in the host's memory")

    __hash__ = None  # type: ignore[assignment]

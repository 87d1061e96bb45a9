"""The array of a fake device: a shape, and what only the device itself may look at."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from candelabra.dtypes import dtype

from candelabra_conformance.fake.memory import Ledger


class Block:
    """One allocation: charged to a ledger while it lives, overwritten with ``freed`` when the last array on it dies.

    ``hidden`` is an array of the reference device over the whole of it. Memory that was handed out through DLPack
    (``exported``) has other owners and is left alone.
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
        # Runs wherever the interpreter pleases, so it takes no lock: the ledger only notes it.
        if self.freed is not None and not self.exported:
            self.write(self.hidden, self.freed)
        self.ledger.give(self.nbytes)


class FakeArray:
    """A payload. It offers the core ``shape`` and nothing else: no buffer, ``__array__``, dtype, truth, comparison."""

    __slots__ = ("_block", "_dtype", "_hidden", "shape")

    def __init__(self, block: Block, hidden: Any, shape: tuple[int, ...], d: dtype) -> None:
        self._block: Final = block
        self._hidden: Final = hidden
        self._dtype: Final = d
        self.shape: Final = shape

    def __bool__(self) -> NoReturn:
        raise TypeError("the array of a device has no truth value: its content is not in the host's memory")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("the array of a device cannot be compared: its content is not in the host's memory")

    __hash__ = None  # type: ignore[assignment]

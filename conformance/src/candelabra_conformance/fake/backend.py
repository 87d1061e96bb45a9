"""A device in pure Python with all the difficult properties of a real one.

Its numbers are the reference device's, to the bit. The differences are when they are computed and which code can read
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final

from candelabra.backend import Backend, Capabilities, DeviceInfo, Kernel, contiguous_strides, is_contiguous_layout
from candelabra.dtypes import BY_NAME, dtype
from candelabra.library import DEVICE, OPERATORS, open_device, plugins

from candelabra_conformance.fake.arrays import Block, FakeArray
from candelabra_conformance.fake.exchange import Borrowed, export_options
from candelabra_conformance.fake.launching import FakeLaunch, view_of
from candelabra_conformance.fake.mapping import FakeMapping
from candelabra_conformance.fake.memory import Failing, Ledger, after, poison
from candelabra_conformance.fake.streams import Stream, StreamSchedule, StreamWork

EXTENSION: Final = 12
"""DLPack's device type for devices without a number of their own (``kDLExtDev``)."""
DTypeNames = Iterable[dtype | str]


class FakeAccelerator(Backend):
    """Backend of the fake devices ``name:0`` to ``name:<devices - 1>``.

    Dtypes in ``missing_dtypes`` are neither stored nor computed in, those in ``storage_only`` are only stored;
    operators in ``missing_kernels`` are left to their bodies and to the fallback. ``immutable``: arrays without strides
    that never change. Without ``asynchronous`` every call is complete when it returns, without ``poison`` new memory is
    zero. ``capacity`` is each device's memory in bytes. ``fail_allocation_after=n`` lets the allocation after n others
    fail, once; ``failing_allocations`` selects any (see :mod:`candelabra_conformance.fake.memory`). ``dlpack`` is the
    DLPack device type, None for no exchange. ``candelabra devices`` shows ``facts``. ``kernels`` are kernels on the
    reference's arrays that replace its own.
    """

    def __init__(
        self,
        name: str = "fake",
        devices: int = 2,
        missing_dtypes: DTypeNames = (),
        storage_only: DTypeNames = (),
        missing_kernels: Iterable[str] = (),
        immutable: bool = False,
        asynchronous: bool = True,
        poison: bool = True,
        capacity: int | None = None,
        fail_allocation_after: int | None = None,
        failing_allocations: Failing | None = None,
        dlpack: int | None = EXTENSION,
        facts: Mapping[str, str] | None = None,
        kernels: Mapping[str, Kernel] | None = None,
    ) -> None:
        instance = open_device(plugins.reference_device())
        self.name = name
        self.reference: Final = instance.backend
        self.reference_index: Final = instance.index
        self._instance: Final = instance
        self.asynchronous: Final = asynchronous
        self.poisoned: Final = poison
        self.facts: Final = {"simulated on": str(instance.device)} if facts is None else dict(facts)
        self.immutable: Final = immutable
        self.schedule: Final = StreamSchedule(devices)
        if fail_allocation_after is not None:
            failing_allocations = after(fail_allocation_after)
        self.ledgers: Final = [
            Ledger(f"{name}:{index}", self.schedule.lock, capacity, failing_allocations) for index in range(devices)
        ]
        self._missing: Final = frozenset(missing_kernels)
        self._given: Final = kernels
        self._cells: Final[dict[tuple[dtype, object], Any]] = {}
        self.full: Final = lru_cache(1024)(self._full)
        self.capabilities = self._able(_dtypes(missing_dtypes), _dtypes(storage_only), dlpack)

    def _able(self, missing: frozenset[dtype], held: frozenset[dtype], dlpack: int | None) -> Capabilities:
        theirs = self.reference.capabilities
        return Capabilities(
            storage=theirs.storage - missing,
            arithmetic=theirs.arithmetic - missing - held,
            strided=not self.immutable,
            mutable=not self.immutable,
            asynchronous=self.asynchronous,
            nondeterministic=theirs.nondeterministic,
            dlpack=dlpack,
        )

    def __repr__(self) -> str:
        return self.name

    def device_name(self, index: int) -> str:
        """Return the name of a device."""
        return f"{self.name}:{index}"

    # -- the contract: devices and kernels ----------------------------------------------------------------------------
    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo(f"{self.name} number {index}", self.facts) for index in range(len(self.ledgers))]

    def kernels(self) -> Mapping[str, Kernel]:
        table = plugins.owner_kernels(self.reference.name) if self._given is None else self._given
        served = {name: self.serving(name, kernel) for name, kernel in table.items() if self._takes(name)}
        if self.immutable:
            shown = {n: self._copying(n) for n, op in OPERATORS.items() if op.geometry is not None}
            served |= {n: self.serving(n, k) for n, k in shown.items() if n not in self._missing}
        return served

    def _takes(self, name: str) -> bool:
        if name in self._missing:
            return False
        if name not in OPERATORS:
            return not self.immutable and name[:-1] not in self._missing
        return OPERATORS[name].geometry is None  # other views have strides; immutable arrays copy

    def serving(self, name: str, kernel: Kernel) -> Kernel:
        """Return a kernel of this device that runs a kernel on the reference's arrays; ``name`` is that of a kernel
        table."""
        record = OPERATORS.get(name)
        if record is not None and record.view and not self.immutable:
            return view_of(kernel, self.reference.dtype_of)
        choose: Callable[[dtype], Kernel | None] | None = getattr(kernel, "for_dtype", None)
        return FakeLaunch(self, name, kernel, None if choose is None else _chosen(self, name, choose))

    def _copying(self, name: str) -> Kernel:
        """Return a kernel that copies instead of making a view, for immutable arrays. It uses the record's geometry."""
        geometry: Any = OPERATORS[name].geometry

        def kernel(hidden: Any, *args: Any) -> Any:
            shape = tuple(hidden.shape)
            strides = contiguous_strides(shape)
            if not is_contiguous_layout(shape, self.reference.layout(hidden)[0]):  # a placeholder
                hidden = self.copied(hidden, self.reference.dtype_of(hidden))
            return self.reference.restride(hidden, *geometry(shape, strides, 0, *args))

        return kernel

    # -- the contract: memory -----------------------------------------------------------------------------------------
    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> FakeArray:
        nbytes = prod(shape) * dtype.itemsize
        ledger = self.ledgers[index]
        ledger.take(nbytes, lambda: self._wait(index))
        try:
            hidden = self.reference.empty(self.reference_index, shape, dtype)
        except BaseException:
            ledger.give(nbytes)
            raise
        block = Block(self, index, hidden, nbytes, ledger)
        block.write = self.reference.copy_
        filling = self.full(shape, dtype, None if self.poisoned else 0)
        block.write(hidden, filling)
        block.freed = filling if self.poisoned else None
        return FakeArray(block, hidden, shape, dtype)

    def _wait(self, index: int) -> None:
        self.schedule.finish(index)

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> FakeArray:
        array = self.empty(index, shape, dtype)
        self.reference.copy_(array._hidden, self.reference.from_host(self.reference_index, data, shape, dtype))
        return array

    def to_host(self, payload: FakeArray) -> memoryview:
        self.schedule.current(payload._block.index).synchronize()
        return memoryview(bytes(self.reference.to_host(payload._hidden)))  # a copy, never the device's own memory

    def dtype_of(self, payload: FakeArray) -> dtype:
        return payload._dtype

    def copy_(self, destination: FakeArray, source: FakeArray) -> FakeArray:
        block = destination._block
        if self.immutable:
            raise RuntimeError(f"arrays of {self.name!r} are immutable, but one was written to")
        if source._block.index != block.index or source._block.device is not self:
            raise RuntimeError(
                f"copy_: memory of {source._block.device}:{source._block.index} cannot be read from "
                f"{self.device_name(block.index)}"
            )

        def work() -> None:
            self.reference.copy_(destination._hidden, source._hidden)

        if self.asynchronous:
            self.schedule.current(block.index).put(StreamWork("copy_", work, None))
        else:
            work()
        return destination

    def transfer(self, payload: FakeArray, source: int, destination: int) -> FakeArray:
        self.schedule.current(source).synchronize()
        array = self.empty(destination, payload.shape, payload._dtype)
        self.reference.copy_(array._hidden, payload._hidden)
        return array

    def layout(self, payload: FakeArray) -> tuple[tuple[int, ...], int]:
        return super().layout(payload) if self.immutable else self.reference.layout(payload._hidden)

    def restride(self, payload: FakeArray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> FakeArray:
        if self.immutable:
            return super().restride(payload, shape, strides, offset)  # type: ignore[no-any-return]
        hidden = self.reference.restride(payload._hidden, shape, strides, offset)
        return FakeArray(payload._block, hidden, tuple(shape), payload._dtype)

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        return self.ledgers[index].statistics(release)

    def reset_peak(self, index: int) -> bool:
        self.ledgers[index].reset_peak()
        return True

    # -- the contract: order ------------------------------------------------------------------------------------------
    def synchronize(self, index: int) -> None:
        self.schedule.report(self.schedule.finish(index))

    def stream(self, index: int) -> Stream:
        return Stream(self.schedule, index)

    def current_stream(self, index: int) -> Stream:
        """Return the calling thread's current stream."""
        return self.schedule.current(index)

    def default_stream(self, index: int) -> Stream:
        """Return the stream that is current outside every ``with`` block, in every thread."""
        return self.schedule.defaults[index]

    def map_host(self, payload: FakeArray, index: int, read: bool, write: bool) -> FakeMapping | None:
        if self.immutable and write:
            return None
        return FakeMapping(self, payload, prod(payload.shape) * payload._dtype.itemsize, read, write)

    # -- the contract: exchange ---------------------------------------------------------------------------------------
    def to_dlpack(self, payload: FakeArray, index: int, **options: Any) -> Any:
        if self.capabilities.dlpack is None:
            return super().to_dlpack(payload, index, **options)
        self.schedule.current(index).synchronize()
        options = export_options(options, (self.capabilities.dlpack, index), self.device_name(index))
        payload._block.exported = True
        return self.reference.to_dlpack(payload._hidden, self.reference_index, **options)

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> FakeArray | None:
        if getattr(getattr(source, "device", None), "type", self.name) != self.name:
            return None  # a device of another fake type, which has the same numbers
        kind, number = source.__dlpack_device__()
        theirs = self.reference.capabilities.dlpack
        if theirs is None or (int(kind), int(number)) != (self.capabilities.dlpack, index):
            return None
        lent = Borrowed(source, (theirs, self.reference_index))
        hidden: Any = self.reference.from_dlpack(lent, self.reference_index, copy)
        shape, d = tuple(hidden.shape), self.reference.dtype_of(hidden)
        if self.immutable:
            array = self.empty(index, shape, d)
            self.reference.copy_(array._hidden, hidden)
            return array
        return FakeArray(Block(self, index, hidden, 0, self.ledgers[index]), hidden, shape, d)

    # -- for kernels --------------------------------------------------------------------------------------------------
    def _full(self, shape: tuple[int, ...], d: dtype, value: int | None) -> Any:
        """Return an array of the reference that broadcasts one element: ``value``, or poison if that is None."""
        key = d, value
        if key not in self._cells:
            self._cells[key] = self._cell(d, value)
        return self.reference.restride(self._cells[key], shape, (0,) * len(shape), 0)

    def _cell(self, d: dtype, value: int | None) -> Any:
        if value is None:
            return self.reference.from_host(self.reference_index, memoryview(poison(d)), (1,), d)
        fill = self._instance.kernels["full"]
        return fill((1,), value, d, self.reference_index)

    def copied(self, hidden: Any, d: dtype) -> Any:
        """Return a copy of an array of the reference."""
        made = self.reference.empty(self.reference_index, tuple(hidden.shape), d)
        return self.reference.copy_(made, hidden)

    def on_reference(self, value: Any, kind: str) -> Any:
        """Return a kernel's argument as its operator received it, on the reference device, with tensors for arrays."""
        from candelabra.library import wrap

        if kind == DEVICE:
            return self._instance.device
        if isinstance(value, (list, tuple)):
            return type(value)(self.on_reference(part, "") for part in value)
        if value is not None and hasattr(value, "shape"):
            return wrap(value, self._instance.keys_for(self.reference.dtype_of(value)))
        return value


def _dtypes(names: DTypeNames) -> frozenset[dtype]:
    """Return dtypes, of which some are given by name. Raises ``ValueError`` for an unknown name."""
    unknown = [name for name in names if not isinstance(name, dtype) and name not in BY_NAME]
    if unknown:
        raise ValueError(f"unknown dtype {unknown[0]!r}: expected one of {', '.join(BY_NAME)}")
    return frozenset(name if isinstance(name, dtype) else BY_NAME[name] for name in names)


def _chosen(
    accelerator: FakeAccelerator, name: str, choose: Callable[[dtype], Kernel | None]
) -> Callable[[dtype], Kernel | None]:
    def for_dtype(d: dtype) -> Kernel | None:
        kernel = choose(d)
        return None if kernel is None else FakeLaunch(accelerator, name, kernel)

    return for_dtype

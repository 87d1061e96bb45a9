"""Kernels of a fake device: those of the reference, put off.

A call has to return arrays of the right shape and dtype before anything is computed. They come from running the kernel
on stand-ins, which cost no memory: tensors of the same shapes full of zeros, then of ones (a divisor may not be 0, an
index 1 may not exist). Where the kernel refuses both, either the shapes are wrong or it needs the values (zeros and
ones have no Cholesky factor), so it waits for the stream and runs on the true values at once, as a kernel does on real
devices that has to look at an error code; data-dependent operators always do. What is found is kept per signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from candelabra.backend import Kernel
from candelabra.dtypes import dtype
from candelabra.library import DEVICE, OPERATORS

from candelabra_conformance.fake.arrays import FakeArray
from candelabra_conformance.fake.streams import Work

if TYPE_CHECKING:
    from candelabra_conformance.fake.backend import FakeAccelerator

ForDType = Callable[[dtype], Kernel | None]
"""A kernel's choice by dtype, as in the contract."""
Results = tuple[tuple[tuple[int, ...], dtype], ...]
PLAIN: Final = frozenset({int, float, bool, complex, type(None), str, dtype})
REMEMBERED: Final = 4096
"""How many signatures a kernel's results are kept for."""


class Launch:
    """One kernel of a fake device."""

    def __init__(
        self, accelerator: FakeAccelerator, name: str, kernel: Kernel, for_dtype: ForDType | None = None
    ) -> None:
        self.accelerator: Final = accelerator
        self.name: Final = name
        self.kernel: Final = kernel
        self.for_dtype: Final = for_dtype
        self.inplace: Final = name not in OPERATORS
        self.record: Final = OPERATORS[name[:-1] if self.inplace else name]
        kinds = [p.kind for p in self.record.schema.parameters]
        self.place: Final = kinds.index(DEVICE) if DEVICE in kinds else None
        self.results: Final[dict[Any, Results | None]] = {}

    def __call__(self, *args: Any) -> Any:
        index = args[self.place] if self.place is not None else first_array(args)._block.index
        inner, signature = self.opened(args, index)
        if self.place is not None:
            inner[self.place] = self.accelerator.reference_index
        if self.place is not None and not any(isinstance(part[0], tuple) for part in signature):
            return self.made_of_numbers(inner, index)
        found = self.known(inner, signature) if self.accelerator.asynchronous else None
        return self.at_once(args, inner, index) if found is None else self.later(args, inner, index, found)

    # -- what goes in -------------------------------------------------------------------------------------------------
    def opened(self, args: Sequence[Any], index: int) -> tuple[list[Any], tuple[Any, ...]]:
        """What the kernel computes with, and what its results' shapes may depend on.

        Raises ``RuntimeError`` for an array that is not in this device's memory.
        """
        inner: list[Any] = []
        signature: list[tuple[Any, Any]] = []
        for value in args:
            if type(value) is FakeArray:
                block = value._block
                if block.index != index or block.device is not self.accelerator:
                    raise RuntimeError(
                        f"{self.name}: memory of {block.device}:{block.index} cannot be read from "
                        f"{self.accelerator.place(index)}"
                    )
                inner.append(value._hidden)
                signature.append((value.shape, value._dtype))
            elif type(value) in PLAIN:
                inner.append(value)
                signature.append((type(value), value))
            elif isinstance(value, (list, tuple)):
                parts, of_parts = self.opened(value, index)
                inner.append(tuple(parts) if isinstance(value, tuple) else parts)
                signature.append((type(value), of_parts))
            elif hasattr(value, "shape"):
                raise RuntimeError(
                    f"{self.name}: {self.accelerator.place(index)} cannot read the memory of a {type(value).__name__}"
                )
            else:
                inner.append(value)
                signature.append((type(value), value))
        return inner, tuple(signature)

    def known(self, inner: list[Any], signature: tuple[Any, ...]) -> Results | None:
        """Shape and dtype of each result, as far as they can be told without values; else None."""
        if self.record.data_dependent:
            return None
        try:
            return self.results[signature]
        except KeyError:
            if len(self.results) >= REMEMBERED:
                self.results.clear()
            found = self.results[signature] = self.told_by_stand_ins(inner, signature)
            return found
        except TypeError:  # an argument that cannot be hashed
            return self.told_by_stand_ins(inner, signature)

    def told_by_stand_ins(self, inner: list[Any], signature: tuple[Any, ...]) -> Results | None:
        """Run the kernel on zeros, then on ones. None where it refuses both."""
        for value in (0, 1):
            arguments = self.stood_in(inner, signature, value)
            if self.inplace:  # that one is written to, so its elements cannot all be one
                arguments[0] = self.accelerator.copied(arguments[0], signature[0][1])
            try:
                result = self.kernel(*arguments)
            except Exception:  # the next stand-in, or the true values, will tell
                continue
            return tuple((tuple(r.shape), self.accelerator.reference.dtype_of(r)) for r in listed(result))
        return None

    def stood_in(self, inner: Sequence[Any], signature: tuple[Any, ...], value: int) -> list[Any]:
        """The arguments with every tensor replaced by one that is full of ``value``."""
        made: list[Any] = []
        for argument, (kind, of_it) in zip(inner, signature, strict=True):
            if isinstance(kind, tuple):
                made.append(self.accelerator.full(kind, of_it, value))
            elif kind in (list, tuple):
                made.append(kind(self.stood_in(argument, of_it, value)))
            else:
                made.append(argument)
        return made

    # -- what comes out -----------------------------------------------------------------------------------------------
    def later(self, args: tuple[Any, ...], inner: list[Any], index: int, found: Results) -> Any:
        """Give the stream the work, and return memory that it has not been written to yet."""
        accelerator = self.accelerator
        out = [args[0]] if self.inplace else [accelerator.empty(index, shape, d) for shape, d in found]

        def work() -> None:
            try:
                result = listed(self.kernel(*inner))
            except Exception as error:
                raise self.late(error, inner, index) from error
            if not self.inplace:
                self.place_results(out, result, index)

        accelerator.schedule.current(index).put(Work(self.name, work, (args, out)))
        return tuple(out) if len(out) > 1 else out[0]

    def place_results(self, out: list[FakeArray], result: list[Any], index: int) -> None:
        """Write what the kernel returned into the memory that was promised."""
        reference = self.accelerator.reference
        for array, made in zip(out, result, strict=True):
            if tuple(made.shape) != array.shape or reference.dtype_of(made) is not array._dtype:
                raise RuntimeError(
                    f"{self.accelerator.place(index)}: {self.name!r} promised {array._dtype} {list(array.shape)} and "
                    f"made {reference.dtype_of(made)} {list(made.shape)}: if its shape depends on values, its record "
                    "has to say data_dependent=True"
                )
            reference.copy_(array._hidden, made)

    def at_once(self, args: tuple[Any, ...], inner: list[Any], index: int) -> Any:
        """Wait for the stream, then run on the true values; errors are raised here."""
        self.accelerator.schedule.current(index).synchronize()
        with self.accelerator.schedule.lock:
            result = listed(self.kernel(*inner))
            return args[0] if self.inplace else self.stored(result, index)

    def made_of_numbers(self, inner: list[Any], index: int) -> Any:
        """Of a kernel without tensors: what it makes is known at once, and reaches the device's memory in its turn."""
        result = listed(self.kernel(*inner))
        if not self.accelerator.asynchronous:
            return self.stored(result, index)
        reference = self.accelerator.reference
        out = [self.accelerator.empty(index, tuple(r.shape), reference.dtype_of(r)) for r in result]
        work = Work(self.name, lambda: self.place_results(out, result, index), out)
        self.accelerator.schedule.current(index).put(work)
        return tuple(out) if len(out) > 1 else out[0]

    def stored(self, result: list[Any], index: int) -> Any:
        """Results in memory of the device."""
        reference = self.accelerator.reference
        out = [self.accelerator.empty(index, tuple(r.shape), reference.dtype_of(r)) for r in result]
        self.place_results(out, result, index)
        return tuple(out) if len(out) > 1 else out[0]

    # -- what goes wrong ----------------------------------------------------------------------------------------------
    def late(self, error: Exception, inner: list[Any], index: int) -> Exception:
        """The error that a synchronisation raises: of the same class, in the operator's words, with place and name."""
        found = self.explained(error, inner)
        text = f"{self.accelerator.place(index)}: {self.name!r} failed: {found}"
        try:
            return type(found)(text)
        except Exception:  # a class that is not made of one text
            return RuntimeError(text)

    def explained(self, error: Exception, inner: list[Any]) -> Exception:
        """What the record's rule or check says of the same arguments on the reference, or the kernel's own error."""
        parameters = self.record.schema.parameters
        try:
            arguments = [
                self.accelerator.on_reference(value, p.kind) for p, value in zip(parameters, inner, strict=True)
            ]
            self.record.rule(self.record, tuple(arguments))
            if self.record.check is not None:
                self.record.check(*arguments)
        except Exception as found:
            return found
        return error


def listed(result: Any) -> list[Any]:
    """The results of a kernel, of which most have one."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def first_array(args: Sequence[Any]) -> FakeArray:
    """The first array among a kernel's arguments. ``TypeError`` where there is none."""
    for value in args:
        if type(value) is FakeArray:
            return value
        if isinstance(value, (list, tuple)) and any(type(part) is FakeArray for part in value):
            return first_array(value)
    raise TypeError(f"a kernel of a fake device takes arrays of that device, got {', '.join(map(_kind, args))}")


def _kind(value: object) -> str:
    return type(value).__name__


def view_of(kernel: Callable[..., Any], dtype_of: Callable[[Any], dtype]) -> Kernel:
    """A kernel of the reference that only looks at memory in another way: nothing is computed, nothing put off."""

    def view(array: FakeArray, *args: Any) -> FakeArray:
        hidden = kernel(array._hidden, *args)
        return FakeArray(array._block, hidden, tuple(hidden.shape), dtype_of(hidden))

    return view

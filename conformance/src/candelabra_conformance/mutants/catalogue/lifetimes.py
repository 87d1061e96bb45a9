"""Faults that time shows: results that are computed late, buffers that are reused, memory that is freed too early."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel
from candelabra.dtypes import dtype

from candelabra_conformance.mutants.mirror import Image, Mirror, MirrorMemory, first_image
from candelabra_conformance.mutants.mutant import array_of, breaks_backend, payload_of
from candelabra_conformance.numpy_dtypes import host_dtype

Shape = tuple[int, ...]
STAGED: Final = 1 << 16
"""The size of a staging buffer in bytes."""


# -- results that are computed when they are read ----------------------------------------------------------------------
class _Late(Image):
    """A payload that is computed at its first use."""

    __slots__ = ("args", "found", "kernel")

    def __init__(self, out: Image, kernel: Kernel, args: tuple[Any, ...]) -> None:
        self.found: Any = None
        self.kernel, self.args = kernel, args
        self.index, self.memory, self.shape = out.index, out.memory, out.shape

    @property
    def inner(self) -> Any:
        """Compute the value, with the operands as they are now."""
        if self.found is None:
            self.found = self.kernel(*self.args).inner
        return self.found


class _Lazy(Mirror):
    """Kernels whose results are computed when they are read, without a snapshot of the operands."""

    late: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for operator in self.late:
            self.table[operator] = self._later(self.table[operator])
            self.table.pop(operator + "_", None)

    def _later(self, right: Kernel) -> Kernel:
        return lambda *args: _Late(right(*args), right, args)


@breaks_backend("exp", caught_by="exp/overwritten/*")
class UnaryResultsAreComputedLate(_Lazy):
    """A unary function is computed when its result is read, from what its operand holds by then."""

    late = ("exp",)


@breaks_backend("sub", "mul", caught_by="sub/overwritten/* mul/overwritten/*")
class BinaryResultsAreComputedLate(_Lazy):
    """An arithmetic operator is computed when its result is read, from what its operands hold by then."""

    late = ("sub", "mul")


@breaks_backend("sum", "amax", caught_by="*/overwritten/*")
class ReductionsAreComputedLate(_Lazy):
    """A reduction is computed when its result is read, from what its operand holds by then."""

    late = ("sum", "amax")


@breaks_backend("matmul", caught_by="matmul/overwritten/*")
class ProductsAreComputedLate(_Lazy):
    """A product of matrices is computed when its result is read, from what its operands hold by then."""

    late = ("matmul",)


@breaks_backend("index_select", "gather", caught_by="*/overwritten/*")
class GatheredValuesAreReadLate(_Lazy):
    """Elements are gathered when the result is read."""

    late = ("index_select", "gather")


# -- results that share a pool ----------------------------------------------------------------------------------------
class _Pooled(Mirror):
    """Kernels that give a fixed number of buffers in turn to the results of each size."""

    pooled: tuple[str, ...] = ()
    size = 256

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pool: dict[Any, list[Image]] = {}
        self.turn: dict[Any, int] = {}
        for operator in self.pooled:
            self.table[operator] = self._in_turn(self.table[operator])
            self.table.pop(operator + "_", None)

    def _in_turn(self, right: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            out = right(*args)
            key = out.index, out.shape, self.dtype_of(out)
            pool = self.pool.setdefault(key, [])
            if len(pool) < self.size:
                pool.append(out)
                return Image(out.inner, out.index, out.memory)
            self.turn[key] = place = (self.turn.get(key, -1) + 1) % self.size
            self.reference.copy_(pool[place].inner, out.inner)
            return Image(pool[place].inner, out.index, pool[place].memory)

        return run


@breaks_backend("exp", "neg", caught_by="*/alive/*")
class UnaryResultsTakeTurns(_Pooled):
    """The results of unary functions use 256 buffers in turn."""

    pooled = ("exp", "neg")


@breaks_backend("sum", "matmul", caught_by="*/alive/*")
class OtherResultsTakeTurns(_Pooled):
    """The results of reductions and products use 512 buffers in turn."""

    pooled = ("sum", "matmul")
    size = 512


@breaks_backend("add", caught_by="device/alive* add/alive/*")
class SumsTakeTurns(_Pooled):
    """The results of additions use 900 buffers in turn."""

    pooled = ("add",)
    size = 900


# -- buffers of the host ----------------------------------------------------------------------------------------------
@breaks_backend(caught_by="device/handed-over*")
class LargeBuffersAreKept(Mirror):
    """``from_host`` keeps the caller's memory beyond 64 KiB instead of copying it."""

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """Create an array over the caller's bytes if there are many."""
        if len(data) <= STAGED:
            return super().from_host(index, data, shape, dtype)
        array = np.frombuffer(data, host_dtype(dtype)).reshape(shape)
        return self.wrapped(self.reference.from_dlpack(array, 0, False), index)


@breaks_backend(caught_by="device/handed-over*")
class TwoUploadsShareAStage(Mirror):
    """A large upload is complete only when the next one begins: the next one overwrites what is still staged."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.last: Image | None = None

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """Copy the data, and also over the end of the preceding large upload of the same shape."""
        made: Image = super().from_host(index, data, shape, dtype)
        if len(data) > STAGED:
            last, self.last = self.last, made
            if last is not None and last.shape == made.shape and self.dtype_of(last) is dtype:
                mixed = array_of(self, last).reshape(-1).view(np.uint8)
                mixed[-5:] = np.frombuffer(data, np.uint8)[-5:]
                self.copy_(last, super().from_host(index, memoryview(mixed.data), shape, dtype))
        return made


# -- freed memory -----------------------------------------------------------------------------------------------------
class _Poisoned(MirrorMemory):
    """Memory whose content is destroyed when its last payload is deleted."""

    __slots__ = ("content",)

    def __init__(self, counted: dict[int, int], size: int, content: Any) -> None:
        super().__init__(counted, size)
        self.content = content

    def __del__(self) -> None:
        super().__del__()
        self.content[...] = 0xA5


@breaks_backend(caught_by="device/dlpack-lifetime*")
class CapsulesDoNotKeepMemory(Mirror):
    """A DLPack capsule does not keep its memory: it is reused when the tensor is gone."""

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """Copy into memory that is destroyed with its payload."""
        array = np.frombuffer(data, host_dtype(dtype)).reshape(shape).copy()
        inner = self.reference.from_dlpack(array, 0, False) if array.size and dtype.name != "bfloat16" else None
        if inner is None:
            return super().from_host(index, data, shape, dtype)
        flat = array.reshape(-1).view(np.uint8)
        return Image(inner, index, _Poisoned(self.counted[index], flat.size, flat))


# -- another device of the type ---------------------------------------------------------------------------------------
class _OfTheFirst(Mirror):
    """Kernels that serve the first device only."""

    wrong: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for operator in self.wrong:
            self.table[operator] = self._on_the_first(self.table[operator])

    def _on_the_first(self, right: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            out = right(*args)
            image = first_image(args)
            if image is None or image.index == 0 or not isinstance(out, Image):
                return out
            return self.otherwise(out)

        return run

    def otherwise(self, out: Image) -> Image:
        """Return the result for another device than the first."""
        return payload_of(self, np.zeros_like(array_of(self, out)), out.index)


@breaks_backend("exp", "sub", "matmul", caught_by="*/indices/*")
class OtherDevicesGetZeros(_OfTheFirst):
    """A kernel that was compiled for the first device computes nothing on another one."""

    wrong = ("exp", "sub", "matmul")


@breaks_backend("sum", "cumsum", caught_by="*/indices/*")
class ResultsAreOnTheFirstDevice(_OfTheFirst):
    """A kernel allocates its result on the first device, whatever the device of its operands."""

    wrong = ("sum", "cumsum")

    def otherwise(self, out: Image) -> Image:
        """Return the result in memory of the first device."""
        return payload_of(self, array_of(self, out), 0)


@breaks_backend(caught_by="device/indices*")
class OtherDevicesCopyShortly(Mirror):
    """A copy from the host to another device than the first leaves out the last element."""

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """Set the last element to 0 on other devices."""
        content = np.frombuffer(data, np.uint8).copy()
        content[content.size - dtype.itemsize * bool(index) :] = 0
        return super().from_host(index, memoryview(content.data), shape, dtype)

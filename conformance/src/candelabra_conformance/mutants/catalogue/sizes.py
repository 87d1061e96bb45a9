"""Faults that only large inputs show, computed for each family of kernels: a grid, buffer or counter is too small."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import Array, HostKernel, breaks, breaks_backend

GRID: Final = 65_535
"""The largest number of blocks of a grid's second and third dim."""
ROWS: Final = (
    "sum", "amax", "argmax", "all", "any", "mean", "sort", "argsort", "cumsum", "cummax", "softmax",
    "log_softmax", "matmul", "cat", "tril", "flip", "conv", "max_pool", "sum_pool", "normalize", "fft_c2c",
    "linalg_cholesky_ex", "add", "where", "lt", "topk",
)  # fmt: skip
"""Kernels that compute one block per row, of each family."""
BLOCKS: Final = {
    1 << 18: ("gather", "index_select", "index", "nonzero", "sort", "random_uniform", "random_normal",
              "random_permutation", "index_put", "scatter_src"),
    1 << 20: ("cumsum", "cumprod", "cummax", "full", "arange", "eye", "cast", "add", "eq"),
    1 << 24: ("bitwise_not", "clone"),
}  # fmt: skip
"""``{number of elements that a kernel computes at most: kernels}``: results of two passes of 256 or 1,024 blocks of
1,024, and a grid of 65,536 blocks of 256."""


def _changed(out: Any, change: Any) -> Any:
    return tuple(change(np.array(o)) for o in out) if isinstance(out, tuple) else change(np.array(out))


def _without_rows(right: Kernel, *args: Any) -> Any:
    """Rows beyond 65,535, the largest grid dimension, are not computed."""

    def cut(out: Array) -> Array:
        if out.ndim and out.shape[0] > GRID:
            out[GRID:] = 0
        return out

    return _changed(right(*args), cut)


def _without_end(limit: int) -> HostKernel:
    def cut(out: Array) -> Array:
        flat = out.reshape(-1)
        flat[limit:] = 0
        return flat.reshape(out.shape)

    def kernel(right: Kernel, *args: Any) -> Any:
        return _changed(right(*args), cut)

    kernel.__doc__ = f"Elements of a result beyond {limit:,}, the most that all blocks together have, are not computed."
    kernel.__module__ = __name__
    return kernel


def _list_by_family() -> None:
    """Add a mutant for each limit and kernel."""
    for operator in ROWS:
        breaks(operator, caught_by=f"{operator}/sizes/*", name=f"{operator}-ends-at-65535-rows")(_without_rows)
    for limit, operators in BLOCKS.items():
        for operator in operators:
            name = f"{operator}-ends-at-{limit}-elements"
            breaks(operator, caught_by=f"{operator}/sizes/*", name=name)(_without_end(limit))


_list_by_family()


# -- counters ---------------------------------------------------------------------------------------------------------
def _wrapped(total: Any, bits: int) -> Any:
    return np.asarray(total) & ((1 << bits) - 1)


def _counts_in(bits: int, only: str) -> HostKernel:
    def kernel(right: Kernel, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
        out = right(x, dim, keepdim, dtype)
        narrow = x.dtype.itemsize * 8 <= bits and out.dtype == np.int64
        return _wrapped(out, bits) if narrow and np.asarray(out).min(initial=0) >= 0 else out

    kernel.__doc__ = f"Sums of {only} are counted in {bits} bits."
    kernel.__module__ = __name__
    return kernel


for _bits, _kind, _words in ((8, "b", "bools"), (16, "b", "bools"), (16, "u", "bytes"), (31, "i", "short integers")):
    breaks("sum", only=_kind, caught_by="sum/sizes/*", name=f"sums-of-{_words.replace(' ', '-')}-have-{_bits}-bits")(
        _counts_in(_bits, _words)
    )


@breaks("cumsum", only="bu", caught_by="cumsum/sizes/*")
def running_counts_have_16_bits(right: Kernel, x: Any, dim: int, dtype: Any) -> Any:
    """Running sums of bools and bytes are kept in 16 bits."""
    out = right(x, dim, dtype)
    return _wrapped(out, 16) if out.dtype == np.int64 and x.dtype.itemsize == 1 else out


@breaks("scatter_add", "index_add", only="u", caught_by="scatter_add/sizes/* index_add/sizes/*")
def atomic_bytes_carry_into_their_neighbours(
    right: Kernel, x: Any, dim: int, index: Any, source: Any, *rest: Any
) -> Any:
    """Bytes are added as parts of 32-bit words, so a carry changes the next byte."""
    out = np.array(right(x, dim, index, source, *rest))
    if x.dtype != np.uint8 or x.ndim != 1:
        return out
    whole = x.astype(np.int64)
    np.add.at(whole, index, source.astype(np.int64))
    out[1:] += (whole >> 8)[:-1].astype(np.uint8)
    return out


# -- indices ----------------------------------------------------------------------------------------------------------
def _only_first_block_checked(right: Kernel, *args: Any) -> Any:
    """Only the first 65,536 indices are checked; later ones are clipped."""

    def clipped(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(clipped(v) for v in value)
        if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.size <= GRID + 1:
            return value
        size = args[0].shape[0]
        flat = value.reshape(-1)
        flat[GRID + 1 :] = np.clip(flat[GRID + 1 :], 0, size - 1)
        return flat.reshape(value.shape)

    return right(args[0], *(clipped(a) for a in args[1:]))


for _operator in (
    "gather", "index_select", "index", "index_put", "scatter_src", "scatter_add", "scatter_extreme", "index_add",
    "embedding",
):  # fmt: skip
    breaks(_operator, caught_by=f"{_operator}/bounds/*", name=f"{_operator}-checks-65536-indices")(
        _only_first_block_checked
    )


# -- copies -----------------------------------------------------------------------------------------------------------
def _without_tail(data: memoryview, buffer: int) -> memoryview:
    """Return the bytes with those after the last full buffer lost, if there is one."""
    content = bytearray(data)
    if len(content) > buffer and len(content) % buffer:
        content[-(len(content) % buffer) :] = bytes(len(content) % buffer)
    return memoryview(bytes(content))


@breaks_backend(caught_by="device/long-copies/*")
class CopiesToTheHostEndWithFullBuffers(Mirror):
    """Copies to the host go through a buffer of 64 KiB, and its last, incomplete filling is lost."""

    def to_host(self, payload: Any) -> memoryview:
        """Return the bytes of full buffers."""
        return _without_tail(super().to_host(payload), 1 << 16)


@breaks_backend(caught_by="device/long-copies/*")
class CopiesFromTheHostEndWithFullBuffers(Mirror):
    """Copies from the host go through a buffer of 1 MiB, and its last, incomplete filling is lost."""

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: Any) -> Any:
        """Copy full buffers."""
        return super().from_host(index, _without_tail(data, 1 << 20), shape, dtype)


@breaks_backend(caught_by="device/long-copies/*")
class CopiesHaveOddTails(Mirror):
    """Copies within the device move words of 4 bytes, and the last bytes of more than 64 KiB are not copied."""

    def copy_(self, destination: Any, source: Any) -> Any:
        """Copy, and clear the last bytes of an odd number."""
        result = super().copy_(destination, source)
        size = self.dtype_of(destination).itemsize
        count = int(np.prod(destination.shape))
        if size == 1 and count > 1 << 16 and count % 4 and len(destination.shape) == 1:
            strides, offset = self.layout(destination)
            zeros = self.from_host(destination.index, memoryview(bytes(1)), (1,), self.dtype_of(destination))
            last = self.restride(destination, (1,), strides, offset + (count - 1) * strides[0])
            super().copy_(last, zeros)
        return result

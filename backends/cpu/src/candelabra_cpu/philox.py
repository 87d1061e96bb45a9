"""The random numbers of the CPU backend, as pure functions of ``(seed, offset)``.

Every function reads the Philox 4x64-10 counters from ``offset + 1`` to ``offset + counters(kind, n, dtype)`` under the
key ``(seed, 0)`` and nothing else. The same arguments give the same bits on every device. The specification is
``docs/notes/0001-random-numbers.md``; docstrings refer to its sections.

Sources: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11;
the generator itself and the two uniform conversions are ``numpy.random``'s.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from candelabra_cpu.box_muller import cos_sin, negative_log

__all__ = [
    "bernoulli",
    "exponential",
    "integers",
    "multinomial",
    "normal",
    "permutation",
    "uniform",
    "words32",
    "words64",
]

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]
Shape = int | tuple[int, ...]

_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_LIMIT = 1 << 64
_CHUNK = 1 << 14
"""Values that are computed together. The temporaries of a draw do not grow with its size."""
# name of a dtype -> bits per value of the floating kinds (specification, section 3)
_BITS = {"float16": 32, "bfloat16": 32, "float32": 32, "float64": 64, "complex64": 64, "complex128": 128}


class _Stream(threading.local):
    """A bit generator of each thread, positioned before each draw. Creating a generator takes ten times as long.

    The first use imports ``numpy.random``, which takes as long as ten modules of this package.
    """

    def __init__(self) -> None:
        self.bits = np.random.Philox(0)
        self.generator = np.random.Generator(self.bits)
        self.counter, self.key = [0, 0, 0, 0], [0, 0]
        counters = {"counter": self.counter, "key": self.key}
        self.state: Any = {"bit_generator": "Philox", "state": counters, "buffer": [0, 0, 0, 0], "buffer_pos": 4}
        self.state |= {"has_uint32": 0, "uinteger": 0}
        self.next: tuple[int, int] | None = None
        """The seed and the offset where a draw of whole counters ended: there is no need to position the next one."""


@cache
def _stream() -> _Stream:
    return _Stream()


def _seek(seed: int, offset: int, count: int) -> _Stream:
    """Return this thread's stream, positioned at the first word of counter ``offset + 1``; section 2."""
    if not 0 <= seed < _LIMIT:
        raise ValueError(f"seed: expected 0 <= seed < 2**64, got {seed}")
    if not 0 <= offset < _LIMIT - (count + 3) // 4:
        raise ValueError(f"offset {offset}: drawing {count} words would pass the last counter, 2**64 - 1; reseed")
    stream = _stream()
    if stream.next != (seed, offset):
        stream.key[0], stream.counter[0] = seed, offset
        stream.bits.state = stream.state
    stream.next = None
    return stream


def _in_chunks(n: int, dtype: Any, offset: int, per_counter: int, draw: Callable[[int, int], Array]) -> Array:
    """Return ``n`` values of ``draw(offset, count)``, which takes a counter for ``per_counter`` values."""
    out = np.empty(n, dtype)
    for start in range(0, n, _CHUNK):
        count = min(_CHUNK, n - start)
        out[start : start + count] = draw(offset + start // per_counter, count)
    return out


def _size(shape: Shape) -> int:
    """Return the number of elements of ``shape``."""
    if isinstance(shape, int):
        n = least = shape
    else:
        n, least = math.prod(shape), min(shape) if shape else 0
    if least < 0:
        raise ValueError(f"shape: expected sizes >= 0, got {shape}")
    return n


def _bits(kind: str, dtype: np.dtype[Any]) -> int:
    """Return the bits per value of a floating kind; section 3."""
    bits = _BITS.get(dtype.type.__name__)
    if bits is None or (dtype.kind == "c" and kind in ("exponential", "bernoulli")):
        allowed = [name for name in _BITS if kind in ("uniform", "normal") or "complex" not in name]
        raise ValueError(f"{kind}: dtype {dtype} is not supported; expected one of {', '.join(allowed)}")
    return bits


def words64(seed: int, offset: int, n: int) -> Words:
    """Return the first ``n`` 64-bit words from counter ``offset + 1`` on; uint64, shape ``(n,)``; section 2."""
    words: Words = _seek(seed, offset, n).bits.random_raw(n)
    return words


def words32(seed: int, offset: int, n: int) -> npt.NDArray[np.uint32]:
    """Return the first ``n`` 32-bit words, the low half of each 64-bit word first; uint32, shape ``(n,)``."""
    words = words64(seed, offset, (n + 1) // 2)
    return words.astype("<u8", copy=False).view("<u4")[:n].astype(np.uint32, copy=False)


def uniform(seed: int, offset: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """Uniform numbers in [0, 1): multiples of 2**-8 (bfloat16), 2**-11, 2**-24 or 2**-53; section 4.

    The real and the imaginary part of complex numbers are independent.
    """
    dtype, n = np.dtype(dtype), _size(shape)
    if dtype.char in "fd":
        bits = 32 if dtype.char == "f" else 64
        kind: Any = dtype.type
        stream = _seek(seed, offset, -(-n * bits // 64))
        out = stream.generator.random(shape, kind)
        # Of the stream that has drawn: if two threads draw first at the same time, _stream() may return another now.
        stream.next = (seed, offset + n * bits // 256) if n * bits % 256 == 0 else None
        return out
    bits = _bits("uniform", dtype)
    if dtype.kind == "c":
        return uniform(seed, offset, 2 * n, np.float32 if bits == 64 else np.float64).view(dtype).reshape(shape)
    keep = 11 if dtype.kind == "f" else 8
    value = (words32(seed, offset, n) >> np.uint32(32 - keep)).astype(np.float32)
    return (value * np.float32(2.0**-keep)).astype(dtype).reshape(shape)


def bernoulli(seed: int, offset: int, p: float | Array, shape: Shape) -> npt.NDArray[np.bool_]:
    """True with probability ``p``, broadcast to ``shape``; bool; section 6.

    A float64 array ``p`` is compared with 53-bit uniform numbers, any other ``p`` with 32-bit ones. NaN gives False.
    """
    n = _size(shape)
    if isinstance(p, np.ndarray):
        if _bits("bernoulli", p.dtype) == 64:
            return np.asarray(uniform(seed, offset, shape, np.float64) < p)
        p = p.astype(np.float64)
    return np.asarray(words32(seed, offset, n).reshape(shape) * 2.0**-32 < p)


def _multiply_high(a: Words, b: Words | np.uint64) -> Words:
    """The high 64 bits of the 128-bit products ``a * b``, by products of 32-bit halves."""
    a_low, a_high, b_low, b_high = a & _LOW32, a >> _32, b & _LOW32, b >> _32
    middle = a_high * b_low + ((a_low * b_low) >> _32)  # at most (2**32 - 1)**2 + 2**32 - 2: no overflow
    cross = a_low * b_high + (middle & _LOW32)
    high: Words = a_high * b_high + (middle >> _32) + (cross >> _32)
    return high


def _bounded_wide(words: Words, span: int) -> Words:
    """Return integers in ``[0, span)`` for ``span <= 2**64``, ``floor((first * 2**64 + second) * span / 2**128)``."""
    first, second = words[0::2], words[1::2]
    if span == _LIMIT:
        return first
    factor = np.uint64(span)
    low = first * factor
    carry = low + _multiply_high(second, factor) < low
    return _multiply_high(first, factor) + carry


def integers(seed: int, offset: int, low: int, high: int, shape: Shape, dtype: npt.DTypeLike = np.int64) -> Array:
    """Uniform integers in ``[low, high)`` by multiply-high, of any integer dtype or bool; section 5.

    Raises ``ValueError`` if the range is empty or exceeds that of the dtype.
    """
    dtype, n, span = np.dtype(dtype), _size(shape), high - low
    if dtype.kind not in "iub":
        raise ValueError(f"integers: expected an integer dtype or bool, got {dtype}")
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
    least, most = (-1 << bits - 1, (1 << bits - 1) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    if span < 1:
        raise ValueError(f"integers: expected low < high, got low={low}, high={high}")
    if low < least or high - 1 > most:
        raise ValueError(f"integers: {dtype} holds {least} to {most}, got low={low}, high={high}")
    wide = span > 1 << 32

    def draw(offset: int, count: int) -> Array:
        words = words64(seed, offset, 2 * count if wide else count)
        value = _bounded_wide(words, span) if wide else _multiply_high(words, np.uint64(span))
        value = value + np.uint64(low % _LIMIT)  # modulo 2**64: the two's complement of a negative result
        return value.view(np.int64) if dtype.kind == "i" else value

    return _in_chunks(n, dtype, offset, 2 if wide else 4, draw).reshape(shape)


def normal(seed: int, offset: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """Standard normal numbers by the Box-Muller method in float64, rounded to ``dtype``; section 7.

    Complex numbers have variance 1: real and imaginary parts are independent with variance 1/2.
    """
    dtype, n = np.dtype(dtype), _size(shape)
    bits, is_complex = _bits("normal", dtype), dtype.kind == "c"
    wide = bits == (128 if is_complex else 64)  # two words per pair of real numbers, not one

    def draw(offset: int, count: int) -> Array:
        pairs = (count + 1) // 2
        if wide:
            words = words64(seed, offset, 2 * pairs)
            radius, angle = words[0::2] >> np.uint64(12), words[1::2] & np.uint64(_LIMIT - 2048)
        else:
            words = words64(seed, offset, pairs)
            radius, angle = words & _LOW32, words & ~_LOW32
        length = np.sqrt(negative_log(radius, 52 if wide else 32) * (1 if is_complex else 2))
        cosine, sine = cos_sin(angle)
        return np.stack([length * cosine, length * sine], axis=1).reshape(-1)[:count]

    real = np.float64 if wide else np.float32
    out = _in_chunks(2 * n if is_complex else n, real, offset, 4 if wide else 8, draw)
    return (out.view(dtype) if is_complex else out.astype(dtype, copy=False)).reshape(shape)


def exponential(seed: int, offset: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """Exponential numbers of rate 1, ``-ln(u)`` with u in (0, 1), computed in float64 and rounded; section 8."""
    dtype, n = np.dtype(dtype), _size(shape)
    wide = _bits("exponential", dtype) == 64

    def draw(offset: int, count: int) -> Array:
        if wide:
            return negative_log(words64(seed, offset, count) >> np.uint64(12), 52)
        return negative_log(words32(seed, offset, count), 32)

    out = _in_chunks(n, np.float64 if wide else np.float32, offset, 4 if wide else 8, draw)
    return out.astype(dtype, copy=False).reshape(shape)


def permutation(seed: int, offset: int, n: int, dtype: npt.DTypeLike = np.int64) -> Array:
    """A permutation of ``0 … n - 1``, shape ``(n,)``: the stable order of ``n`` random words; section 9."""
    keys = words64(seed, offset, _size(n))
    order = np.argsort(keys)
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(keys, kind="stable")  # which takes five times as long
    return order.astype(dtype, copy=False)


def multinomial(seed: int, offset: int, weights: Array, num_samples: int, replacement: bool) -> npt.NDArray[np.int64]:
    """Indices drawn from each row of ``weights``: floating, shape ``(n,)`` or ``(rows, n)``, of any positive sum.

    Samples with replacement invert an integer distribution function; those without win an exponential race; section 10.
    Returns int64 of shape ``(num_samples,)`` or ``(rows, num_samples)``. Raises ``ValueError`` if a weight is negative,
    infinite or NaN, if a row has no positive weight, or, without replacement, fewer positive weights than samples.
    """
    if weights.ndim not in (1, 2) or weights.shape[-1] == 0 or num_samples < 1:
        raise ValueError(
            "multinomial: expected weights of shape (n,) or (rows, n) with n >= 1 and num_samples >= 1, "
            f"got shape {weights.shape} and num_samples={num_samples}"
        )
    table = np.atleast_2d(weights).astype(np.float64)
    rows, n = table.shape
    if not (np.isfinite(table) & (table >= 0)).all():
        raise ValueError("multinomial: expected finite weights >= 0, got one that is negative, infinite or NaN")
    largest = table.max(axis=1, keepdims=True)
    if not (largest > 0).all():
        raise ValueError("multinomial: expected a positive weight in each row, got a row of zeros")
    exponent = np.frexp(largest)[1]
    shape = (num_samples,) if weights.ndim == 1 else (rows, num_samples)
    if replacement:
        scaled = np.ldexp(table, 63 - n.bit_length() - exponent).astype(np.uint64)  # a row sums to less than 2**63
        cumulative = np.cumsum(scaled, axis=1, dtype=np.uint64)
        points = _multiply_high(
            words64(seed, offset, rows * num_samples).reshape(rows, num_samples), cumulative[:, -1:]
        )
        picks = [
            np.searchsorted(distribution, row, side="right")
            for distribution, row in zip(cumulative, points, strict=True)
        ]
        return np.array(picks, np.int64).reshape(shape)
    scaled = np.ldexp(table, 1 - exponent)
    positive = scaled >= 2.0**-1000
    if (positive.sum(axis=1) < num_samples).any():
        raise ValueError(f"multinomial: expected at least num_samples={num_samples} positive weights in each row")
    race = np.full((rows, n), np.inf)
    np.divide(exponential(seed, offset, (rows, n), np.float64), scaled, out=race, where=positive)
    return np.argsort(race, axis=1, kind="stable")[:, :num_samples].astype(np.int64, copy=False).reshape(shape)

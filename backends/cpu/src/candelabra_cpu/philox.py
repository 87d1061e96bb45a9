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
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from candelabra_cpu.box_muller import ROWS, cos_sin, cos_sin_scalar, negative_log, negative_log_scalar
from candelabra_cpu.parallel import parallel_for

__all__ = [
    "bernoulli",
    "counters",
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
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Shape = int | tuple[int, ...]

_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_LIMIT = 1 << 64
_CHUNK = 16384  # words per chunk: the scratch arrays (128 KiB each) stay in a core's cache
_UNIFORM_CHUNK = 1 << 16  # uniform numbers per chunk
_SCALAR_LIMIT = 32  # up to this many values or pairs, plain Python is faster than NumPy calls

# dtype -> uniform numbers per word, and its name for NumPy's generators
_PER_WORD: dict[Any, tuple[int, Any]] = {np.dtype(np.float32): (2, np.float32), np.dtype(np.float64): (1, np.float64)}
# name of a dtype -> bits per value of the floating kinds (specification, section 3)
_BITS = {"float16": 32, "bfloat16": 32, "float32": 32, "float64": 64, "complex64": 64, "complex128": 128}


class _Stream:
    """A reusable bit generator that is positioned before each draw. Creating a generator takes ten times as long."""

    __slots__ = ("bits", "counter", "generator", "key", "state")

    def __init__(self) -> None:
        self.bits = np.random.Philox(0)
        self.generator = np.random.Generator(self.bits)
        self.counter, self.key = [0, 0, 0, 0], [0, 0]
        counters = {"counter": self.counter, "key": self.key}
        self.state: Any = {"bit_generator": "Philox", "state": counters, "buffer": [0, 0, 0, 0], "buffer_pos": 4}
        self.state |= {"has_uint32": 0, "uinteger": 0}


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.stream = _Stream()
        self.workspace: Floats | None = None

    def scratch(self, n: int) -> Floats:
        """Return the workspace of the Box-Muller steps for ``n`` words; it is reused by later draws."""
        if self.workspace is None or self.workspace.shape[1] < n:
            self.workspace = np.empty((ROWS + 2, n))  # two more rows for the words
        return self.workspace


_thread = _ThreadState()


def _seek(seed: int, offset: int, count: int) -> _Stream:
    """Return this thread's stream, positioned at the first word of counter ``offset + 1``; section 2."""
    if not 0 <= seed < _LIMIT:
        raise ValueError(f"seed: expected 0 <= seed < 2**64, got {seed}")
    if not 0 <= offset < _LIMIT - (count + 3) // 4:
        raise ValueError(f"offset {offset}: drawing {count} words would pass the last counter, 2**64 - 1; reseed")
    stream = _thread.stream
    stream.key[0], stream.counter[0] = seed, offset
    stream.bits.state = stream.state
    return stream


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


def counters(kind: str, n: int, dtype: npt.DTypeLike, span: int = 1) -> int:
    """Return the number of counters that ``n`` values of ``kind`` use, as ``counters_used`` in the core computes it.

    ``kind`` is the name of a function of this module. ``dtype`` is that of the result, or of the probability for
    ``"bernoulli"``. ``span`` is ``high - low`` for ``"integers"``. For ``"multinomial"``, ``n`` is the number of
    samples with replacement, and the number of weights without.
    """
    if kind == "integers":
        bits = 64 if span <= 1 << 32 else 128
    elif kind in ("permutation", "multinomial"):
        bits = 64
    else:
        bits = _bits(kind, np.dtype(dtype))
    return -(-n * bits // 256)


def words64(seed: int, offset: int, n: int) -> Words:
    """Return the first ``n`` 64-bit words from counter ``offset + 1`` on; uint64, shape ``(n,)``; section 2."""
    words: Words = _seek(seed, offset, n).bits.random_raw(n)
    return words


def _for_each_chunk(n: int, step: int, fill: Callable[[int, int], None]) -> None:
    """Call ``fill(start, count)`` for chunks of at most ``step`` that cover ``range(n)``, on several threads."""

    def chunks(first: int, last: int) -> None:
        for start in range(first * step, min(last * step, n), step):
            fill(start, min(step, n - start))

    parallel_for(-(-n // step), 4 * n, chunks)


def words32(seed: int, offset: int, n: int) -> npt.NDArray[np.uint32]:
    """Return the first ``n`` 32-bit words, the low half of each 64-bit word first; uint32, shape ``(n,)``."""
    words = words64(seed, offset, (n + 1) // 2)
    return words.astype("<u8", copy=False).view("<u4")[:n].astype(np.uint32, copy=False)


def uniform(seed: int, offset: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """Uniform numbers in [0, 1): multiples of 2**-8 (bfloat16), 2**-11, 2**-24 or 2**-53; section 4.

    The real and the imaginary part of complex numbers are independent.
    """
    dtype, n = np.dtype(dtype), _size(shape)
    known = _PER_WORD.get(dtype)
    if known is not None:
        per_word, kind = known
        if n < 2 * _UNIFORM_CHUNK:
            return _seek(seed, offset, -(-n // per_word)).generator.random(shape, kind)
        out = np.empty(n, dtype)

        def fill(start: int, count: int) -> None:
            stream = _seek(seed, offset + start // (4 * per_word), -(-count // per_word))
            stream.generator.random(count, kind, out=out[start : start + count])

        _for_each_chunk(n, _UNIFORM_CHUNK, fill)
        return out.reshape(shape)
    bits = _bits("uniform", dtype)
    if dtype.kind == "c":
        part = np.float32 if bits == 64 else np.float64
        return uniform(seed, offset, 2 * n, part).view(dtype).reshape(shape)
    keep = 11 if dtype.kind == "f" else 8
    value = (words32(seed, offset, n) >> np.uint32(32 - keep)).astype(np.float32)
    value *= np.float32(2.0**-keep)
    return value.astype(dtype).reshape(shape)


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


def _bounded(words: Words, span: int) -> Words:
    """Return integers in ``[0, span)`` for ``span <= 2**32``, ``floor(word * span / 2**64)``. Overwrites ``words``."""
    low = words & _LOW32
    low *= np.uint64(span)
    low >>= _32
    words >>= _32
    words *= np.uint64(span)
    words += low
    words >>= _32
    return words


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
    if n <= _SCALAR_LIMIT:
        numbers = words64(seed, offset, 2 * n if wide else n).tolist()
        if wide:
            picks = [(first << 64 | second) * span >> 128 for first, second in zip(*[iter(numbers)] * 2, strict=True)]
        else:
            picks = [word * span >> 64 for word in numbers]
        return np.array([low + pick for pick in picks], dtype).reshape(shape)
    out = np.empty(n, dtype)
    step = _CHUNK // 2 if wide else _CHUNK
    origin = np.uint64(low % _LIMIT)

    def fill(start: int, count: int) -> None:
        if wide:
            value = _bounded_wide(words64(seed, offset + start // 2, 2 * count), span)
        else:
            value = _bounded(words64(seed, offset + start // 4, count), span)
        if low:
            value = value + origin  # modulo 2**64: the two's complement of a negative result
        out[start : start + count] = value.view(np.int64) if dtype.kind == "i" else value

    _for_each_chunk(n, step, fill)
    return out.reshape(shape)


def normal(seed: int, offset: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """Standard normal numbers by the Box-Muller method in float64, rounded to ``dtype``; section 7.

    Complex numbers have variance 1: real and imaginary parts are independent with variance 1/2.
    """
    dtype, n = np.dtype(dtype), _size(shape)
    bits = _bits("normal", dtype)
    is_complex = dtype.kind == "c"
    pairs = n if is_complex else (n + 1) // 2
    wide = bits == 128 if is_complex else bits == 64  # two words per pair, not one
    if pairs <= _SCALAR_LIMIT:
        few = _normal_few(words64(seed, offset, 2 * pairs if wide else pairs), wide, is_complex)
        if dtype in _PER_WORD:
            return np.array(few if n == 2 * pairs else few[:n], dtype).reshape(shape)
        out = np.array(few, np.float64 if wide else np.float32)
    else:
        out = np.empty(2 * pairs, np.float64 if wide else np.float32)

        def fill(start: int, count: int) -> None:
            workspace = _thread.scratch(_CHUNK)
            radius, angle = workspace[ROWS:, :count].view(np.uint64)
            if wide:
                words = words64(seed, offset + start // 2, 2 * count)
                np.right_shift(words[0::2], np.uint64(12), out=radius)
                np.bitwise_and(words[1::2], np.uint64(_LIMIT - 2048), out=angle)
            else:
                words = words64(seed, offset + start // 4, count)
                np.bitwise_and(words, _LOW32, out=radius)
                np.bitwise_and(words, ~_LOW32, out=angle)
            length = negative_log(radius, 52 if wide else 32, workspace)
            if not is_complex:
                length += length
            np.sqrt(length, out=length)
            cosine, sine = cos_sin(angle, workspace)
            part = out[2 * start : 2 * (start + count)]
            cosine *= length
            sine *= length
            part[0::2], part[1::2] = cosine, sine

        _for_each_chunk(pairs, _CHUNK, fill)
    if is_complex:
        return out.view(dtype).reshape(shape)
    return out[:n].astype(dtype, copy=False).reshape(shape)


def _normal_few(words: Words, wide: bool, is_complex: bool) -> list[float]:
    """Compute a few pairs of :func:`normal` one value at a time, without the cost of NumPy calls."""
    numbers = words.tolist()
    values: list[float] = []
    for i in range(0, len(numbers), 2 if wide else 1):
        word = numbers[i]
        if wide:
            length, angle = negative_log_scalar(word >> 12, 52), numbers[i + 1] & (_LIMIT - 2048)
        else:
            length, angle = negative_log_scalar(word & 0xFFFFFFFF, 32), word & 0xFFFFFFFF00000000
        length = sqrt(length if is_complex else length + length)
        cosine, sine = cos_sin_scalar(angle)
        values += (length * cosine, length * sine)
    return values


def exponential(seed: int, offset: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
    """Exponential numbers of rate 1, ``-ln(u)`` with u in (0, 1), computed in float64 and rounded; section 8."""
    dtype, n = np.dtype(dtype), _size(shape)
    wide = _bits("exponential", dtype) == 64
    out = np.empty(n, np.float64 if wide else np.float32)
    draw: Callable[[int, int, int], Array] = words64 if wide else words32
    per_counter, shift, bits = (4, 12, 52) if wide else (8, 0, 32)
    if n <= _SCALAR_LIMIT:
        out[:] = [negative_log_scalar(h >> shift, bits) for h in draw(seed, offset, n).tolist()]
    else:

        def fill(start: int, count: int) -> None:
            h = draw(seed, offset + start // per_counter, count).astype(np.uint64, copy=False)
            if shift:
                h >>= np.uint64(shift)
            out[start : start + count] = negative_log(h, bits, _thread.scratch(_CHUNK))

        _for_each_chunk(n, _CHUNK, fill)
    return out.astype(dtype, copy=False).reshape(shape)


def permutation(seed: int, offset: int, n: int, dtype: npt.DTypeLike = np.int64) -> Array:
    """A permutation of ``0 … n - 1``, shape ``(n,)``: the stable order of ``n`` random words; section 9."""
    return _stable_argsort(words64(seed, offset, _size(n))).astype(dtype, copy=False)


def _stable_argsort(keys: Words) -> npt.NDArray[np.int64]:
    """Return ``argsort(keys, kind="stable")``, three to four times as fast for random keys.

    The low bits of each key are replaced by its index, so that a plain sort, which is vectorised unlike argsort,
    carries the indices along. The few keys that are equal in all other bits are then ordered by the whole key.
    """
    n = keys.size
    if n < 1024:
        return np.argsort(keys, kind="stable")
    index_mask = np.uint64((1 << (n - 1).bit_length()) - 1)
    packed = keys & ~index_mask
    packed |= np.arange(n, dtype=np.uint64)
    packed.sort()
    order = (packed & index_mask).view(np.int64)
    packed &= ~index_mask
    equal = packed[1:] == packed[:-1]
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        candidates = order[tied]  # ties are in ascending order of their common bits: one sort orders all of them
        order[tied] = candidates[np.lexsort((candidates, keys[candidates]))]
    return order


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

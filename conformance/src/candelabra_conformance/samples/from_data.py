"""Samples of tensors from Python values, arrays and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.literals import host_list
from candelabra_conformance.samples.factories import chosen, number
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import HERE, ZERO_DIM, ZERO_SIZE, Fresh, HostArray, Sample, sample


def lists(t: Maker, *shape: int) -> Any:
    """Return nested lists of numbers that the dtype represents."""
    return host_list(t(*shape))


def inferred(t: Maker) -> bool:
    """Return whether the dtype is the default for lists of its numbers."""
    return t.dtype.name in ("bool", "int64", "float32", "complex64")


@inputs("tensor")
def of_values(t: Maker) -> Iterator[Sample]:
    """Yield nested lists and tuples, one number, and arrays, in the inferred dtype and in a requested one."""
    yield sample(lists(t, 2, 3), dtype=t.dtype)
    yield sample((1, 0, 1), dtype=t.dtype, note="of integers")
    if inferred(t):
        yield sample(lists(t, 4))
    yield sample(HostArray(t(2, 3)))
    yield sample(number(t), dtype=t.dtype, kind=ZERO_DIM)
    yield sample([[], []], dtype=t.dtype, kind=ZERO_SIZE)


@mistakes("tensor", "as_tensor", "asarray")
def of_no_values(t: Maker) -> Iterator[Sample]:
    """Yield rows of unequal length, strings, and arguments that are not dtypes."""
    yield sample([[1, 2], [3]], note="rows of unequal length")
    yield sample(["text"], note="text")
    yield sample([1.0], dtype="float32", note="no dtype")


@inputs("as_tensor")
def as_they_are(t: Maker) -> Iterator[Sample]:
    """Yield a tensor, the same with another dtype, an array, and lists."""
    yield sample(t(2, 3), exact=True)
    yield sample(t.of("int64")(3, low=0, high=1), dtype=t.dtype, exact=True)
    yield sample(HostArray(t(2, 3)))
    yield sample(lists(t, 4), t.dtype)
    yield sample(t(), kind=ZERO_DIM, exact=True)


@inputs("asarray")
def shared_or_copied(t: Maker) -> Iterator[Sample]:
    """Yield a tensor, an array on the device, lists, a buffer, and requests of a copy."""
    yield sample(t(2, 3), exact=True)
    yield sample(t(2, 3), copy=True, exact=True, gradient=False)
    yield sample(HostArray(t(2, 3)), device=HERE)
    yield sample(HostArray(t(2, 3)), copy=True, device=HERE)
    yield sample(lists(t, 4), dtype=t.dtype)
    if t.dtype.name == "int32":
        yield sample(Fresh("bytearray(range(8))"), dtype=t.dtype, device=HERE, note="a buffer")


@inputs("from_numpy")
def arrays_themselves(t: Maker) -> Iterator[Sample]:
    """Yield contiguous arrays, strided ones, and ones without elements."""
    yield sample(HostArray(t(2, 3)))
    yield sample(HostArray(t()), kind=ZERO_DIM)
    yield sample(HostArray(t(2, 0)), kind=ZERO_SIZE)


@mistakes("from_numpy")
def no_arrays(t: Maker) -> Iterator[Sample]:
    """Yield a list, strings, and a negative stride."""
    yield sample([1.0], note="a list")
    yield sample(Fresh("np.array(['text'])"), note="texts")
    yield sample(Fresh("np.arange(3)[::-1]"), note="a negative stride")


@inputs("from_dlpack")
def exporters(t: Maker) -> Iterator[Sample]:
    """Yield NumPy's arrays, moved to the device and copied."""
    if t.dtype.name != "bfloat16":  # NumPy does not export it
        yield sample(HostArray(t(2, 3)), device=HERE)
        yield sample(HostArray(t(4)), device=HERE, copy=True)


@mistakes("from_dlpack")
def no_exporters(t: Maker) -> Iterator[Sample]:
    """Yield objects without the protocol."""
    yield sample([1.0], note="a list")


@inputs("frombuffer")
def buffers(t: Maker) -> Iterator[Sample]:
    """Yield a whole buffer, and a part of it."""
    if not (t.is_bool or t.is_complex):
        yield sample(Fresh("bytearray(range(48))"), dtype=t.dtype)
        yield sample(Fresh("bytearray(range(48))"), dtype=t.dtype, count=2, offset=8)


@mistakes("frombuffer")
def no_buffers(t: Maker) -> Iterator[Sample]:
    """Yield objects without a buffer, buffers that are too short, and offsets beyond the end."""
    d = t.of("float32").dtype
    yield sample([1.0], dtype=d, note="a list")
    yield sample(Fresh("bytearray(6)"), dtype=d, note="six bytes")
    yield sample(Fresh("bytearray(8)"), dtype=d, count=3, note="too few")
    yield sample(Fresh("bytearray(8)"), dtype=d, offset=8, note="an offset beyond the end")


@inputs("scalar_tensor")
def one_number(t: Maker) -> Iterator[Sample]:
    """Yield the default dtype and another."""
    yield sample(number(t), **chosen(t)) if not t.is_complex else sample(number(t), dtype=t.dtype)
    yield sample(1, dtype=t.dtype)


@inputs("Tensor.new_tensor")
def of_values_like_another(t: Maker) -> Iterator[Sample]:
    """Yield lists and arrays, in the tensor's dtype and in another."""
    yield sample(t(1), lists(t, 2, 3), gradient=False)
    yield sample(t(1), [1, 0], dtype=t.of("int64").dtype, gradient=False)
    yield sample(t(1), HostArray(t(2, 3)), gradient=False)

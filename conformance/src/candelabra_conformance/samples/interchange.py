"""Samples of methods by which Python and other libraries read a tensor: numbers, arrays, DLPack, copies, pickles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import ZERO_DIM, ZERO_SIZE, Fresh, Sample, sample

ON_HOST = Fresh("cd.from_numpy(np.arange(6, dtype='float32').reshape(2, 3))")
"""A tensor in the host's memory, whatever the device under test."""


# -- numbers ----------------------------------------------------------------------------------------------------------
@inputs("Tensor.__float__", "Tensor.__int__", "Tensor.__trunc__")
def real_numbers(t: Maker) -> Iterator[Sample]:
    """Yield one element, with and without dims."""
    if not t.is_complex:
        yield sample(t(1))
        yield sample(t(1, 1))
        yield sample(t(), kind=ZERO_DIM)


@inputs("Tensor.__floor__", "Tensor.__ceil__")
def rounded_numbers(t: Maker) -> Iterator[Sample]:
    """Yield fractions of both signs, and integers."""
    if t.is_floating:
        yield sample(t.array([2.5]))
        yield sample(t.array(-2.5), kind=ZERO_DIM)
    if not t.is_complex:
        yield sample(t(1))


@inputs("Tensor.__complex__")
def complex_numbers(t: Maker) -> Iterator[Sample]:
    """Yield every dtype."""
    yield sample(t(1))
    yield sample(t(), kind=ZERO_DIM)


@inputs("Tensor.__index__")
def indices(t: Maker) -> Iterator[Sample]:
    """Yield integers and bools."""
    if t.is_integer or t.is_bool:
        yield sample(t(1))
        yield sample(t(), kind=ZERO_DIM)


@mistakes(
    "Tensor.__float__", "Tensor.__int__", "Tensor.__complex__", "Tensor.__index__", "Tensor.__floor__",
    "Tensor.__ceil__", "Tensor.__trunc__",
)  # fmt: skip
def no_number(t: Maker) -> Iterator[Sample]:
    """Yield several elements, and none."""
    yield sample(t(2), note="two")
    yield sample(t(0), note="none")
    if t.operator not in ("Tensor.__complex__", "Tensor.__index__"):
        yield sample(t.of("complex64")(1), note="complex")


@inputs("Tensor.__round__")
def rounded(t: Maker) -> Iterator[Sample]:
    """Yield rounding to integers and to decimals; halves round to even."""
    if t.is_integer:
        yield sample(t(2, 3))
    if t.is_floating:
        yield sample(t(2, 3))
        yield sample(t.array([0.5, 1.5, 2.5, -0.5]), exact=True, gradient=False)
        yield sample(t(4), 1, gradient=False) if t.dtype.itemsize > 2 else sample(t(4), None)
        yield sample(t(), kind=ZERO_DIM)


@inputs("Tensor.__divmod__", "Tensor.__rdivmod__")
def quotients(t: Maker) -> Iterator[Sample]:
    """Yield quotients by tensors and by numbers of both signs that are not close to integers."""
    if t.is_complex or t.is_bool:
        return
    first, second = ([7.5, 8.25, 5.0], [2.0, 3.0, 1.5]) if t.is_floating else ([7, 8, 5], [2, 3, 9])
    signs = [1, -1, 1] if t.dtype.is_signed else [1, 1, 1]
    yield sample(t.array([a * s for a, s in zip(first, signs, strict=True)]), t.array(second), exact=True)
    # The quotient of a number by a divisor of it is at a jump.
    yield sample(t.array(second if t.operator == "Tensor.__divmod__" else [3, 5, 7]), 4, exact=True)


# -- arrays -----------------------------------------------------------------------------------------------------------
@inputs("Tensor.numpy")
def arrays_of_tensors(t: Maker) -> Iterator[Sample]:
    """Yield tensors of any device, with ``force``."""
    yield sample(t(2, 3), force=True, exact=True)
    yield sample(t(), force=True, kind=ZERO_DIM, exact=True)
    yield sample(t(2, 0), force=True, kind=ZERO_SIZE, exact=True)


def of_main(t: Maker) -> bool:
    """Return whether the dtype is the one that is used for samples which do not depend on it."""
    return t.dtype.name == "float32"


@inputs("Tensor.__array__")
def arrays_by_protocol(t: Maker) -> Iterator[Sample]:
    """Yield the tensor's dtype, another dtype, and requests of a copy."""
    if of_main(t):
        yield sample(ON_HOST)
        yield sample(ON_HOST, Fresh("np.dtype('int64')"))
        yield sample(ON_HOST, copy=True)


@mistakes("Tensor.__array__")
def a_cast_without_a_copy(t: Maker) -> Iterator[Sample]:
    """Yield another dtype without a copy."""
    yield sample(ON_HOST, Fresh("np.dtype('int64')"), copy=False, note="no copy")


@inputs("Tensor.__array_interface__")
def addresses(t: Maker) -> Iterator[Sample]:
    """Yield tensors, compared by shape and type of NumPy's protocol."""
    if of_main(t):
        yield sample(ON_HOST, of=lambda interface: (interface["shape"], interface["typestr"]))


@inputs("Tensor.__buffer__")
def buffers(t: Maker) -> Iterator[Sample]:
    """Yield tensors, compared by the elements that are read from the buffer."""
    if of_main(t):
        yield sample(ON_HOST, 0, of=lambda view: (view.shape, view.format, view.tolist()))


@inputs("Tensor.__dlpack__")
def capsules(t: Maker) -> Iterator[Sample]:
    """Yield protocol versions."""
    if of_main(t):
        yield sample(ON_HOST, of=named)
        yield sample(ON_HOST, max_version=(1, 0), of=named)


def named(capsule: Any) -> str:
    """Return the name of a capsule."""
    return repr(capsule).split('"')[1]


@inputs("Tensor.__dlpack_device__")
def devices_by_number(t: Maker) -> Iterator[Sample]:
    """Yield a tensor of the host."""
    if of_main(t):
        yield sample(ON_HOST)


@inputs("Tensor.data_ptr")
def addresses_of_elements(t: Maker) -> Iterator[Sample]:
    """Yield tensors with elements, and without, whose address is 0."""
    if of_main(t):
        yield sample(ON_HOST, of=bool)
        yield sample(t(0), kind=ZERO_SIZE)


@inputs("Tensor.untyped_storage", "Tensor.storage")
def sizes_of_memory(t: Maker) -> Iterator[Sample]:
    """Yield tensors with elements and without. Layouts have memory of other sizes, and differ in nothing else."""
    yield sample(t(2, 3), of=bool)
    yield sample(t(0), of=bool, kind=ZERO_SIZE)


@inputs("Tensor.__array_wrap__")
def results_of_numpy(t: Maker) -> Iterator[Sample]:
    """Yield arrays that functions of NumPy may return, one of bools among them."""
    if of_main(t):
        yield sample(ON_HOST, Fresh("np.arange(3, dtype='int16')"), exact=True)
        yield sample(ON_HOST, Fresh("np.array([True, False])"), None, exact=True)


@inputs("Tensor.share_memory_")
def memory_to_share(t: Maker) -> Iterator[Sample]:
    """Yield tensors with elements and without, which keep their elements."""
    if of_main(t):
        yield sample(ON_HOST, exact=True)


@mistakes("Tensor.share_memory_")
def views_to_share(t: Maker) -> Iterator[Sample]:
    """Yield a view."""
    yield sample(Fresh("cd.ones(3)[1:]"), note="a view")


@inputs("Tensor.is_shared")
def memory_that_is_not_shared(t: Maker) -> Iterator[Sample]:
    """Yield a tensor in ordinary memory."""
    if of_main(t):
        yield sample(ON_HOST)


@inputs("Tensor.pin_memory")
def memory_to_pin(t: Maker) -> Iterator[Sample]:
    """Yield tensors of the host, which are returned as they are."""
    if of_main(t):
        yield sample(ON_HOST, exact=True)
        yield sample(ON_HOST, None, exact=True)


@inputs("Tensor.is_pinned")
def never_pinned(t: Maker) -> Iterator[Sample]:
    """Yield tensors, which are never pinned."""
    yield sample(t(2, 3))


# -- copies and pickles -----------------------------------------------------------------------------------------------
@inputs("Tensor.__deepcopy__")
def deep_copies(t: Maker) -> Iterator[Sample]:
    """Yield an empty memo."""
    yield sample(t(2, 3), Fresh("{}"), gradient=False, exact=True)
    yield sample(t(), Fresh("{}"), gradient=False, kind=ZERO_DIM, exact=True)


@inputs("Tensor.__copy__")
def shallow_copies(t: Maker) -> Iterator[Sample]:
    """Yield tensors, for which a second tensor over the same memory is returned."""
    yield sample(t(2, 3), gradient=False, exact=True)


@inputs("Tensor.__reduce_ex__")
def pickles(t: Maker) -> Iterator[Sample]:
    """Yield protocols; the pickled function is called to compare its result."""
    yield sample(t(2, 3), 4, of=lambda reduced: reduced[0](*reduced[1]), gradient=False)
    yield sample(t(), 2, of=lambda reduced: reduced[0](*reduced[1]), gradient=False, kind=ZERO_DIM)


@inputs("resolve_conj", "resolve_neg")
def nothing_lazy(t: Maker) -> Iterator[Sample]:
    """Yield tensors, for which the tensor itself is returned."""
    yield sample(t(2, 3))
    yield sample(t(), kind=ZERO_DIM)

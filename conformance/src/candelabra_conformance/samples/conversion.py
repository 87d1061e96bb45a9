"""Samples of methods that convert a tensor to another dtype or device, or to Python values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from candelabra.dtypes import BY_NAME, COMPLEX, dtype

from candelabra_conformance.samples.creation import castable, loses_nothing
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import HERE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAMED: Final = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32", "long": "int64",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
"""The methods that are named after a dtype."""


def casts(t: Maker, target: dtype) -> bool:
    """Return whether a cast issues no warning, as a cast of complex numbers to real ones does."""
    return not t.is_complex or target.category == COMPLEX or target.name == "bool"


@inputs(*[f"Tensor.{name}" for name in NAMED])
def to_a_named_dtype(t: Maker) -> Iterator[Sample]:
    """Yield casts from every dtype, and from the method's own."""
    target = BY_NAME[NAMED[t.operator.removeprefix("Tensor.")]]
    if casts(t, target):
        for shape, kind in (((2, 3), "ordinary"), ((), ZERO_DIM), ((0, 2), ZERO_SIZE)):
            values, gradient = castable(t, target, *shape), loses_nothing(t, target)
            yield sample(values, kind=kind, gradient=gradient, exact=True, held=(target,))


@inputs("Tensor.to")
def to_a_dtype_or_a_device(t: Maker) -> Iterator[Sample]:
    """Yield a dtype, a device, both, another tensor, and requests of a copy."""
    for name in ("float32", "float64", "int32"):
        target = BY_NAME[name]
        if casts(t, target):
            gradient = loses_nothing(t, target)
            yield sample(castable(t, target, 2, 3), target, gradient=gradient, exact=True)
            yield sample(castable(t, target, 4), dtype=target, device=HERE, gradient=gradient, exact=True)
    yield sample(t(2, 3), HERE, exact=True)
    yield sample(t(2, 3), t.dtype, False, True, exact=True, note="a copy")
    yield sample(t(2, 3), t(1), exact=True, note="like another tensor")
    yield sample(t(), device=HERE, kind=ZERO_DIM, exact=True)


@mistakes("Tensor.to")
def to_nowhere(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are neither a dtype nor a device nor a tensor."""
    yield sample(t(3), 1.5, note="a number")
    yield sample(t(3), "no such device", note="no such device")
    yield sample(t(3), t.dtype, t.dtype, note="two dtypes")


@inputs("Tensor.type_as")
def like_another(t: Maker) -> Iterator[Sample]:
    """Yield tensors of another dtype and of the same."""
    yield sample(t(2, 3), t(1), exact=True)
    if casts(t, BY_NAME["float32"]):
        other = t.of("float32")(2)
        gradient = loses_nothing(t, BY_NAME["float32"])
        yield sample(t(4), other, gradient=gradient, exact=True)


@inputs("Tensor.to_dense")
def already_dense(t: Maker) -> Iterator[Sample]:
    """Yield tensors and a dtype. Sparse tensors have no array on the device to compare: tests/core/test_sparse.py."""
    yield sample(t(2, 3), exact=True)
    yield sample(t(0, 3), t.dtype, exact=True)


@mistakes("Tensor.sparse_mask")
def dense_mask(t: Maker) -> Iterator[Sample]:
    """Yield a mask that is not sparse."""
    yield sample(t(2, 3), t(2, 3))


@mistakes("Tensor.to_sparse")
def too_many_sparse_dims(t: Maker) -> Iterator[Sample]:
    """Yield a number of sparse dims that the tensor does not have."""
    yield sample(t(2, 3), 3)


@inputs("Tensor.type")
def the_name_of_the_type(t: Maker) -> Iterator[Sample]:
    """Yield calls for the name, and casts to a dtype or to a name."""
    # A name has the device type, unless the tensor is on the host.
    yield sample(t(2, 3), gradient=False, of=lambda name: name.rpartition(".")[2])
    yield sample(t(2, 3), t.dtype, exact=True)
    if casts(t, BY_NAME["float32"]):
        gradient = loses_nothing(t, BY_NAME["float32"])
        yield sample(castable(t, BY_NAME["float32"], 4), "FloatTensor", gradient=gradient, exact=True)


@mistakes("Tensor.type")
def no_such_type(t: Maker) -> Iterator[Sample]:
    """Yield an unknown name."""
    yield sample(t(3), "candelabra.ThinTensor", note="no such name")


@inputs("Tensor.copy_")
def written(t: Maker) -> Iterator[Sample]:
    """Yield a source of the same shape, one that broadcasts, one of another dtype, and a number."""
    yield sample(t(2, 3), t(2, 3))
    yield sample(t(2, 3), t(3))
    yield sample(t(2, 3), t.of("int64")(2, 3, low=0, high=1))
    yield sample(t(2, 3), 1)
    yield sample(t(), t(), kind=ZERO_DIM)
    yield sample(t(2, 0), t(1), kind=ZERO_SIZE)


@mistakes("Tensor.copy_")
def not_written(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast, and arguments that are not tensors."""
    yield sample(t(2, 3), t(2), note="shapes")
    yield sample(t(3), "text", note="text")


@inputs("Tensor.item")
def one_element(t: Maker) -> Iterator[Sample]:
    """Yield tensors of one element, with and without dims."""
    yield sample(t(1))
    yield sample(t(1, 1))
    yield sample(t(), kind=ZERO_DIM)


@mistakes("Tensor.item")
def not_one_element(t: Maker) -> Iterator[Sample]:
    """Yield tensors of more and of fewer elements."""
    yield sample(t(2), note="two")
    yield sample(t(0), note="none")


@inputs("Tensor.tolist")
def nested_lists(t: Maker) -> Iterator[Sample]:
    """Yield every rank."""
    yield sample(t(2, 3))
    yield sample(t(4))
    yield sample(t(2, 1, 2))
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(2, 0), kind=ZERO_SIZE)


@inputs("Tensor.to_device")
def to_a_device(t: Maker) -> Iterator[Sample]:
    """Yield the device itself."""
    yield sample(t(2, 3), HERE)
    yield sample(t(), HERE, kind=ZERO_DIM)


@mistakes("Tensor.to_device")
def on_no_stream(t: Maker) -> Iterator[Sample]:
    """Yield a stream, since only the device's own one is supported."""
    yield sample(t(3), HERE, stream=1, note="a stream")


@inputs("Tensor.__array_namespace__")
def namespaces(t: Maker) -> Iterator[Sample]:
    """Yield calls with and without a version."""
    yield sample(t(2), of=lambda module: module.__name__, gradient=False)
    yield sample(t(2), api_version="2023.12", of=lambda module: module.__name__, gradient=False)


@mistakes("Tensor.__array_namespace__")
def no_namespace(t: Maker) -> Iterator[Sample]:
    """Yield an unknown version."""
    yield sample(t(2), api_version="1999.12", note="no such version")

"""Samples of queries about tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample

PROPERTIES = ("is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_mkldnn", "is_meta")
OF_ONE = (
    "is_tensor", "is_floating_point", "is_complex", "is_signed", "is_inference", "is_conj", "is_neg", "numel",
    *(f"Tensor.{name}" for name in PROPERTIES),
)  # fmt: skip


@inputs(*OF_ONE)
def of_one_tensor(t: Maker) -> Iterator[Sample]:
    """Yield tensors of several shapes."""
    yield sample(t(2, 3))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@inputs("is_tensor", "typename")
def of_anything(t: Maker) -> Iterator[Sample]:
    """Yield objects that are not tensors."""
    if t.dtype.name == "float32":
        for value in (3, "text", None, int):
            yield sample(value)


@inputs("typename")
def type_names(t: Maker) -> Iterator[Sample]:
    """Yield calls whose result is the name of the dtype, without the module of the device."""
    yield sample(t(2), of=lambda name: name.rpartition(".")[2])


@inputs("detach_")
def detached(t: Maker) -> Iterator[Sample]:
    """Yield tensors, whose values must not change. Views are refused."""
    yield sample(t(2, 3), gradient=False, layouts=("contiguous",))


@inputs("is_same_size")
def of_two_tensors(t: Maker) -> Iterator[Sample]:
    """Yield tensors of one shape, and tensors that broadcast."""
    yield sample(t(2, 3), t(2, 3))
    yield sample(t(2, 3), t.of("int64")(2, 3), note="dtypes")
    yield sample(t(2, 3), t(3))
    yield sample(t(), t(1), kind="0-d")


@inputs("is_nonzero")
def of_one_element(t: Maker) -> Iterator[Sample]:
    """Yield tensors of one element, with and without dims."""
    yield sample(t.array([0]))
    yield sample(t.array([[1]]))
    yield sample(t.array(1), kind="0-d")


@inputs("result_type")
def of_two_operands(t: Maker) -> Iterator[Sample]:
    """Yield tensors with and without dims, of two dtypes, and numbers."""
    others: tuple[Any, ...] = (True, 3, 1.5, 2j)
    yield sample(t(2), t(2))
    for other in others:
        yield sample(t(2), other)
        yield sample(other, t(), kind="0-d")
    for name in ("int8", "float32"):
        yield sample(t(2), t.of(name)())
        yield sample(t(), t.of(name)(2))


@mistakes("is_floating_point", "is_complex", "is_signed", "is_inference", "is_conj", "is_neg", "numel", "get_device")
def no_tensor(t: Maker) -> Iterator[Sample]:
    """Yield numbers, which have no dtype and no device."""
    yield sample(3, note="a number")


@mistakes("is_same_size", "result_type")
def no_tensors(t: Maker) -> Iterator[Sample]:
    """Yield strings in place of operands."""
    yield sample(t(2), "text", note="a string")


@mistakes("is_nonzero")
def no_element(t: Maker) -> Iterator[Sample]:
    """Yield tensors with several elements or none."""
    yield sample(t(2), note="two elements")
    yield sample(t(0), note="no element")


@inputs("get_device")
def on_a_device(t: Maker) -> Iterator[Sample]:
    """Yield a tensor, for which an integer is returned on any device."""
    yield sample(t(2), of=lambda number: isinstance(number, int))

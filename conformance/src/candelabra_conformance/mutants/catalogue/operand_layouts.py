"""Faults in single layouts: rows with gaps, channels last, dims of stride 0, operands that differ, overlap.

Each fault is tried in kernels of several families.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from candelabra.backend import Backend, Kernel, contiguous_strides

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, Mutant, array_of, breaks_backend, listed, payload_of
from candelabra_conformance.mutants.storage import (
    as_if_contiguous,
    each_image,
    is_contiguous,
    overwrite,
    read_as,
    seen,
    whole,
)

Fault = Callable[[Mirror, Kernel, tuple[Any, ...]], Any]
FAMILY: Final = __name__.rpartition(".")[2]


def _strides(mirror: Mirror, image: Image) -> tuple[int, ...]:
    return mirror.reference.layout(image.inner)[0]


def _everywhere(words: str, kernels: str, caught_by: str) -> Callable[[Fault], Fault]:
    """List one mutant for each kernel. ``caught_by`` contains properties and layouts: ``value/*/rows``."""

    def mark(fault: Fault) -> Fault:
        for kernel in kernels.split():
            operator = kernel.removesuffix("_")
            name = f"{kernel.replace('_', '-').strip('-')}-{fault.__name__.strip('_').replace('_', '-')}"
            cases = tuple(f"{operator}/{pattern}" for pattern in caught_by.split())
            make = partial(_broken, name, kernel, fault)
            listed(Mutant(name, f"In {kernel}(): {words}", make, (operator,), cases, FAMILY))
        return fault

    return mark


def _broken(name: str, kernel: str, fault: Fault) -> Backend:
    mirror = Mirror(name.replace("-", "_"))
    right = mirror.table[kernel]
    mirror.table[kernel] = lambda *args: fault(mirror, right, args)
    if not kernel.endswith("_"):
        mirror.table.pop(kernel + "_", None)  # so that the in-place form has the fault too
    return mirror


# -- which payloads ---------------------------------------------------------------------------------------------------
def _has_gaps(mirror: Mirror, image: Image) -> bool:
    """Return whether a payload consists of rows that are contiguous, with gaps between them."""
    strides = _strides(mirror, image)
    return len(strides) > 1 and strides[-1] == 1 and 0 not in strides and strides > contiguous_strides(image.shape)


def _is_channels_last(mirror: Mirror, image: Image) -> bool:
    """Return whether dim 1 of three or more is the last one in memory, without gaps."""
    shape = image.shape
    return (
        len(shape) > 2
        and shape[1] > 1
        and 0 not in shape
        and _strides(mirror, image) == _channels_last_strides(shape)
        and not is_contiguous(mirror, image)
    )


def _channels_last_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    stored = contiguous_strides((shape[0], *shape[2:], shape[1]))
    return stored[0], stored[-1], *stored[1:-1]


def _is_one_element(mirror: Mirror, image: Image) -> bool:
    """Return whether all elements share one address."""
    large = [step for n, step in zip(image.shape, _strides(mirror, image), strict=True) if n > 1]
    return bool(large) and not any(large)


def _repeats_a_middle_dim(mirror: Mirror, image: Image) -> bool:
    """Return whether a dim between others has stride 0, and the first has not."""
    strides = _strides(mirror, image)
    return len(strides) > 2 and strides[0] != 0 and 0 in strides[1:-1] and 0 not in image.shape


# -- reading ----------------------------------------------------------------------------------------------------------
@_everywhere(
    "A last stride of 1 is taken for contiguous memory, although there are gaps between the rows.",
    "exp sub sum amax cumsum matmul sort gather softmax where",
    "value/*/rows value/*/mixed",
)
def _reads_rows_without_their_gaps(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    return right(*each_image(args, lambda x: as_if_contiguous(mirror, x) if _has_gaps(mirror, x) else x))


@_everywhere(
    "Memory without gaps is read in its order, also if its channels come last.",
    "exp sub sum amax cumsum softmax",
    "value/*/channels-last value/*/mixed",
)
def _reads_channels_last_in_memory_order(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    return right(*each_image(args, lambda x: as_if_contiguous(mirror, x) if _is_channels_last(mirror, x) else x))


@_everywhere("A dim of stride 0 between others is read on.", "exp sub sum atan2 maximum", "value/*/broadcast-middle")
def _reads_on_in_a_repeated_middle_dim(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    return right(*each_image(args, lambda x: as_if_contiguous(mirror, x) if _repeats_a_middle_dim(mirror, x) else x))


@_everywhere("An operand of one repeated element is counted once.", "sum cumsum", "value/*/broadcast-all")
def _counts_a_repeated_element_once(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    out = right(*args)
    if not _is_one_element(mirror, args[0]):
        return out
    once = array_of(mirror, args[0]).reshape(-1)[:1].astype(array_of(mirror, out).dtype)
    return payload_of(mirror, np.resize(once, out.shape), out.index)


@_everywhere(
    "If an operand is one repeated element, only one element is computed.",
    "sub mul maximum atan2",
    "value/*/broadcast-all",
)
def _computes_one_element_for_all(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    out = right(*args)
    if not any(isinstance(x, Image) and _is_one_element(mirror, x) and x.shape == out.shape for x in args):
        return out
    return payload_of(mirror, np.resize(array_of(mirror, out).reshape(-1)[:1], out.shape), out.index)


@_everywhere("The strides of the first operand are used for all.", "sub maximum atan2 where lerp", "value/*/mixed")
def _uses_one_operands_strides_for_all(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    images = [x for x in args if isinstance(x, Image)]
    strides = _strides(mirror, images[0])

    def wrong(image: Image) -> Image:
        alike = image.shape == images[0].shape and 0 not in (*strides, *_strides(mirror, image))
        return read_as(mirror, image, strides=strides) if alike else image

    return right(*each_image(args, wrong))


# -- writing ----------------------------------------------------------------------------------------------------------
def _written_in_one_run(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Image:
    """Write the result in one run of memory after the target's offset."""
    target: Image = args[0]
    copy = payload_of(mirror, array_of(mirror, target), target.index)
    right(copy, *args[1:])
    result = array_of(mirror, copy).reshape(-1)
    storage = array_of(mirror, whole(mirror, target))
    start = mirror.reference.layout(target.inner)[1]
    storage[start : start + result.size] = result[: max(storage.size - start, 0)]
    overwrite(mirror, whole(mirror, target), storage)
    return target


@_everywhere(
    "A target with gaps between its rows is written in one run of memory.",
    "exp_ sub_ mul_ sqrt_ copied_ filled_",
    "inplace/*/rows inplace/*/mixed",
)
def _writes_rows_without_their_gaps(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    return _written_in_one_run(mirror, right, args) if _has_gaps(mirror, args[0]) else right(*args)


@_everywhere(
    "A target whose channels come last is written in the order of its memory.",
    "exp_ sub_ neg_",
    "inplace/*/channels-last inplace/*/mixed",
)
def _writes_channels_last_in_memory_order(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    return _written_in_one_run(mirror, right, args) if _is_channels_last(mirror, args[0]) else right(*args)


@_everywhere("The gaps between a target's rows are set to 0.", "add_ neg_", "inplace/*/rows inplace/*/mixed")
def _clears_the_gaps_between_rows(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    target: Image = args[0]
    right(*args)
    if _has_gaps(mirror, target):
        result = array_of(mirror, target)
        flat = whole(mirror, target)
        storage = np.zeros_like(array_of(mirror, flat))
        seen(storage, target.shape, *mirror.reference.layout(target.inner))[...] = result
        overwrite(mirror, flat, storage)
    return target


@_everywhere("An operand is read with the strides of the target.", "sub_ mul_ atan2_ copied_", "inplace/*/mixed")
def _reads_an_operand_with_the_targets_strides(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    target: Image = args[0]
    strides = _strides(mirror, target)

    def wrong(image: Image) -> Image:
        alike = image.shape == target.shape and 0 not in (*strides, *_strides(mirror, image))
        return read_as(mirror, image, strides=strides) if alike else image

    return right(target, *each_image(args[1:], wrong))


@_everywhere(
    "An operand that overlaps the target is read while the target is written.",
    "copied_",
    "inplace-overlap/*",
)
def _reads_elements_that_are_written(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
    target, other = args[0], args[1]
    if not isinstance(other, Image) or other.memory is not target.memory or 0 in target.shape:
        return right(*args)
    flat = whole(mirror, target)
    for index in np.ndindex(target.shape):  # element by element, in order
        storage = array_of(mirror, flat)
        into = seen(storage, target.shape, *mirror.reference.layout(target.inner))
        read: Array = np.broadcast_to(seen(storage, other.shape, *mirror.reference.layout(other.inner)), target.shape)
        pair = [payload_of(mirror, np.array([a[index]], a.dtype), target.index) for a in (into, read)]
        right(*pair, *args[2:])
        into[index] = array_of(mirror, pair[0])[0]
        overwrite(mirror, flat, storage)
    return target


# -- cotangents -------------------------------------------------------------------------------------------------------
class _OfGradients(Mirror):
    """A kernel of a derivative that reads its cotangent wrongly; the operator itself is correct."""

    kernel = ""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        right = self.table[self.kernel]
        self.table[self.kernel] = lambda g, *rest: right(self.read(g), *rest)

    def read(self, g: Image) -> Image:
        """Return the cotangent as the kernel reads it."""
        return as_if_contiguous(self, g)


@breaks_backend("relu", caught_by="relu/gradient/*/offset")
class ReluReadsOneElementOfTheCotangent(_OfGradients):
    """The derivative of relu reads the first element of a cotangent that is expanded, and zeros after it."""

    kernel = "relu_backward"

    def read(self, g: Image) -> Image:
        """Keep the first element of a repeated one."""
        if not _is_one_element(self, g):
            return g
        array = array_of(self, g)
        array.reshape(-1)[1:] = 0
        return payload_of(self, array, g.index)


@breaks_backend("tanh", caught_by="tanh/gradient/*/transposed tanh/gradient2/*/transposed")
class TanhReadsCotangentsWithoutGaps(_OfGradients):
    """The derivative of tanh reads a cotangent with gaps between its rows as contiguous."""

    kernel = "tanh_backward"

    def read(self, g: Image) -> Image:
        """Ignore the gaps."""
        return as_if_contiguous(self, g) if _has_gaps(self, g) else g


@breaks_backend("sigmoid", caught_by="*/gradient/*/step */gradient2/*/step")
class SigmoidIgnoresTheCotangentsStrides(_OfGradients):
    """The derivative of sigmoid reads every cotangent as contiguous."""

    kernel = "sigmoid_backward"


@breaks_backend("softmax", caught_by="softmax/gradient/*/step softmax/gradient2/*/step")
class SoftmaxIgnoresTheCotangentsStrides(_OfGradients):
    """The derivative of softmax reads every cotangent as contiguous."""

    kernel = "softmax_backward"

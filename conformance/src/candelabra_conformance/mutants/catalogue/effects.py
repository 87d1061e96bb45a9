"""Faults of side effects: results that share memory, inputs that change, writes to the wrong elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, breaks_backend, breaks_kernel, kind_of, payload_of
from candelabra_conformance.mutants.storage import is_contiguous, overwrite, whole

INTEGERS = "biu"


def _shared(x: Image) -> Image:
    return Image(x.inner, x.index, x.memory)


# -- results that share memory ----------------------------------------------------------------------------------------
@breaks_kernel("clone", caught_by="clone/aliasing/*")
def clones_are_the_same(mirror: Mirror, right: Kernel, x: Image) -> Any:
    """A clone shares the memory of the original."""
    return _shared(x)


@breaks_kernel("floor", "ceil", "trunc", caught_by="*/aliasing/*int*")
def rounded_integers_are_the_argument(mirror: Mirror, right: Kernel, x: Image) -> Any:
    """Rounding an integer tensor returns the argument itself."""
    return _shared(x) if kind_of(mirror.dtype_of(x)) in INTEGERS else right(x)


@breaks_kernel("conj_physical", caught_by="conj_physical/aliasing/*")
def conjugates_of_reals_are_the_argument(mirror: Mirror, right: Kernel, x: Image) -> Any:
    """The conjugate of a real tensor is the tensor itself."""
    return right(x) if kind_of(mirror.dtype_of(x)) == "c" else _shared(x)


@breaks_kernel("sum", "amax", caught_by="*/aliasing/*")
def reductions_of_one_are_views(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """A reduction over dims of size 1 returns a view of its input."""
    out = right(x, *rest)
    alike = mirror.dtype_of(out) is mirror.dtype_of(x) and is_contiguous(mirror, x)
    if out.shape and alike and np.prod(out.shape) == np.prod(x.shape) and 0 not in x.shape:
        strides, offset = mirror.layout(out)[0], mirror.layout(x)[1]
        return mirror.restride(x, out.shape, strides, offset)
    return out


@breaks_kernel("relu", "abs", caught_by="*/aliasing/*")
def results_take_the_inputs_memory(mirror: Mirror, right: Kernel, x: Image) -> Any:
    """The result overwrites the input and uses its memory."""
    out = right(x)
    if mirror.dtype_of(out) is not mirror.dtype_of(x):
        return out
    mirror.reference.copy_(x.inner, out.inner)
    return _shared(x)


@breaks_kernel("topk", "cummax", caught_by="*/value/*int64* */aliasing/*int64*")
def two_results_share_memory(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """If values and indices have the same size, the values use the memory of the indices."""
    values, indices = right(*args)
    if mirror.dtype_of(values) is not mirror.dtype_of(indices):
        return values, indices
    return _shared(indices), indices


@breaks_backend("matmul", "cumsum", caught_by="*/aliasing/* */determinism/* */threads/*")
class ResultsLieInOneBuffer(Mirror):
    """Each result of a shape overwrites the previous one."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.buffers: dict[Any, Image] = {}
        for operator in ("matmul", "cumsum"):
            self.table[operator] = self._buffered(operator, self.table[operator])

    def _buffered(self, operator: str, right: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            out = right(*args)
            buffer = self.buffers.setdefault((operator, out.index, out.shape, self.dtype_of(out)), out)
            self.reference.copy_(buffer.inner, out.inner)
            return _shared(buffer)

        return run


# -- inputs that change -----------------------------------------------------------------------------------------------
@breaks_kernel("sort", "cumsum", caught_by="*/inputs/*")
def inputs_are_worked_on(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """The operator computes in the memory of its input before it copies the result."""
    out = right(x, *rest)
    first = out[0] if isinstance(out, tuple) else out
    if mirror.dtype_of(first) is mirror.dtype_of(x) and first.shape == x.shape:
        mirror.reference.copy_(x.inner, first.inner)
    return out


@breaks_kernel("softmax", caught_by="softmax/inputs/*")
def softmax_shifts_its_input(mirror: Mirror, right: Kernel, x: Image, dim: int) -> Any:
    """The maximum is subtracted from the input itself."""
    out = right(x, dim)
    array = array_of(mirror, x)
    if array.size:
        overwrite(mirror, x, (array - array.max()).astype(array.dtype))
    return out


@breaks_kernel("div", caught_by="div/inputs/*")
def divisors_become_reciprocals(mirror: Mirror, right: Kernel, x: Any, y: Any) -> Any:
    """The second operand is replaced by its reciprocal."""
    out = right(x, y)
    if isinstance(y, Image) and kind_of(mirror.dtype_of(y)) in "fc":
        with np.errstate(all="ignore"):
            array = array_of(mirror, y)
            overwrite(mirror, y, np.asarray(1 / array, array.dtype))
    return out


@breaks_kernel("exp", "sum", caught_by="*/inputs/*/offset")
def the_element_before_is_cleared(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """If an input has an offset in its storage, the element before it is set to 0."""
    out = right(x, *rest)
    offset = mirror.layout(x)[1]
    if offset and 0 not in x.shape:
        before = mirror.restride(x, (1,), (1,), offset - 1)
        overwrite(mirror, before, np.zeros_like(array_of(mirror, before)))
    return out


# -- wrong targets ----------------------------------------------------------------------------------------------------
@breaks_kernel("add_", "exp_", caught_by="*/inplace/*")
def results_are_not_written(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """An in-place kernel returns a new payload and does not change its target."""
    return right(payload_of(mirror, array_of(mirror, x), x.index), *rest)


@breaks_kernel("mul_", "neg_", "sqrt_", caught_by="*/inplace/*/transposed */inplace/*/step")
def only_contiguous_targets_are_written(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """A target that is not contiguous is copied, and the copy is written."""
    return right(x if is_contiguous(mirror, x) else payload_of(mirror, array_of(mirror, x), x.index), *rest)


@breaks_kernel("filled_", caught_by="filled/inplace/* device/*")
def filling_fills_the_storage(mirror: Mirror, right: Kernel, x: Image, value: Any) -> Any:
    """Filling a slice fills its whole storage."""
    right(whole(mirror, x), value)
    return x


@breaks_kernel("sub_", "copied_", caught_by="*/inplace/*/offset */inplace/*")
def writes_go_one_too_far(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """The element after the target is set to 0."""
    right(x, *rest)
    strides, offset = mirror.layout(x)
    behind = offset + sum((n - 1) * step for n, step in zip(x.shape, strides, strict=True)) + 1
    if 0 not in x.shape and behind < x.memory.size // mirror.dtype_of(x).itemsize:
        after = mirror.restride(x, (1,), (1,), behind)
        overwrite(mirror, after, np.zeros_like(array_of(mirror, after)))
    return x


@breaks_kernel("div_", "maximum_", caught_by="*/inplace/*/offset */inplace/*/step")
def writes_go_to_the_start(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """A target that is a slice is written at the start of its storage."""
    strides, offset = mirror.layout(x)
    if not offset:
        return right(x, *rest)
    out = payload_of(mirror, array_of(mirror, x), x.index)
    right(out, *rest)
    mirror.copy_(mirror.restride(x, x.shape, strides, 0), out)
    return x


@breaks_kernel("index_put_", caught_by="index_put/inplace/*")
def writes_by_index_are_lost(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """Values that are assigned by index go to a copy of the tensor."""
    return right(payload_of(mirror, array_of(mirror, x), x.index), *rest)


@breaks_backend("floor", "erf", caught_by="*/inplace/* */out/* */aliasing/*")
class CopiesRebind(Mirror):
    """``copy_`` replaces the destination's memory instead of writing to it, so views of it do not change."""

    def copy_(self, destination: Any, source: Any) -> Any:
        """Replace the payload's memory, which is correct for this payload only."""
        fresh = payload_of(self, array_of(self, source), destination.index)
        destination.inner, destination.memory = fresh.inner, fresh.memory
        return destination


@breaks_backend("erf", caught_by="device/overlap* */aliasing/* */out/*")
class CopiesShare(Mirror):
    """``copy_`` lets the destination share the source's memory, so later writes to one change the other."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        del self.table["copied_"]

    def copy_(self, destination: Any, source: Any) -> Any:
        """Share the memory, which is correct until the next write."""
        if self.layout(destination)[0] != self.layout(source)[0] or self.layout(destination)[1]:
            return super().copy_(destination, source)
        destination.inner, destination.memory = source.inner, source.memory
        return destination


# -- immutable arrays -------------------------------------------------------------------------------------------------
class _Frozen(Mirror):
    """Arrays without strides that never change."""

    def __init__(self, name: str) -> None:
        super().__init__(name, mutable=False)


@breaks_backend("index_put", "add", caught_by="index_put/inputs/*")
class ImmutableArraysAreWritten(_Frozen):
    """Immutable arrays are modified by index assignment."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        right = self.table["index_put"]

        def put(x: Image, *rest: Any) -> Any:
            out = right(x, *rest)
            self.reference.copy_(x.inner, out.inner)
            return out

        self.table["index_put"] = put


@breaks_backend("transpose", "permute", caught_by="transpose/value/* permute/value/*")
class ViewsByCopyLoseTheirOrder(_Frozen):
    """On arrays without strides, a transposed view is a reshaped copy."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for operator in ("transpose", "permute"):
            self.table[operator] = self._reshaped(self.table[operator])

    def _reshaped(self, right: Kernel) -> Kernel:
        return lambda x, *rest: payload_of(self, array_of(self, x).reshape(right(x, *rest).shape), x.index)

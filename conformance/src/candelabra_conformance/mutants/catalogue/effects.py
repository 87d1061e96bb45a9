"""Faults of effects: results that are no memory of their own, inputs that change, writes that miss."""

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


# -- results that are somebody's --------------------------------------------------------------------------------------
@breaks_kernel("clone", caught_by="clone/aliasing/*")
def clones_are_the_same(made: Mirror, right: Kernel, x: Image) -> Any:
    """A clone shares its original's memory."""
    return _shared(x)


@breaks_kernel("floor", "ceil", "trunc", caught_by="*/aliasing/*int*")
def rounded_integers_are_the_argument(made: Mirror, right: Kernel, x: Image) -> Any:
    """Rounding what has no fraction gives back the argument."""
    return _shared(x) if kind_of(made.dtype_of(x)) in INTEGERS else right(x)


@breaks_kernel("conj_physical", caught_by="conj_physical/aliasing/*")
def conjugates_of_reals_are_the_argument(made: Mirror, right: Kernel, x: Image) -> Any:
    """The conjugate of a real tensor is the tensor."""
    return right(x) if kind_of(made.dtype_of(x)) == "c" else _shared(x)


@breaks_kernel("sum", "amax", caught_by="*/aliasing/*")
def reductions_of_one_are_views(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """A reduction that has nothing to reduce gives a view of its input."""
    out = right(x, *rest)
    alike = made.dtype_of(out) is made.dtype_of(x) and is_contiguous(made, x)
    if out.shape and alike and np.prod(out.shape) == np.prod(x.shape) and 0 not in x.shape:
        strides, offset = made.layout(out)[0], made.layout(x)[1]
        return made.restride(x, out.shape, strides, offset)
    return out


@breaks_kernel("relu", "abs", caught_by="*/aliasing/*")
def results_take_the_inputs_memory(made: Mirror, right: Kernel, x: Image) -> Any:
    """The result is written over the input, whose memory it gets."""
    out = right(x)
    if made.dtype_of(out) is not made.dtype_of(x):
        return out
    made.reference.copy_(x.inner, out.inner)
    return _shared(x)


@breaks_kernel("topk", "cummax", caught_by="*/value/*int64* */aliasing/*int64*")
def two_results_share_memory(made: Mirror, right: Kernel, *args: Any) -> Any:
    """Where values and indices have one size, the values lie in the indices' memory."""
    values, indices = right(*args)
    if made.dtype_of(values) is not made.dtype_of(indices):
        return values, indices
    return _shared(indices), indices


@breaks_backend("matmul", "cumsum", caught_by="*/aliasing/* */determinism/* */threads/*")
class ResultsLieInOneBuffer(Mirror):
    """Each result of a shape is written into the same memory as the last one."""

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
def inputs_are_worked_on(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """The operator works in its input's memory before it copies the result out."""
    out = right(x, *rest)
    first = out[0] if isinstance(out, tuple) else out
    if made.dtype_of(first) is made.dtype_of(x) and first.shape == x.shape:
        made.reference.copy_(x.inner, first.inner)
    return out


@breaks_kernel("softmax", caught_by="softmax/inputs/*")
def softmax_shifts_its_input(made: Mirror, right: Kernel, x: Image, dim: int) -> Any:
    """The greatest element is taken off in the input itself."""
    out = right(x, dim)
    array = array_of(made, x)
    if array.size:
        overwrite(made, x, (array - array.max()).astype(array.dtype))
    return out


@breaks_kernel("div", caught_by="div/inputs/*")
def divisors_become_reciprocals(made: Mirror, right: Kernel, x: Any, y: Any) -> Any:
    """The second operand is replaced by its reciprocal."""
    out = right(x, y)
    if isinstance(y, Image) and kind_of(made.dtype_of(y)) in "fc":
        with np.errstate(all="ignore"):
            array = array_of(made, y)
            overwrite(made, y, np.asarray(1 / array, array.dtype))
    return out


@breaks_kernel("exp", "sum", caught_by="*/inputs/*/offset")
def the_element_before_is_cleared(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """An input that starts later in its storage has the element before it set to 0."""
    out = right(x, *rest)
    offset = made.layout(x)[1]
    if offset and 0 not in x.shape:
        before = made.restride(x, (1,), (1,), offset - 1)
        overwrite(made, before, np.zeros_like(array_of(made, before)))
    return out


# -- writes that miss -------------------------------------------------------------------------------------------------
@breaks_kernel("add_", "exp_", caught_by="*/inplace/*")
def results_are_not_written(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """An in-place kernel returns a new payload and leaves its target."""
    return right(payload_of(made, array_of(made, x), x.index), *rest)


@breaks_kernel("mul_", "neg_", "sqrt_", caught_by="*/inplace/*/transposed */inplace/*/step")
def only_contiguous_targets_are_written(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """A target with gaps or in another order is copied, and the copy is written."""
    return right(x if is_contiguous(made, x) else payload_of(made, array_of(made, x), x.index), *rest)


@breaks_kernel("filled_", caught_by="filled/inplace/* device/*")
def filling_fills_the_storage(made: Mirror, right: Kernel, x: Image, value: Any) -> Any:
    """Filling a slice fills all that it is a slice of."""
    right(whole(made, x), value)
    return x


@breaks_kernel("sub_", "copied_", caught_by="*/inplace/*/offset */inplace/*")
def writes_go_one_too_far(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """The element behind the target is set to 0."""
    right(x, *rest)
    strides, offset = made.layout(x)
    behind = offset + sum((n - 1) * step for n, step in zip(x.shape, strides, strict=True)) + 1
    if 0 not in x.shape and behind < x.memory.size // made.dtype_of(x).itemsize:
        after = made.restride(x, (1,), (1,), behind)
        overwrite(made, after, np.zeros_like(array_of(made, after)))
    return x


@breaks_kernel("div_", "maximum_", caught_by="*/inplace/*/offset */inplace/*/step")
def writes_go_to_the_start(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """A target that is a slice is written at the start of its storage."""
    strides, offset = made.layout(x)
    if not offset:
        return right(x, *rest)
    out = payload_of(made, array_of(made, x), x.index)
    right(out, *rest)
    made.copy_(made.restride(x, x.shape, strides, 0), out)
    return x


@breaks_kernel("index_put_", caught_by="index_put/inplace/*")
def writes_by_index_are_lost(made: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """Values put by index into a tensor go into a copy of it."""
    return right(payload_of(made, array_of(made, x), x.index), *rest)


@breaks_backend("floor", "erf", caught_by="*/inplace/* */out/* */aliasing/*")
class CopiesRebind(Mirror):
    """``copy_`` gives the destination other memory instead of writing into it: views of it see nothing."""

    def copy_(self, destination: Any, source: Any) -> Any:
        """Right for who holds this very payload."""
        fresh = payload_of(self, array_of(self, source), destination.index)
        destination.inner, destination.memory = fresh.inner, fresh.memory
        return destination


@breaks_backend("erf", caught_by="device/overlap* */aliasing/* */out/*")
class CopiesShare(Mirror):
    """``copy_`` lets the destination share the source's memory: what is written to one later changes the other."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        del self.table["copied_"]

    def copy_(self, destination: Any, source: Any) -> Any:
        """Right until somebody writes."""
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
    """Arrays that are said never to change are changed by putting values."""

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

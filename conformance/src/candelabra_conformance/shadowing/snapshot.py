"""A call's arguments as they were before it: arrays on the host for tensors, with the memory layout of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from candelabra import Tensor
from candelabra.library import Instance, Operator

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.transport import Array, to_host

Layout = tuple[tuple[int, ...], int]


@dataclass
class Snapshot:
    """The arguments of a call. ``args`` are canonical and positional, as a layer gets them; ``arrays`` have the
    values."""

    record: Operator[..., Any]
    args: tuple[Any, ...]
    arrays: dict[int, Array] = field(default_factory=dict)
    """By the identity of the tensor: a tensor that occurs twice has one array."""
    tensors: list[Tensor] = field(default_factory=list)
    values: tuple[Any, ...] = ()

    @classmethod
    def of(cls, record: Operator[..., Any], args: tuple[Any, ...]) -> Snapshot:
        """Copy every tensor of a call to the host."""
        made = cls(record, args)
        made.values = tuple(made._hosted(a) for a in args)
        return made

    def _hosted(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in self.arrays:
                self.arrays[id(value)] = to_host(value)
                self.tensors.append(value)
            return self.arrays[id(value)]
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            return [self._hosted(v) for v in value]
        return value

    def split(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with arrays for tensors: positional ones, and keyword-only ones by name."""
        parameters = self.record.schema.parameters
        positional = tuple(v for p, v in zip(parameters, self.values, strict=True) if not p.keyword_only)
        named = {p.name: v for p, v in zip(parameters, self.values, strict=True) if p.keyword_only}
        return positional, named

    def layouts(self) -> Mapping[int, Layout]:
        """Return (strides, offset) in elements by the identity of the array, for arrays that are not contiguous."""
        found = {}
        for tensor in self.tensors:
            strides, offset = tensor._layout()
            if offset or not tensor.is_contiguous():
                found[id(self.arrays[id(tensor)])] = (tuple(strides), offset)
        return found

    def changed(self, but: Tensor | None = None) -> list[tuple[Tensor, Array, Array]]:
        """Return the tensors that have changed, with the values before and after, except those that share memory with
        ``but``, to which the call was allowed to write."""
        found = []
        for tensor in self.tensors:
            if but is not None and (tensor is but or tensor._counter is but._counter):
                continue
            before, after = self.arrays[id(tensor)], to_host(tensor)
            if before.tobytes() != after.tobytes():
                found.append((tensor, before, after))
        return found

    def instance(self) -> Instance | None:
        """Return the device of the call: the one that an argument names, otherwise that of its tensors."""
        named = [a for a in self.args if isinstance(a, Instance)]
        if named:
            return named[0]
        with_dims = [t for t in self.tensors if t.ndim] or self.tensors
        return with_dims[0]._instance if with_dims else None

    def described(self) -> str:
        """Return one line per argument: tensors by dtype, shape, layout and range, others by value."""
        lines = []
        for p, held, value in zip(self.record.schema.parameters, self.args, self.values, strict=True):
            parts = zip(held, value, strict=True) if isinstance(value, list) else [(held, value)]
            words = [_described(h, v) for h, v in parts]
            lines.append(f"{p.name}: {'; '.join(words)}")
        return "\n".join(lines)


def _described(held: Any, value: Any) -> str:
    if not isinstance(held, Tensor):
        text = str(held.device) if isinstance(held, Instance) else repr(held)
        return text if len(text) < 60 else text[:57] + "..."
    words = f"{device_dtype(value.dtype).name}{list(value.shape)}"
    strides, offset = held._layout()
    if offset or not held.is_contiguous():
        words += f", strides {tuple(strides)}, offset {offset}"
    return words + _range(value)


def _range(array: Array) -> str:
    if not array.size or array.dtype.kind == "b":
        return ""
    wide = np.abs(array.astype(np.complex128)) if array.dtype.kind == "c" else array
    wide = wide.astype(np.float64) if wide.dtype.kind not in "iu" else wide
    finite = wide[np.isfinite(wide)]
    words = f", from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
    others = [(int(np.isnan(wide).sum()), "NaN"), (int(np.isinf(wide).sum()), "infinite")]
    return words + "".join(f", {count} {name}" for count, name in others if count)

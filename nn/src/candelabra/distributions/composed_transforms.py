"""Transforms that consist of others: in sequence, over more dimensions of the event, and over slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.transform import Transform, expect_dims
from candelabra.distributions.utils import lazy_property, sum_rightmost

__all__ = ["CatTransform", "ComposeTransform", "IndependentTransform", "StackTransform", "identity_transform"]


class ComposeTransform(Transform):
    """Several transforms, applied in their order."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_dims(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_dims(self.parts[-1].codomain, dims)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return cd.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        dims = self.domain.event_dim
        total: Any = 0
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(term, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Sequence[int]) -> Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return Size(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


def _with_dims(constraint: Any, dims: int) -> Any:
    """Return a constraint whose events have at least ``dims`` dimensions."""
    missing = dims - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform for which ``reinterpreted_batch_ndims`` more dimensions belong to one event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Any:
        expect_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Any:
        expect_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self.base_transform.inverse_shape(shape)


# -- over slices ------------------------------------------------------------------------------------------------------
class _OfSlices(Transform):
    """A transform for each slice along ``dim``."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _slices(self, value: Tensor, name: str) -> Sequence[Tensor]:
        raise NotImplementedError

    def _check(self, value: Tensor, name: str, expected: int, title: str) -> None:
        if not -value.dim() <= self.dim < value.dim():
            what = "tensor" if name == "value" else name
            raise AssertionError(f"dim {self.dim} out of range for {what} with {value.dim()} dimensions")
        size = value.shape[self.dim]
        if size != expected:
            what = "x" if name == "value" else name
            raise AssertionError(f"{what}.size({self.dim}) = {size} must equal {title} {expected}")

    @property
    def bijective(self) -> Any:
        return all(t.bijective for t in self.transforms)


class CatTransform(_OfSlices):
    """Transforms of slices along ``dim`` with these ``lengths``, by default 1 each, whose results are joined."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> Any:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> Any:
        """The sum of the lengths."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _slices(self, value: Tensor, name: str) -> Sequence[Tensor]:
        self._check(value, name, self.length, "length")
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return cd.cat([t(v) for t, v in zip(self.transforms, self._slices(x, "value"))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return cd.cat([t.inv(v) for t, v in zip(self.transforms, self._slices(y, "value"))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, before, after in zip(self.transforms, self._slices(x, "x"), self._slices(y, "y")):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, self.event_dim - t.event_dim))
        # The dimension of the slices in the result, counted from its end; it may belong to the event.
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        if dim < 0:
            return cd.cat(terms, dim)
        total: Any = sum(terms)
        return total

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_OfSlices):
    """Transforms of the slices of size 1 along ``dim``."""

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, value: Tensor, name: str) -> Sequence[Tensor]:
        self._check(value, name, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return cd.stack([t(v) for t, v in zip(self.transforms, self._slices(x, "value"))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return cd.stack([t.inv(v) for t, v in zip(self.transforms, self._slices(y, "value"))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slices(x, "x"), self._slices(y, "y"))
        return cd.stack([t.log_abs_det_jacobian(before, after) for t, before, after in parts], self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


def __dir__() -> list[str]:
    return sorted(__all__)

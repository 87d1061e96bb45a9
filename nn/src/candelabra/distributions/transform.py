"""The base class of transforms, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Size, Tensor
from candelabra.distributions import constraints

__all__ = ["Transform", "expect_dims"]


def expect_dims(shape: Sequence[int], dims: int) -> Size:
    """Return the shape, or raise ``ValueError`` if it has fewer dimensions."""
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")
    return Size(shape)


class Transform:
    """A function from the set ``domain`` to the set ``codomain``, with ``log(abs(det(dy / dx)))``.

    A subclass defines ``_call``, and as far as they exist ``_inverse`` and ``log_abs_det_jacobian``. With
    ``cache_size=1`` the last pair of values is kept, so that the inverse of the last result is its argument itself.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)
        self._inv: Transform | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_cached_x_y": (None, None)}  # a copy computes its own values

    @property
    def event_dim(self) -> int:
        """The number of dimensions of an event, if it does not change."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform; the inverse of that is this one."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """The sign of the derivative, of a transform of numbers that is monotonic."""
        raise NotImplementedError(f"{type(self)} does not implement sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return an equal transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """Return ``y``."""
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return ``log(abs(det(dy / dx)))``, without the dimensions of the event."""
        raise NotImplementedError(f"{type(self)} does not implement log_abs_det_jacobian")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Sequence[int]) -> Size:
        """Return the shape of ``y`` for a shape of ``x``."""
        return Size(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        """Return the shape of ``x`` for a shape of ``y``."""
        return Size(shape)


class _InverseTransform(Transform):
    """The inverse of a transform, which keeps the cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._forward = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._forward.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._forward.domain

    @property
    def bijective(self) -> Any:
        return self._forward.bijective

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Transform:
        return self._forward

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._forward.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._forward!r})"

    def __call__(self, x: Any) -> Any:
        return self._forward._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._forward.forward_shape(shape)


def __dir__() -> list[str]:
    return sorted(__all__)

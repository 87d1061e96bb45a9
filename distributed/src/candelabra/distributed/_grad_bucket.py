"""The gradients that travel together, as a communication hook sees them."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra import Tensor


class GradBucket:
    """A flat buffer with the gradients of some parameters, one after another."""

    def __init__(self, index: int, buffer: Tensor, parameters: Sequence[Tensor], is_last: bool) -> None:
        self._index, self._buffer, self._parameters, self._is_last = index, buffer, list(parameters), is_last

    def index(self) -> int:
        """Return the place of the bucket in the order of the backward pass."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the flat buffer."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the buffer, for instance by one of another dtype, before another hook gets the bucket."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradients as views of the buffer."""
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Tensor]:
        """Return the parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Return whether the bucket is the last of the backward pass."""
        return self._is_last

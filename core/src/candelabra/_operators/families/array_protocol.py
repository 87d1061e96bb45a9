"""How a tensor answers to the Python Array API standard: where its namespace is, and a move between devices."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

VERSIONS: Final[tuple[str, ...]] = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The versions of the standard that ``candelabra.array_api`` satisfies: each is the one before with more names."""


@public(is_function=False)
def __array_namespace__(input: Tensor, /, *, api_version: str | None = None) -> Any:
    """The functions of the Python Array API standard: :mod:`candelabra.array_api`, whatever ``api_version`` it may be.

    Raises ``ValueError`` for a version that is none or that came later.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"the Array API standard {api_version!r} is not offered; there are {', '.join(VERSIONS)}")
    from candelabra import array_api

    return array_api


@public(is_function=False)
def to_device(input: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on ``device``; itself where it is there. ``ValueError`` for a ``stream``: the device's own is used."""
    if stream is not None:
        raise ValueError(f"to_device(): only stream=None is supported, got {stream!r}")
    moved: Tensor = input.to(device=device)
    return moved

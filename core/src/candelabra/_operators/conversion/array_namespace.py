"""The method that leads from a tensor to the functions of the Array API standard."""

from __future__ import annotations

from types import ModuleType

from candelabra._annotations import TYPE_CHECKING, Final
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import Tensor

VERSIONS: Final[tuple[str, ...]] = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The versions of the standard that ``candelabra.array_api`` satisfies: each one adds names to the previous one."""


@public(is_function=False)
def __array_namespace__(input: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return the functions of the Python Array API standard: :mod:`candelabra.array_api`, for any supported
    ``api_version``.

    Raises ``ValueError`` for a version that is not supported.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"the Array API standard {api_version!r} is not offered; there are {', '.join(VERSIONS)}")
    from candelabra import array_api

    return array_api

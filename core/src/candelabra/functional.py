"""The functions of ``torch.functional``, which are functions of the package."""

from __future__ import annotations

from candelabra._annotations import Any

_NAMES = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul "
    "einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique unique_consecutive unravel_index"
)
__all__ = _NAMES.split()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import candelabra

    found = globals()[name] = getattr(candelabra, name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

"""Pooling to a given size: the mean or the maximum of windows that cover the input evenly."""

from __future__ import annotations

from candelabra.errors import OutOfMemoryError
from candelabra.library import float32_on_host, public, shape_of
from candelabra.nn._functional.bands import averages, resample_by
from candelabra.nn._functional.sizes import Ints, Sizes
from candelabra.nn._operators.window_maxima import adaptive_max_pool
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _check_dims(input: Tensor, output_size: Any) -> None:
    if isinstance(output_size, (tuple, list)) and input.ndim <= len(output_size) > 1:
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")


def _check_not_empty(name: str, input: Tensor, rank: int) -> None:
    shape = shape_of(input)
    for dim in range(1 if len(shape) == rank + 2 else len(shape) - rank, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {dim} being empty"
            )


def _check_floating(name: str, input: Tensor) -> None:
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.title}'")


# -- means ------------------------------------------------------------------------------------------------------------
def _adaptive_avg_pool(rank: int, input: Tensor, output_size: Any) -> Tensor:
    name = f"adaptive_avg_pool{rank}d"
    _check_dims(input, output_size)
    if input.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got {list(input.shape)}")
    if not isinstance(output_size, (tuple, list)):
        output_size = (output_size,) * rank
    if len(output_size) != rank:
        one = f"{name}() argument 'output_size' should contain one int (got {len(output_size)})"
        raise RuntimeError(one if rank == 1 else f"{name}: output_size must be {rank}")
    lead = input.ndim - rank
    sizes = [input.shape[lead + i] if size is None else size for i, size in enumerate(output_size)]
    if any(w < 0 for w in sizes):
        shown = ", ".join(map(str, sizes))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{shown}}}"
        )
    if any(input.shape[lead + i] == 0 for i in range(rank)):
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(input.shape)}"
        )
    _check_floating(name, input)
    if rank == 3:
        input = float32_on_host(input)
    single = [lead + i for i, size in enumerate(sizes) if size == 1]
    out = input.mean(single, True) if single else input
    for i, size in enumerate(sizes):
        if size != out.shape[lead + i]:
            out = resample_by(averages(out.shape[lead + i], size), out, lead + i)
    return out if out is not input else input.clone()


@public(method=False, aliases=("nn.functional.adaptive_avg_pool1d",))
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """The mean over ``output_size`` windows that divide (N, C, L) or (C, L) evenly."""
    return _adaptive_avg_pool(1, input, output_size)


@public(namespace="nn.functional")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over windows that cover (N, C, H, W) or (C, H, W) evenly; None in ``output_size`` keeps a dim's size."""
    return _adaptive_avg_pool(2, input, output_size)


@public(namespace="nn.functional")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over windows that cover (N, C, D, H, W) or (C, D, H, W) evenly."""
    return _adaptive_avg_pool(3, input, output_size)


# -- maxima -----------------------------------------------------------------------------------------------------------
def _output_size(name: str, rank: int, input: Tensor, output_size: Any) -> Ints:
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if rank == 1:
        if len(given) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
        if given[0] is None:
            raise TypeError(f"{name}(): argument 'output_size' (position 2) must be int or tuple of ints, not NoneType")
    if len(given) != rank:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {rank}")
    if not all(v is None or hasattr(v, "__index__") for v in given):
        raise TypeError(f"{name}(): argument 'output_size' must be ints or None, not {output_size!r}")
    spatial = shape_of(input)[input.ndim - rank :]
    return tuple([s if v is None else v.__index__() for v, s in zip(given, spatial, strict=True)])


def _adaptive_max_pool(rank: int, input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    name = f"adaptive_max_pool{rank}d"
    _check_dims(input, output_size)
    if input.ndim not in (rank + 1, rank + 2):
        if rank == 1:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while "
                f"checking arguments for {name})"
            )
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(input.shape)}")
    sizes = _output_size(name, rank, input, output_size)
    _check_not_empty(name, input, rank)
    if min(sizes) < 0:
        shape = [*input.shape[: input.ndim - rank], *sizes]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {shape}")
    if max(sizes) >= 1 << 31:
        raise OutOfMemoryError(f"{name}(): output_size {list(sizes)} is too large: it needs more memory than there is")
    _check_floating(name, input)
    found = adaptive_max_pool(float32_on_host(input) if rank == 3 else input, sizes)
    return found.values, found.indices


@public(name="adaptive_max_pool1d", method=False, aliases=("nn.functional.adaptive_max_pool1d_with_indices",))
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The maxima of ``output_size`` windows that cover (N, C, L) or (C, L) evenly, and their indices."""
    return _adaptive_max_pool(1, input, output_size)


@public(namespace="nn.functional")
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The maxima of windows that cover (N, C, H, W) or (C, H, W) evenly, and their indices in the H × W plane."""
    return _adaptive_max_pool(2, input, output_size)


@public(namespace="nn.functional")
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """The maxima of windows that cover (N, C, D, H, W) or (C, D, H, W) evenly, and their indices."""
    return _adaptive_max_pool(3, input, output_size)


@public(namespace="nn.functional")
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maximum of ``output_size`` windows that cover (N, C, L) or (C, L) evenly.

    With ``return_indices`` a pair (values, indices).
    """
    found = _adaptive_max_pool(1, input, output_size)
    return found if return_indices else found[0]


@public(namespace="nn.functional")
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows that cover (N, C, H, W) or (C, H, W) evenly; None in ``output_size`` keeps a dim's size.

    With ``return_indices`` a pair (values, indices into the flattened H × W plane).
    """
    found = _adaptive_max_pool(2, input, output_size)
    return found if return_indices else found[0]


@public(namespace="nn.functional")
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of windows that cover (N, C, D, H, W) or (C, D, H, W) evenly; see :func:`adaptive_max_pool2d`."""
    found = _adaptive_max_pool(3, input, output_size)
    return found if return_indices else found[0]

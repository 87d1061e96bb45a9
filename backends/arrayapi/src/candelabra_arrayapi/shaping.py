"""Creation, casts, joining, and views where the backend has no strides of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def kernels(xp: Any, dtypes: Mapping[Any, Any], device: Callable[[int], Any]) -> dict[str, Callable[..., Any]]:
    """Kernels over a namespace; ``device(index)`` is what its creation functions take as ``device=``."""

    def full(shape: tuple[int, ...], value: Any, dtype: Any, index: int) -> Any:
        return xp.full(shape, value, dtype=dtypes[dtype], device=device(index))

    def arange(start: Any, step: Any, length: int, dtype: Any, index: int) -> Any:
        whole = isinstance(start, int) and isinstance(step, int)
        wide = next(v for k, v in dtypes.items() if k.name == ("int64" if whole else "float64"))
        steps = xp.arange(length, dtype=wide, device=device(index))
        return xp.astype(steps * step + start, dtypes[dtype])

    def linspace(start: Any, end: Any, steps: int, dtype: Any, index: int) -> Any:
        wide = next(
            v
            for k, v in dtypes.items()
            if k.name == ("complex128" if complex in (type(start), type(end)) else "float64")
        )
        return xp.astype(xp.linspace(start, end, steps, dtype=wide, device=device(index)), dtypes[dtype])

    def eye(n: int, m: int, dtype: Any, index: int) -> Any:
        return xp.eye(n, m, dtype=dtypes[dtype], device=device(index))

    def cast(x: Any, dtype: Any) -> Any:
        wanted = dtypes[dtype]
        # Compared, not asked of isdtype: that refuses dtypes the standard does not know, bfloat16 among them.
        if not dtype.is_complex and any(x.dtype == held for d, held in dtypes.items() if d.is_complex):
            x = (x != 0) if dtype.name == "bool" else xp.real(x)
        return xp.astype(x, wanted, copy=True)

    def clone(x: Any) -> Any:
        # In C order: of an array of several dims, libraries copy the order in which it lies in memory too.
        return xp.reshape(xp.asarray(xp.reshape(x, (-1,)), copy=True), x.shape)

    def cat(tensors: Sequence[Any], dim: int) -> Any:
        if any(t.ndim == 0 for t in tensors):
            raise ValueError("zero-dimensional arrays cannot be concatenated")
        return xp.concat(tensors, axis=dim)

    def flip(x: Any, dims: tuple[int, ...]) -> Any:
        return xp.asarray(xp.flip(x, axis=dims), copy=True)

    def tril(x: Any, diagonal: int) -> Any:
        if x.ndim < 2:
            raise ValueError("a triangle takes two dims")
        return xp.asarray(xp.tril(x, k=diagonal), copy=True)

    def triu(x: Any, diagonal: int) -> Any:
        if x.ndim < 2:
            raise ValueError("a triangle takes two dims")
        return xp.asarray(xp.triu(x, k=diagonal), copy=True)

    return {
        "full": full, "arange": arange, "linspace": linspace, "eye": eye, "cast": cast, "clone": clone, "cat": cat,
        "flip": flip, "tril": tril, "triu": triu,
    }  # fmt: skip

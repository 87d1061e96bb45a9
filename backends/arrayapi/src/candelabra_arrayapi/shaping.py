"""Creation, casts, copies, concatenation and triangles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from candelabra_arrayapi.placement import on


def kernels(xp: Any, dtypes: Mapping[Any, Any], device: Callable[[int], Any]) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``.

    ``dtypes`` maps the dtypes of candelabra to those of the namespace. ``device(index)`` returns the object that the
    namespace's creation functions take as ``device=``.
    """

    named = {known.name: held for known, held in dtypes.items()}

    def widest(names: Sequence[str], dtype: Any) -> Any:
        """Return the first of the named dtypes that the namespace has, or else the result's."""
        return next((named[name] for name in names if name in named), dtypes[dtype])

    def full(shape: tuple[int, ...], value: Any, dtype: Any, index: int) -> Any:
        return xp.full(shape, value, dtype=dtypes[dtype], **on(device(index)))

    def arange(start: Any, step: Any, length: int, dtype: Any, index: int) -> Any:
        integral = isinstance(start, int) and isinstance(step, int)
        wide = widest(("int64", "int32") if integral else ("float64", "float32"), dtype)
        counter = xp.arange(length, dtype=wide, **on(device(index)))
        return xp.astype(counter * step + start, dtypes[dtype])

    def linspace(start: Any, end: Any, steps: int, dtype: Any, index: int) -> Any:
        numbers = ("complex128", "complex64") if complex in (type(start), type(end)) else ("float64", "float32")
        wide = widest(numbers, dtype)
        return xp.astype(xp.linspace(start, end, steps, dtype=wide, **on(device(index))), dtypes[dtype])

    def eye(n: int, m: int, dtype: Any, index: int) -> Any:
        return xp.eye(n, m, dtype=dtypes[dtype], **on(device(index)))

    def cast(x: Any, dtype: Any) -> Any:
        # isdtype() raises for dtypes that the standard does not define, such as bfloat16, so dtypes are compared.
        if not dtype.is_complex and any(x.dtype == known for d, known in dtypes.items() if d.is_complex):
            x = (x != 0) if dtype.name == "bool" else xp.real(x)
        return xp.astype(x, dtypes[dtype], copy=True)

    def clone(x: Any) -> Any:
        # Libraries keep the memory order of an array with several dims when they copy it; a flat array is in C order.
        return xp.reshape(xp.asarray(xp.reshape(x, (-1,)), copy=True), x.shape)

    def cat(tensors: Sequence[Any], dim: int) -> Any:
        if any(t.ndim == 0 for t in tensors):
            raise ValueError("zero-dimensional arrays cannot be concatenated")
        return xp.concat(tensors, axis=dim)

    def flip(x: Any, dims: tuple[int, ...]) -> Any:
        return xp.asarray(xp.flip(x, axis=dims), copy=True)

    def tril(x: Any, diagonal: int) -> Any:
        if x.ndim < 2:
            raise ValueError(f"a triangle needs at least 2 dims, got shape {tuple(x.shape)}")
        return xp.asarray(xp.tril(x, k=diagonal), copy=True)

    def triu(x: Any, diagonal: int) -> Any:
        if x.ndim < 2:
            raise ValueError(f"a triangle needs at least 2 dims, got shape {tuple(x.shape)}")
        return xp.asarray(xp.triu(x, k=diagonal), copy=True)

    return {
        "full": full, "arange": arange, "linspace": linspace, "eye": eye, "cast": cast, "clone": clone, "cat": cat,
        "flip": flip, "tril": tril, "triu": triu,
    }  # fmt: skip

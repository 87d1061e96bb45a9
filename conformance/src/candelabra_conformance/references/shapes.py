"""Shape functions by NumPy's own functions, or element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from candelabra import Size

from candelabra_conformance.references.arranging import as_strided, unfold, view_as_complex
from candelabra_conformance.references.registry import REFERENCES, reference, references
from candelabra_conformance.references.scatter_extremes import view_dtype

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def _same(x: Array, *_: Any, **__: Any) -> Array:
    return x


def _conjugate(x: Array) -> Array:
    return np.conj(x) if x.dtype.kind == "c" else x


def _conjugate_transpose(x: Array) -> Array:
    return _conjugate(np.swapaxes(x, -1, -2) if x.ndim else x)


def _flattened(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    line = x if x.ndim else x.reshape(1)
    first, last = start_dim % line.ndim, end_dim % line.ndim
    return line.reshape((*line.shape[:first], math.prod(line.shape[first : last + 1]), *line.shape[last + 1 :]))


references(
    {
        "swapaxes": REFERENCES["transpose"],
        "T": lambda x: x.transpose(),
        "mT": lambda x: np.swapaxes(x, -1, -2),
        "Tensor.mH": _conjugate_transpose,
        "adjoint": _conjugate_transpose,
        "Tensor.H": _conjugate_transpose,
        "conj": _conjugate,
        "real": np.real,
        "imag": np.imag,
        "movedim": lambda x, source, destination: np.moveaxis(x, source, destination) if x.ndim else x,
        "reshape": lambda x, *sizes, shape=None: x.reshape(*sizes) if shape is None else x.reshape(shape),
        "Tensor.reshape_as": lambda x, other: x.reshape(other.shape),
        "Tensor.view_as": lambda x, other: x.reshape(other.shape),
        "flatten": _flattened,
        "ravel": np.ravel,
        "unflatten": lambda x, dim, sizes: x.reshape((*x.shape[:dim], *sizes, *x.shape[dim + 1 :])),
        "broadcast_to": np.broadcast_to,
        "Tensor.expand_as": lambda x, other: np.broadcast_to(x, other.shape),
        "broadcast_tensors": lambda *tensors: tuple(np.broadcast_arrays(*tensors)),
        "broadcast_shapes": lambda *shapes: Size(
            np.broadcast_shapes(*[s if isinstance(s, int) else tuple(s) for s in shapes])
        ),
        "atleast_1d": np.atleast_1d,
        "atleast_2d": np.atleast_2d,
        "atleast_3d": np.atleast_3d,
        "meshgrid": lambda *tensors, indexing="ij": tuple(np.meshgrid(*tensors, indexing=indexing)),
        "Tensor.contiguous": _same,
        "clone_in_format": _same,
        "Tensor.dim_order": lambda x, **_: tuple(range(x.ndim)),
        "Tensor.resize_": lambda x, *sizes: _first(x, sizes[0] if isinstance(sizes[0], tuple) else sizes),
        "resize_as_": lambda x, template: _first(x, template.shape),
        "Tensor.is_set_to": lambda x, other: False,
    }
)


def _first(x: Array, shape: Ints) -> Array:
    """Return the first elements in another shape."""
    return x.reshape(-1)[: math.prod(shape)].reshape(shape)


@reference("Tensor.set_")
def set_(x: Array, source: Array | None = None, offset: int = 0, size: Ints | None = None, stride: Any = None) -> Array:
    """Return the elements of the source, or some of them."""
    if source is None:
        return np.empty(0, x.dtype)
    return source if size is None else as_strided(source, size, stride, offset, None)


# -- splitting dims ---------------------------------------------------------------------------------------------------
def _narrow(x: Array, dim: int, start: int, length: int) -> Array:
    first = start % x.shape[dim] if start < 0 else start
    return np.take(x, np.arange(first, first + length), dim)


def _split(x: Array, size: int | Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    sizes = size if not isinstance(size, int) else [size] * (x.shape[dim] // size) + [x.shape[dim] % size]
    if isinstance(size, int) and not sizes[-1] and len(sizes) > 1:
        sizes = sizes[:-1]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], dim))


references(
    {
        "select": lambda x, dim, index: np.take(x, index, dim),
        "narrow": _narrow,
        "unbind": lambda x, dim=0: tuple(np.moveaxis(x, dim, 0)),
        "split": _split,
        "split_with_sizes": _split,
        "unsafe_split": _split,
        "chunk": lambda x, chunks, dim=0: _split(x, max(1, -(-x.shape[dim] // chunks)), dim),
        "tensor_split": lambda x, where, dim=0: tuple(np.array_split(x, where, dim)),
        "hsplit": lambda x, where: tuple(np.hsplit(x, where)),
        "vsplit": lambda x, where: tuple(np.vsplit(x, where)),
        "dsplit": lambda x, where: tuple(np.dsplit(x, where)),
    }
)


@reference("slice_copy")
def slice_copy(x: Array, dim: int, start: int | None, end: int | None, step: int) -> Array:
    """Return NumPy's slice."""
    return x[(*[slice(None)] * dim, slice(start, end, step))]


# -- joining ----------------------------------------------------------------------------------------------------------
references(
    {
        "stack": lambda tensors, dim: np.stack(tensors, dim),
        "hstack": np.hstack,
        "vstack": np.vstack,
        "dstack": np.dstack,
        "column_stack": lambda tensors: np.column_stack([np.atleast_1d(t) for t in tensors]),
        "fliplr": np.fliplr,
        "flipud": np.flipud,
        "rot90": lambda x, k, dims: np.rot90(x, k, tuple(dims)),
        "repeat": np.tile,
        "tile": np.tile,
        "repeat_interleave": lambda x, repeats, dim, output_size: np.repeat(x, repeats, dim),
        "repeat_interleave_tensor": lambda x, repeats, dim, output_size: np.repeat(x, repeats.reshape(-1), dim),
        "diag": np.diag,
        "diagflat": np.diagflat,
        "trace": np.trace,
    }
)


@reference("repeat_interleave_indices", as_given=True)
def repeat_interleave_indices(repeats: Array, output_size: int | None) -> Array:
    """Repeat each index by its count."""
    return np.repeat(np.arange(repeats.size), repeats.astype(np.int64))


@reference("_chunk_cat")
def chunk_cat(tensors: Sequence[Array], dim: int, num_chunks: int) -> Array:
    """Join chunk by chunk."""
    rows = []
    for number in range(num_chunks):
        row = []
        for t in tensors:
            size = -(-t.shape[dim] // num_chunks)
            piece = np.zeros((*t.shape[:dim], size, *t.shape[dim:][1:]), t.dtype)
            part = np.moveaxis(np.moveaxis(t, dim, 0)[number * size : (number + 1) * size], 0, dim)
            piece[tuple(slice(0, n) for n in part.shape)] = part
            row.append(piece.reshape((*t.shape[:dim], -1)))
        rows.append(np.concatenate(row, -1))
    return np.stack(rows, -2)


@reference("constant_pad_nd")
def constant_pad_nd(x: Array, pad: Sequence[int], value: Any) -> Array:
    """Call NumPy's function after negative sizes have removed elements."""
    amounts = [(0, 0)] * (x.ndim - len(pad) // 2) + [tuple(pad[i : i + 2]) for i in range(len(pad) - 2, -1, -2)]
    kept = x[tuple(slice(max(0, -b), n - max(0, -a)) for n, (b, a) in zip(x.shape, amounts, strict=True))]
    width = [(max(0, b), max(0, a)) for b, a in amounts]
    return np.pad(kept, width, constant_values=value) if width else kept


@reference("diag_embed")
def diag_embed(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Write vector by vector."""
    made = np.zeros((*x.shape[:-1], *(x.shape[-1] + abs(offset),) * 2), x.dtype)
    for place in np.ndindex(*x.shape[:-1]):
        made[place] = np.diag(x[place], offset)
    return np.moveaxis(made, (-2, -1), (dim1, dim2))


@reference("block_diag")
def block_diag(*tensors: Array) -> Array:
    """Write block by block."""
    blocks = [np.atleast_2d(t) for t in tensors]
    out = np.zeros(np.sum([b.shape for b in blocks], 0), np.result_type(*blocks))
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


@reference("Tensor.fill_diagonal_")
def fill_diagonal(x: Array, value: Any, wrap: bool = False) -> Array:
    """Call NumPy's function."""
    out = x.copy()
    if x.size:
        np.fill_diagonal(out, value, wrap)
    return out


# -- copies of views --------------------------------------------------------------------------------------------------
references(
    {
        **{f"{view}_copy": REFERENCES[view] for view in (
            "alias", "detach", "permute", "transpose", "t", "view", "unsqueeze", "squeeze", "diagonal", "view_as_real",
            "select", "narrow", "unbind", "split", "split_with_sizes",
        )},
        "expand_copy": lambda x, size, implicit: np.broadcast_to(x, size),
        "unfold_copy": unfold,
        "as_strided_copy": as_strided,
        "view_as_complex_copy": view_as_complex,
    }
)  # fmt: skip
references({"view_dtype_copy": view_dtype, "view_as_dtype": view_dtype}, as_given=True)

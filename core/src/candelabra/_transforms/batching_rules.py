"""The batching rules of operators whose records do not imply one: views, products, indexing, factories.

A rule gets the tensors of the level below, of which the marked ones have the batch dim in front; see
:mod:`candelabra._records.batching`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import indexed_geometry
from candelabra._layout import contiguous_strides
from candelabra._operators.indexing.advanced import advanced_shape
from candelabra._records.batching import Marks, aligned, all_aligned, all_batched, expanded, in_front, moved, rank_of
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._transforms.batching_kernels import FACTORIES, Batched, declare, squeezed
from candelabra._transforms.level import frame_at
from candelabra._transforms.looping import one_by_one
from candelabra._transforms.user_line import users_line
from candelabra.dtypes import bool_, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def run(name: str, *args: Any) -> Any:
    """Call an operator with all arguments by position, in canonical form."""
    return OPERATORS[name].canonical(*args)


def examples(size: int, like: Tensor, rank: int) -> Tensor:
    """Return the index of each example, with dims of size 1 behind it up to ``rank`` dims."""
    numbers = OPERATORS["new_arange"].function(like, 0, 1, size, dtype=int64)
    return aligned(numbers, rank - 1)


# -- operators that accept batch dims in front ------------------------------------------------------------------------
for _name in (
    "alias", "cast", "clone", "detach", "frexp", "tril", "triu", "view_as_complex", "view_as_real", "view_dtype",
    "linalg_cholesky_ex", "linalg_det", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh",
    "linalg_geqrf", "linalg_inv_ex", "linalg_ldl_factor_ex", "linalg_lu_factor_ex",
    "linalg_slogdet", "linalg_svd", "linalg_svdvals", "linalg_matrix_exp",
):  # fmt: skip
    declare(_name)(in_front(OPERATORS[_name]))


def solving(op: str) -> Callable[..., Any]:
    """Return the rule of a solver: the batch dims of matrices and right-hand sides are aligned."""

    def rule(size: int, batched: Marks, A: Any, B: Any, *rest: Any) -> Any:
        ranks = rank_of(A, batched[0]), rank_of(B, batched[1])
        vector = op == "linalg_solve_ex" and (
            ranks[1] == 1 or (ranks[1] == ranks[0] - 1 and _example(B, batched[1]) == _example(A, batched[0])[:-1])
        )
        A, B = all_batched(size, batched, (A, B))
        if vector:
            B = run("unsqueeze", B, len(B._payload.shape))
        rank = max(len(A._payload.shape), len(B._payload.shape))
        out = run(op, aligned(A, rank - len(A._payload.shape)), aligned(B, rank - len(B._payload.shape)), *rest)
        if not vector:
            return out
        return type(out)(run("squeeze", out[0], (len(out[0]._payload.shape) - 1,)), *out[1:])

    return rule


@declare("linalg_qr")
def _qr(size: int, batched: Marks, A: Any, mode: str) -> Any:
    out = run("linalg_qr", A, mode)
    return out if mode != "r" else (run("new_full", out[1], (size, 0), 0, None), out[1])


@declare("linalg_lstsq")
def _lstsq(size: int, batched: Marks, A: Any, B: Any, *rest: Any) -> Any:
    ranks = rank_of(A, batched[0]), rank_of(B, batched[1])
    vector = ranks[1] == 1 or (ranks[1] == ranks[0] - 1 and _example(B, batched[1]) == _example(A, batched[0])[:-1])
    A, B = all_batched(size, batched, (A, B))
    if not vector:
        A, B = aligned(A, ranks[1] - ranks[0]), aligned(B, ranks[0] - ranks[1])
    return run("linalg_lstsq", A, B, *rest)


@declare("linalg_ldl_solve")
def _ldl_solve(size: int, batched: Marks, LD: Any, pivots: Any, B: Any, hermitian: bool) -> Any:
    missing = rank_of(B, batched[2]) - rank_of(LD, batched[0])
    LD, pivots, B = all_batched(size, batched, (LD, pivots, B))
    return run("linalg_ldl_solve", aligned(LD, missing), aligned(pivots, missing), aligned(B, -missing), hermitian)


def _example(tensor: Any, marked: Any) -> tuple[int, ...]:
    return tuple(tensor._payload.shape)[bool(marked) :]


for _name in ("linalg_solve_ex", "triangular_solution"):
    declare(_name)(solving(_name))


def transforming(op: str) -> Callable[..., Any]:
    """Return the rule of a Fourier transform over the dims that its second argument lists."""
    return lambda size, batched, input, dim, *rest: run(op, input, tuple([d + 1 for d in dim]), *rest)


for _name in ("fft_c2c", "fft_r2c", "fft_c2r"):
    declare(_name)(transforming(_name))


# -- views ------------------------------------------------------------------------------------------------------------
@declare("as_strided")
def _as_strided(size: int, batched: Marks, input: Any, shape: Any, stride: Any, offset: Any, origin: Any) -> Any:
    return OPERATORS["as_strided"].function(input, (size, *shape), (input.stride(0), *stride), offset)


@declare("basic_index")
def _basic_index(size: int, batched: Marks, input: Any, index: Any) -> Any:
    return run("basic_index", input, (slice(0, size, 1), *index))


@declare("basic_index_adjoint")
def _basic_index_adjoint(size: int, batched: Marks, input: Any, shape: Any, index: Any) -> Any:
    input = _broadcast_to_part(input, shape, index)
    return run("basic_index_adjoint", input, (size, *shape), (slice(0, size, 1), *index))


def _broadcast_to_part(source: Tensor, shape: Sequence[int], index: Any) -> Tensor:
    """Return a batched source so that it broadcasts to the part of a tensor that an index selects."""
    sizes = tuple(shape)
    part = indexed_geometry(sizes, contiguous_strides(sizes), 0, index)[0]
    return aligned(source, len(part) - rank_of(source, True))


@declare("basic_index_scatter")
def _basic_index_scatter(size: int, batched: Marks, input: Any, src: Any, index: Any) -> Any:
    input, src = all_batched(size, batched, (input, src))
    src = _broadcast_to_part(src, input._payload.shape[1:], index)
    return run("basic_index_scatter", input, src, (slice(0, size, 1), *index))


@declare("diagonal")
def _diagonal(size: int, batched: Marks, input: Any, offset: int, dim1: int, dim2: int) -> Any:
    return run("diagonal", input, offset, dim1 + 1, dim2 + 1)


@declare("diagonal_scatter")
def _diagonal_scatter(size: int, batched: Marks, input: Any, src: Any, offset: int, dim1: int, dim2: int) -> Any:
    return run("diagonal_scatter", *all_batched(size, batched, (input, src)), offset, dim1 + 1, dim2 + 1)


@declare("expand")
def _expand(size: int, batched: Marks, input: Any, shape: Any) -> Any:
    return run("expand", aligned(input, len(shape) - rank_of(input, True)), (size, *shape))


@declare("permute")
def _permute(size: int, batched: Marks, input: Any, dims: Any) -> Any:
    return run("permute", input, (0, *[d + 1 for d in dims]))


@declare("squeeze")
def _squeeze(size: int, batched: Marks, input: Any, dims: Any) -> Any:
    return run("squeeze", input, tuple([d + 1 for d in dims]))


@declare("t")
def _t(size: int, batched: Marks, input: Any) -> Any:
    return run("transpose", input, 1, 2) if len(input._payload.shape) == 3 else run("alias", input)


@declare("transpose")
def _transpose(size: int, batched: Marks, input: Any, dim0: int, dim1: int) -> Any:
    return run("transpose", input, dim0 + 1, dim1 + 1) if len(input._payload.shape) > 1 else run("alias", input)


@declare("unfold")
def _unfold(size: int, batched: Marks, input: Any, dimension: int, length: int, step: int) -> Any:
    if rank_of(input, True):
        return run("unfold", input, dimension + 1, length, step)
    return run("unfold", aligned(input, 1), 1, length, step).select(1, 0)


@declare("unsqueeze")
def _unsqueeze(size: int, batched: Marks, input: Any, dim: int) -> Any:
    return run("unsqueeze", input, dim + 1)


@declare("view")
def _view(size: int, batched: Marks, input: Any, shape: Any) -> Any:
    return run("view", input, (size, *shape))


@declare("masked_fill_cast")
def _masked_fill_cast(size: int, batched: Marks, input: Any, mask: Any, value: Any) -> Any:
    return NotImplemented if batched[2] else run("masked_fill_cast", *all_aligned(batched[:2], (input, mask)), value)


@declare("moved")
def _moved(size: int, batched: Marks, input: Any, target: Any, dtype: Any) -> Any:
    return run("moved", input, target, dtype)


# -- copies -----------------------------------------------------------------------------------------------------------
@declare("cat")
def _cat(size: int, batched: Marks, tensors: Any, dim: int) -> Any:
    marks = batched[0]
    rank = max(rank_of(t, m) for t, m in zip(tensors, marks))
    kept = [
        t if m else expanded(t, size) for t, m in zip(tensors, marks) if rank_of(t, m) == rank
    ]  # an empty vector may be combined with tensors of any rank
    return run("cat", tuple(kept), dim + 1)


# -- products ---------------------------------------------------------------------------------------------------------
@declare("matmul")
def _matmul(size: int, batched: Marks, input: Any, other: Any) -> Any:
    ranks = rank_of(input, batched[0]), rank_of(other, batched[1])
    if ranks[0] == 1 and ranks[1] <= 2:
        if not batched[1]:  # (B, k) @ (k, m) or (B, k) @ (k)
            return run("matmul", input, other)
        if not batched[0] and ranks[1] == 1:
            return run("matmul", other, input)
    if not batched[0] and ranks == (2, 1):  # (n, k) @ (B, k)
        return run("matmul", other, run("t", input))
    left = run("unsqueeze", input, int(batched[0])) if ranks[0] == 1 else input
    right = run("unsqueeze", other, len(other._payload.shape)) if ranks[1] == 1 else other
    rank = max(rank_of(left, batched[0]), rank_of(right, batched[1]))
    if batched[0]:
        left = aligned(left, rank - rank_of(left, True))
    if batched[1]:
        right = aligned(right, rank - rank_of(right, True))
    # Products of a column and a row, as in per-example gradients, are fastest without sums of one term.
    name = "mul" if left._payload.shape[-1] == 1 == right._payload.shape[-2] else "matmul"
    out = run(name, left, right)
    last = len(out._payload.shape) - 1
    gone = tuple([d for d, r in ((last - 1, ranks[0]), (last, ranks[1])) if r == 1])
    return run("squeeze", out, gone) if gone else out


# -- gather and scatter -----------------------------------------------------------------------------------------------
def finding(op: str) -> Callable[..., Any]:
    """Return the rule of argmax and argmin, which flatten the tensor if no dim is given."""

    def rule(size: int, batched: Marks, input: Any, dim: int | None, keepdim: bool) -> Any:
        rank = rank_of(input, True)
        if dim is None:
            out = run(op, input.reshape((size, -1)), 1, False)
            return aligned(out, rank) if keepdim else out
        out = run(op, aligned(input, not rank), dim + 1, keepdim)
        return out if rank else squeezed(out)

    return rule


for _name in ("argmax", "argmin"):
    declare(_name)(finding(_name))


def along(op: str) -> Callable[..., Any]:
    """Return the rule of an operator with an index of the input's rank along one dim, and maybe a source."""

    def rule(size: int, batched: Marks, input: Any, dim: int, index: Any, *rest: Any) -> Any:
        source = [rest[0]] if rest and hasattr(rest[0], "_payload") else []
        marks = (batched[0], batched[2], *batched[3 : 3 + len(source)])
        tensors = all_batched(size, marks, (input, index, *source))
        ranks = [len(t._payload.shape) for t in tensors]
        tensors = [aligned(t, r == 1) for t, r in zip(tensors, ranks)]  # a number acts as a vector of one element
        out = run(op, tensors[0], dim + 1, *tensors[1:], *rest[len(source) :])
        return squeezed(out) if (ranks[0] if source else ranks[1]) == 1 else out

    return rule


for _name in ("gather", "scatter_add", "scatter_src", "scatter_extreme"):
    declare(_name)(along(_name))


@declare("index_select")
def _index_select(size: int, batched: Marks, input: Any, dim: int, index: Any) -> Any:
    rank = rank_of(input, batched[0])
    if not rank:
        input = run("unsqueeze", input, int(batched[0]))
    if not batched[2]:
        out = run("index_select", input, dim + 1, index)
        return out if rank else squeezed(out)
    if not index._payload.shape[1:]:
        index = aligned(index, 1)
    if batched[0]:
        chosen = run("index", moved(input, dim + 1, 1), (examples(size, index, 2), index))
        out = moved(chosen, 1, dim + 1)
    else:
        out = moved(run("index", moved(input, dim, 0), (index,)), 1, dim + 1)
    return out if rank else squeezed(out)


@declare("index_add")
def _index_add(size: int, batched: Marks, input: Any, dim: int, index: Any, source: Any) -> Any:
    rank = rank_of(input, batched[0])
    input, source = all_batched(size, (batched[0], batched[3]), (input, source))
    if not rank:
        input = aligned(input, 1)
        source = aligned(source, len(source._payload.shape) == 1)
    if not batched[2]:
        out = run("index_add", input, dim + 1, index, source)
        return out if rank else squeezed(out)
    index = aligned(index, len(index._payload.shape) == 1)
    selected = (examples(size, index, 2), index)
    out = run("index_put", moved(input, dim + 1, 1), selected, moved(source, dim + 1, 1), True)
    out = moved(out, 1, dim + 1)
    return out if rank else squeezed(out)


def _refuse_masks(indices: Sequence[Any], marks: Sequence[bool]) -> None:
    for index, marked in zip(indices, marks):
        if marked and index._keys & bool_.bit:
            raise RuntimeError(
                "vmap: It looks like you're indexing with a batched mask, x[mask]: each example would have a result of "
                f"another size. Please use candelabra.where or masked_fill instead:{users_line()}"
            )


def _by_example(size: int, marks: Sequence[bool], indices: Sequence[Any]) -> tuple[Sequence[Any], int]:
    """Return index tensors for a batched input, the first one for the batch dim, and the rank of their broadcast."""
    lists: list[Any] = []
    for index, marked in zip(indices, marks):
        if index is not None and index._keys & bool_.bit:  # a mask for several dims, the same for all examples
            lists += [(found, False) for found in run("nonzero", index).unbind(1)]
        else:
            lists.append((index, marked))
    rank = max(rank_of(index, marked) for index, marked in lists if index is not None)
    like = next(index for index, _ in lists if index is not None)
    placed = [
        index if index is None or not marked else aligned(index, rank - rank_of(index, True)) for index, marked in lists
    ]
    return (examples(size, like, rank + 1), *placed), rank


def _picked_at(indices: Sequence[Any]) -> int:
    """Return the dim of an indexed tensor's result at which the dims of the indices are."""
    used = [d for d, index in enumerate(indices) if index is not None]
    return used[0] if used[-1] - used[0] + 1 == len(used) else 0


def _to_position(tensor: Tensor, rank: int, position: int) -> Tensor:
    """Return a tensor (B, picked dims, rest) as (B, ``position`` dims, picked dims, rest)."""
    total = len(tensor._payload.shape)
    order = (0, *range(1 + rank, 1 + rank + position), *range(1, 1 + rank), *range(1 + rank + position, total))
    found: Tensor = run("permute", tensor, order)
    return found


def _from_position(tensor: Tensor, rank: int, position: int) -> Tensor:
    """Return a tensor (B, ``position`` dims, picked dims, rest) as (B, picked dims, rest)."""
    total = len(tensor._payload.shape)
    order = (0, *range(1 + position, 1 + position + rank), *range(1, 1 + position), *range(1 + position + rank, total))
    found: Tensor = run("permute", tensor, order)
    return found


@declare("index")
def _index(size: int, batched: Marks, input: Any, indices: Any) -> Any:
    _refuse_masks(indices, batched[1])
    if batched[0]:
        selected, rank = _by_example(size, batched[1], indices)
        out = run("index", input, selected)
        position = _picked_at(selected[1:])
        return _to_position(out, rank, position) if position else out
    ranks = [(rank_of(i, m), m) for i, m in zip(indices, batched[1]) if i is not None]
    rank = max(r for r, _ in ranks)
    placed = [i if i is None or not m else aligned(i, rank - rank_of(i, True)) for i, m in zip(indices, batched[1])]
    return moved(run("index", input, tuple(placed)), _picked_at(_without_masks(placed)), 0)


def _without_masks(indices: Sequence[Any]) -> list[Any]:
    """Return indices with one entry for each dim."""
    found: list[Any] = []
    for index in indices:
        ranks = len(index._payload.shape) if index is not None and index._keys & bool_.bit else 1
        found += [index] * ranks
    return found


@declare("index_put")
def _index_put(size: int, batched: Marks, input: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    _refuse_masks(indices, batched[1])
    if not batched[0]:
        input = expanded(input, size)
    selected, rank = _by_example(size, batched[1], indices)
    shape = tuple(input._payload.shape)
    picked = advanced_shape(shape, selected)  # (B, picked dims, rest)
    position = _picked_at(selected[1:])
    if position:
        picked = (
            picked[0],
            *picked[1 + rank : 1 + rank + position],
            *picked[1 : 1 + rank],
            *picked[1 + rank + position :],
        )
    if batched[2]:
        values = aligned(values, len(picked) - len(values._payload.shape))
    values = run("expand", values, picked)
    return run("index_put", input, selected, _from_position(values, rank, position) if position else values, accumulate)


@declare("embedding")
def _embedding(size: int, batched: Marks, weight: Any, indices: Any, padding: int, by_frequency: bool) -> Any:
    if not batched[0]:
        return run("embedding", weight, indices, padding, by_frequency)
    if not batched[1]:
        return run("index", weight, (None, indices))
    return run("index", weight, (examples(size, indices, len(indices._payload.shape)), indices))


# -- sizes that depend on values --------------------------------------------------------------------------------------
@declare("bincount")
def _bincount(size: int, batched: Marks, *args: Any) -> Any:
    return one_by_one(OPERATORS["bincount"])(size, batched, *args)


@declare("histc")
def _histc(size: int, batched: Marks, *args: Any) -> Any:
    return one_by_one(OPERATORS["histc"])(size, batched, *args)


# -- checks -----------------------------------------------------------------------------------------------------------
@declare("raise_if_nonzero")
def _raise_if_nonzero(size: int, batched: Marks, codes: Any, text: str, error: Any) -> Any:
    return expanded(run("raise_if_nonzero", codes, text, error), size)


# -- factories --------------------------------------------------------------------------------------------------------
def _new_full(op: Operator[..., Any]) -> Callable[..., Any]:
    def kernel(input: Batched, shape: Any, value: Any, dtype: Any) -> Batched:
        if not input.batched:
            return Batched(run("new_full", input.tensor, shape, value, dtype), input.frame, False)
        return Batched(run("new_full", input.tensor, (input.frame.size, *shape), value, dtype), input.frame, True)

    return kernel


def _full(op: Operator[..., Any]) -> Callable[..., Any]:
    """``full`` on the device of a level: ``zeros_like(x)`` and others can be written for each example."""

    def kernel(shape: Any, value: Any, dtype: Any, depth: int) -> Batched:
        frame = frame_at(depth)
        return Batched(run("new_full", frame.like, (frame.size, *shape), value, dtype), frame, True)

    return kernel


def unbatched_factory(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return the kernel of any other factory: its result is the same for all examples."""

    def kernel(*args: Any) -> Batched:
        frame = frame_at(args[-1])
        return Batched(op.canonical(*args[:-1], frame.like._instance), frame, False)

    return kernel


FACTORIES["new_full"] = _new_full
FACTORIES["full"] = _full
FACTORIES["arange"] = FACTORIES["linspace"] = FACTORIES["eye"] = unbatched_factory

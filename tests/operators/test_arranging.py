"""Broadcasting, splitting, blocks, padding and diagonals against NumPy and closed forms."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def array(x: Any) -> np.ndarray:
    """A tensor's values."""
    return np.asarray(x.detach().numpy())


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


# -- broadcasting -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shapes", [((2,), (3, 1)), (3, (2, 3)), ((), (4, 1), (1, 5)), ((0,), (1,)), ((1, 2), (2, 2))])
def test_shapes_broadcast_as_in_numpy(shapes: Any) -> None:
    """Ints are shapes of one dim."""
    found = cd.broadcast_shapes(*shapes)
    assert isinstance(found, cd.Size)
    assert tuple(found) == np.broadcast_shapes(*shapes)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    """The error says which argument does not fit, and that sizes are not negative."""
    with pytest.raises(RuntimeError, match=r"length 4 at -1! Mismatching argument at index 2 had \(4,\)"):
        cd.broadcast_shapes((2,), (3, 1), (4,))
    with pytest.raises(ValueError, match="dimension with negative length"):
        cd.broadcast_shapes((-1,))


def test_tensors_broadcast_to_views() -> None:
    """The results share memory with the arguments, and carry gradients back to them."""
    x, y = ramp(3).requires_grad_(), ramp(2, 1)
    wide, tall = cd.broadcast_tensors(x, y)
    assert wide.shape == tall.shape == (2, 3)
    assert wide.data_ptr() == x.data_ptr()
    wide.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)"):
        cd.broadcast_tensors(cd.ones(2), cd.ones(3))


# -- splitting --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("split", [cd.split_with_sizes, cd.unsafe_split_with_sizes, cd.Tensor.split_with_sizes])
def test_parts_of_given_sizes(split: Any) -> None:
    """Sizes of zero are parts too."""
    parts = split(ramp(5, 2), [2, 0, 3], 0)
    assert [p.shape for p in parts] == [(2, 2), (0, 2), (3, 2)]
    assert parts[2].tolist() == [[4, 5], [6, 7], [8, 9]]


def test_unsafe_parts_are_those_of_split_and_chunk() -> None:
    """They carry gradients as any view does."""
    x = ramp(5).requires_grad_()
    assert [p.tolist() for p in cd.unsafe_split(x, 2)] == [[0, 1], [2, 3], [4]]
    first, second = x.unsafe_chunk(2)
    (first.sum() + 2 * second.sum()).backward()
    assert x.grad.tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("sizes", "match"),
    [([2, 2], "expects split_sizes to sum exactly to 5"), ([2, -2, 5], "split_sizes have only non-negative entries")],
)
def test_sizes_that_do_not_split_are_refused(sizes: Any, match: str) -> None:
    """They must not be negative, and sum to the dim's size."""
    with pytest.raises(RuntimeError, match=match):
        cd.split_with_sizes(cd.ones(5), sizes)


def test_a_number_does_not_split() -> None:
    """There is no dim to split."""
    with pytest.raises(RuntimeError, match="split expects at least a 1-dimensional tensor"):
        cd.tensor(1.0).split(1)


def test_chunks_are_joined_part_by_part() -> None:
    """Each tensor is padded with zeros to a whole number of chunks."""
    assert cd._chunk_cat([cd.ones(5), 2 * cd.ones(3)], 0, 2).tolist() == [[1, 1, 1, 2, 2], [1, 1, 0, 2, 0]]


@pytest.mark.parametrize(
    ("tensors", "dim", "count", "match"),
    [
        ([cd.ones(2)], 0, 0, "expects positive num_chunks"),
        ([], 0, 1, "expects a non-empty input tensor list"),
        ([cd.ones(2, 2), cd.ones(2)], 1, 1, "expects dim < ndim for all input tensors"),
        ([cd.ones(0)], 0, 1, "expects non-empty tensor"),
    ],
)
def test_chunks_that_cannot_be_joined_are_refused(tensors: Any, dim: int, count: int, match: str) -> None:
    """Every tensor needs elements and the dim."""
    with pytest.raises(RuntimeError, match=match):
        cd._chunk_cat(tensors, dim, count)


# -- joining ----------------------------------------------------------------------------------------------------------
def test_empty_vectors_are_passed_over_when_joining() -> None:
    """Their dtype counts, their shape does not: a habit of PyTorch from before tensors could be empty otherwise."""
    joined = cd.cat([cd.empty(0, dtype=cd.float64), cd.ones(2, 3)], 1)
    assert joined.shape == (2, 3)
    assert joined.dtype is cd.float64
    assert cd.cat([cd.empty(0), cd.empty(0)]).shape == (0,)
    assert cd.concat is cd.concatenate


def test_nothing_cannot_be_joined() -> None:
    """An empty list has no dtype."""
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        cd.cat([])


def test_joining_into_out_of_its_own_memory_is_refused() -> None:
    """The result would be written over what it is read from; another part of the same memory is fine."""
    base = ramp(4, 2)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        cd.cat([base[:1], base[1:2]], out=base[1:3])
    assert cd.cat([base[:1], base[1:2]], out=base[2:]).tolist() == [[0, 1], [2, 3]]
    assert base.tolist() == [[0, 1], [2, 3], [0, 1], [2, 3]]


@pytest.mark.parametrize("name", ["stack", "hstack", "vstack", "dstack", "column_stack", "row_stack", "concat"])
def test_joined_tensors_go_into_out(name: str) -> None:
    """``out=`` is resized and returned."""
    parts, out = [ramp(2, 2), ramp(2, 2) + 4], cd.empty(0)
    made = getattr(cd, name)(parts, out=out)
    assert made is out
    reference = {"concat": np.concatenate, "row_stack": np.vstack}.get(name) or getattr(np, name)
    assert (array(out) == reference([array(p) for p in parts])).all()


# -- matrices ---------------------------------------------------------------------------------------------------------
def test_blocks_stand_on_a_diagonal() -> None:
    """Numbers and vectors are blocks too, and the dtype is the common one."""
    made = cd.block_diag(cd.ones(2, dtype=cd.int32), 2 * cd.ones(2, 2), cd.tensor(3))
    assert made.tolist() == [[1, 1, 0, 0, 0], [0, 0, 2, 2, 0], [0, 0, 2, 2, 0], [0, 0, 0, 0, 3]]
    assert made.dtype is cd.float32
    assert cd.block_diag().shape == (1, 0)
    with pytest.raises(RuntimeError, match=r"must have 2 or fewer dimensions\. Input 1 has 3 dimensions"):
        cd.block_diag(cd.ones(1), cd.ones(1, 1, 1))


def test_blocks_carry_gradients() -> None:
    """Each block gets its share."""
    x, y = cd.ones(1, 2, requires_grad=True), cd.ones(2, 1, requires_grad=True)
    (cd.block_diag(x, y) * ramp(3, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 1]]
    assert y.grad.tolist() == [[5], [8]]


def test_the_conjugate_transpose_of_matrices_and_numbers() -> None:
    """Other ranks are refused, with a hint for batches."""
    z = cd.tensor([[1 + 2j, 3j]])
    assert z.H.tolist() == [[1 - 2j], [-3j]]
    assert cd.tensor(1 + 2j).H.item() == 1 - 2j
    with pytest.raises(RuntimeError, match=r"\(2-D tensors\). Got 3-D tensor. For batches of matrices, consider"):
        cd.ones(1, 2, 3).H  # noqa: B018
    with pytest.raises(RuntimeError, match=r"Got 1-D tensor\.$"):
        cd.ones(1).H  # noqa: B018


@pytest.mark.parametrize(("shape", "wrap"), [((3, 3), False), ((2, 5), True), ((7, 3), False), ((7, 3), True)])
def test_diagonals_are_filled_in_place(shape: Any, wrap: bool) -> None:
    """Wrapped ones begin anew below, as in NumPy."""
    wanted = np.zeros(shape)
    np.fill_diagonal(wanted, 5, wrap=wrap)
    x = cd.zeros(shape)
    assert x.fill_diagonal_(5, wrap) is x
    assert (array(x) == wanted).all()


def test_diagonals_of_cubes_and_gradients_beside_them() -> None:
    """What was overwritten gets no gradient."""
    assert cd.zeros(3, 3, 3).fill_diagonal_(1).nonzero().tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    x = cd.ones(2, 2, requires_grad=True)
    (x * 3).fill_diagonal_(0).sum().backward()
    assert x.grad.tolist() == [[0, 3], [3, 0]]
    with pytest.raises(RuntimeError, match="dimensions must larger than 1"):
        cd.ones(3).fill_diagonal_(1)
    with pytest.raises(RuntimeError, match="all dimensions of input must be of equal length"):
        cd.ones(2, 3, 2).fill_diagonal_(1)


# -- padding ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pad", [(1, 2), (0, 0), (1, 0, 2, 3), (-1, 1), (2, -1, -1, -1), (-1, -2)])
def test_padding_and_cutting_off(pad: tuple[int, ...]) -> None:
    """The amounts count from the last dim, before and after."""
    x = ramp(3, 4)
    wanted = array(x)
    for number in range(len(pad) // 2):
        d = 1 - number
        left, right = pad[2 * number], pad[2 * number + 1]
        wanted = np.take(wanted, range(max(0, -left), wanted.shape[d] - max(0, -right)), d)
        width = [(0, 0), (0, 0)]
        width[d] = (max(0, left), max(0, right))
        wanted = np.pad(wanted, width, constant_values=7)
    assert array(cd.constant_pad_nd(x, pad, 7)).tolist() == wanted.tolist()


def test_padding_in_other_dtypes_and_its_gradient() -> None:
    """A number is cast to the dtype; the padding has no gradient; the result is a copy."""
    assert cd.constant_pad_nd(cd.tensor([True]), (1, 0)).tolist() == [False, True]
    assert cd.constant_pad_nd(cd.tensor([1]), (0, 1), 2.7).tolist() == [1, 2]
    x = cd.ones(2, requires_grad=True)
    (cd.constant_pad_nd(x, (1, 1)) * ramp(4)).sum().backward()
    assert x.grad.tolist() == [1, 2]
    assert cd.constant_pad_nd(x, (0, 0)).data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("pad", "match"),
    [
        ((1,), "Length of pad must be even but instead it equals 1"),
        ((1, 1, 1, 1), "Pad length is 4 while the input has 1 dimensions"),
        ((-3, 0), "length must be non-negative"),
    ],
)
def test_paddings_that_do_not_fit_are_refused(pad: Any, match: str) -> None:
    """Pairs, at most one per dim, and no more cut off than there is."""
    with pytest.raises(RuntimeError, match=match):
        cd.constant_pad_nd(cd.ones(2), pad)


# -- turning ----------------------------------------------------------------------------------------------------------
def test_flipping_takes_dims_by_position_and_by_name() -> None:
    """Ints, a tuple, and ``dims=``."""
    x = ramp(2, 3)
    assert (
        x.flip(0, 1).tolist() == cd.flip(x, dims=(0, 1)).tolist() == x.flip((0, 1)).tolist() == [[5, 4, 3], [2, 1, 0]]
    )


@pytest.mark.parametrize("k", range(-1, 5))
def test_quarter_turns(k: int) -> None:
    """As NumPy turns, in memory of its own."""
    x = ramp(2, 3)
    assert array(cd.rot90(x, k)).tolist() == np.rot90(array(x), k).tolist()
    assert cd.rot90(x, k).storage_offset() == 0
    assert cd.rot90(x, k).data_ptr() != x.data_ptr()


# -- repeating --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_slices_are_repeated_in_a_row(dim: int | None) -> None:
    """So often all, or so often each, as in NumPy; their gradients add up."""
    x = ramp(2, 3).requires_grad_()
    size = 6 if dim is None else x.shape[dim]
    counts = cd.tensor([2, 0, 3, 1, 0, 1][:size], dtype=cd.int32)
    for repeats in (2, counts, cd.tensor([3])):
        made = cd.repeat_interleave(x, repeats, dim)
        each = repeats if isinstance(repeats, int) else repeats.tolist()
        assert array(made).tolist() == np.repeat(array(x), each, dim).tolist()
    x.repeat_interleave(counts, dim, output_size=int(counts.sum())).sum().backward()
    wanted = np.broadcast_to(array(counts).reshape((2, 3) if dim is None else (-1, 1) if dim == 0 else (1, -1)), (2, 3))
    assert x.grad.tolist() == wanted.tolist()


def test_repeats_alone_give_the_indices() -> None:
    """In the dtype of the repeats; no repeats give none."""
    made = cd.repeat_interleave(cd.tensor([2, 0, 1], dtype=cd.int32))
    assert made.tolist() == [0, 0, 2]
    assert made.dtype is cd.int32
    assert cd.repeat_interleave(cd.empty(0, dtype=cd.int64)).shape == (0,)
    assert cd.tensor(5).repeat_interleave(2).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((cd.ones(1, 1).long(),), RuntimeError, "repeat_interleave only accept 1D vector as repeat"),
        ((cd.ones(2),), NotImplementedError, "\"repeat_interleave_cpu\" not implemented for 'Float'"),
        ((cd.tensor([2, -1]),), RuntimeError, "repeats can not be negative"),
        ((cd.ones(2), -1), RuntimeError, "Repeats must be non-negative"),
        ((cd.ones(2), cd.tensor([1, 2, 3])), RuntimeError, r"repeats\.size\(0\) = 3 and input\.size\(0\) = 2"),
        ((cd.ones(2), cd.ones(2, 1).long()), RuntimeError, "repeats must be 0-dim or 1-dim tensor"),
        ((cd.tensor(1.0), 2, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        ((cd.ones(2), [1, 2]), TypeError, "must be an int or a tuple of ints, but found list"),
    ],
)
def test_repeats_that_do_not_fit_are_refused(arguments: Any, error: Any, match: str) -> None:
    """Signs, counts, dtypes and ranks are checked."""
    with pytest.raises(error, match=match):
        cd.repeat_interleave(*arguments)


def test_a_wrong_number_of_repeated_slices_is_refused() -> None:
    """``output_size`` is a promise that is kept."""
    with pytest.raises(RuntimeError, match="allocated size does not match required size"):
        cd.repeat_interleave(cd.ones(2), cd.tensor([1, 2]), output_size=4)
    with pytest.raises(RuntimeError, match="Invalid output_size, expected 4 but got 5"):
        cd.repeat_interleave(cd.ones(2), 2, output_size=5)


def test_axis_stands_for_dim() -> None:
    """NumPy's name by keyword, as records take it."""
    x = ramp(2, 1, 3)
    assert cd.cat([x, x], axis=2).shape == cd.cat([x, x], 2).shape == (2, 1, 6)
    assert cd.stack([x, x], axis=1).shape == (2, 2, 1, 3)
    assert x.squeeze(axis=1).shape == (2, 3)
    assert x.unsqueeze(axis=0).shape == (1, 2, 1, 3)
    assert len(x.unbind(axis=2)) == len(x.split(1, axis=2)) == len(x.chunk(3, axis=2)) == 3
    assert cd.take_along_dim(x, cd.tensor([[[2]]]), axis=2).shape == (2, 1, 1)

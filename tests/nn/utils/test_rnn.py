"""Packed and padded sequences: conversions in both directions, permutations, gradients, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.nn.utils import rnn
from candelabra.nn.utils.rnn import PackedSequence

X = cd.arange(24.0).reshape(4, 3, 2)
SORTED = r"`lengths` array must be sorted in decreasing order when `enforce_sorted` is True"


def rows(*pairs: tuple[int, int]) -> list[list[float]]:
    """Return the values of X at (time, sequence)."""
    return [X[t, b].tolist() for t, b in pairs]


def test_packing_takes_the_rows_of_each_time_step() -> None:
    """The batch sizes count the sequences that have not ended."""
    packed = rnn.pack_padded_sequence(X, [4, 3, 1])
    assert packed.data.tolist() == rows((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0))
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1]
    assert packed.batch_sizes.dtype is cd.int64
    assert packed.sorted_indices is packed.unsorted_indices is None
    assert rnn.pack_padded_sequence(X.transpose(0, 1), cd.tensor([4, 3, 1]), True).data.tolist() == packed.data.tolist()


def test_unsorted_sequences_are_sorted_and_come_back_in_their_order() -> None:
    """The permutation and its inverse are kept; sequences of one length keep their order."""
    packed = rnn.pack_padded_sequence(X, [3, 4, 3], enforce_sorted=False)
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.unsorted_indices.tolist() == [1, 0, 2]
    assert packed.data[:3].tolist() == rows((0, 1), (0, 0), (0, 2))
    padded, lengths = rnn.pad_packed_sequence(packed, padding_value=-1.0)
    assert lengths.tolist() == [3, 4, 3]
    expected = X.clone()
    expected[3, 0] = expected[3, 2] = -1
    assert padded.tolist() == expected.tolist()


def test_padding_goes_to_a_total_length() -> None:
    """With batch_first the batch is the first dim; without padding the data are only reshaped."""
    packed = rnn.pack_padded_sequence(X, [4, 3, 1])
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=9, total_length=6)
    assert padded.shape == (3, 6, 2)
    assert lengths.tolist() == [4, 3, 1]
    assert padded[2, 1:].tolist() == [[9, 9]] * 5
    whole, _ = rnn.pad_packed_sequence(rnn.pack_padded_sequence(X, [4, 4, 4]))
    assert whole.tolist() == X.tolist()


def test_gradients_go_through_packing_and_padding() -> None:
    """Padding gets no gradient."""
    x = X.clone().requires_grad_()
    padded, _ = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False))
    (padded * 2).sum().backward()
    counts = [[2.0 * (t < n) for n in (1, 4, 2)] for t in range(4)]
    assert x.grad[..., 0].tolist() == x.grad[..., 1].tolist() == counts


def test_sequences_are_padded_on_either_side() -> None:
    """The result has the dtype of the first sequence."""
    a, b = cd.tensor([1, 2]), cd.tensor([3, 4, 5])
    assert rnn.pad_sequence([a, b]).tolist() == [[1, 3], [2, 4], [0, 5]]
    assert rnn.pad_sequence([a, b], True, 9, "left").tolist() == [[9, 1, 2], [3, 4, 5]]
    assert rnn.pad_sequence(iter([a, b.double()]), True).dtype is cd.int64
    assert rnn.pad_sequence(cd.ones(2, 3), True).tolist() == [[1, 1, 1]] * 2
    assert [s.tolist() for s in rnn.unpad_sequence(rnn.pad_sequence([a, b]), cd.tensor([2, 3]))] == [[1, 2], [3, 4, 5]]
    assert rnn.pad_sequence([cd.ones(2, 0), cd.ones(3, 0)]).shape == (3, 2, 0)


def test_lists_of_sequences_are_packed_and_unpacked() -> None:
    """Sequences that are not sorted by length need enforce_sorted=False."""
    sequences = [cd.tensor([1, 2]), cd.tensor([3, 4, 5])]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 4, 2, 5]
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == [[1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match=SORTED):
        rnn.pack_sequence(sequences)
    assert rnn.pack_sequence(sequences[::-1]).data.tolist() == [3, 1, 4, 2, 5]


def test_permutations_are_inverted() -> None:
    """None stays None."""
    assert rnn.invert_permutation(cd.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert rnn.invert_permutation(None) is None


def test_a_packed_sequence_is_a_named_tuple_with_methods_of_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Casts change the data only, and return the sequence itself if there is nothing to change."""
    packed = rnn.pack_padded_sequence(X, [3, 4, 1], enforce_sorted=False)
    data, sizes, order, original = packed
    assert packed._fields == ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
    casts = ("double", "float", "half", "long", "int", "short", "char", "byte")
    dtypes = (cd.float64, cd.float32, cd.float16, cd.int64, cd.int32, cd.int16, cd.int8, cd.uint8)
    for cast, dtype in zip(casts, dtypes, strict=True):
        assert getattr(packed, cast)().data.dtype is dtype
    moved = packed.to("meta")
    assert moved.data.device == moved.sorted_indices.device == moved.unsorted_indices.device == cd.device("meta")
    assert moved.batch_sizes is sizes
    assert packed.double().sorted_indices.tolist() == order.tolist()
    assert packed.to(cd.float32) is packed.cpu() is packed.pin_memory() is packed
    assert packed.cpu(cd.float64).data.dtype is cd.float64
    assert not packed.is_cuda
    assert not packed.is_pinned()
    twice = packed._replace(data=data * 2)
    assert isinstance(twice, PackedSequence)
    assert twice.unsorted_indices is original
    monkeypatch.setattr(cd.Tensor, "cuda", lambda self: self.to("meta"), raising=False)
    assert packed.cuda().sorted_indices.device == cd.device("meta")


def test_a_packed_sequence_is_made_of_its_fields_or_of_a_pair() -> None:
    """The inverse permutation is computed if it is missing."""
    made = PackedSequence((cd.zeros(3, 2), cd.tensor([2, 1])))
    assert made.batch_sizes.tolist() == [2, 1]
    assert PackedSequence(cd.zeros(2, 1), cd.tensor([2]), cd.tensor([1, 0])).unsorted_indices.tolist() == [1, 0]
    with pytest.raises(AssertionError, match="Expected data to be a list or tuple of length 2"):
        PackedSequence(cd.zeros(3, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: rnn.pack_padded_sequence(X, [3, 4, 1]), RuntimeError, SORTED),
        (lambda: rnn.pack_padded_sequence(X, [[4, 3, 1]]), RuntimeError, "'lengths' argument should be a 1D tensor"),
        (lambda: rnn.pack_padded_sequence(X, [4, 3]), RuntimeError, r"to be equal to batch_size, but got 2 \(batch_si"),
        (
            lambda: rnn.pack_padded_sequence(X, [4, 3, 0]),
            RuntimeError,
            "Length of all samples has to be greater than 0",
        ),
        (
            lambda: rnn.pack_padded_sequence(X, [5, 3, 1]),
            RuntimeError,
            "a sequence of length 5 does not fit in the pad",
        ),
        (lambda: rnn.pack_padded_sequence(X[:, :0], []), RuntimeError, "Cannot pack empty tensors."),
        (lambda: rnn.pack_padded_sequence(X[0, 0], [1]), IndexError, r"expected a padded batch of shape \(T, B, \*\)"),
        (lambda: rnn.pad_sequence([]), RuntimeError, "received an empty list of sequences"),
        (lambda: rnn.pack_sequence([]), RuntimeError, "received an empty list of sequences"),
        (lambda: rnn.pad_sequence(3), RuntimeError, "Expected iterable for input sequences, but got arg of type"),
        (lambda: rnn.pad_sequence([X], padding_side="top"), RuntimeError, "to be one of left or right, but got top"),
        (
            lambda: rnn.pad_sequence([X, X[..., 0]]),
            RuntimeError,
            "sequence 1 has shape .4, 3., and the first .4, 3, 2.",
        ),
        (lambda: rnn.pad_sequence([X[0, 0, 0]]), RuntimeError, "whose sizes differ in the first dim only: sequence 0"),
        (lambda: rnn.unpad_sequence(X, cd.tensor([4, 2])), ValueError, "argument 2 is shorter"),
    ],
)
def test_wrong_lengths_and_sequences_are_errors(call: Any, error: type[Exception], text: str) -> None:
    """The errors say what was expected."""
    with pytest.raises(error, match=text):
        call()


def test_a_total_length_is_at_least_the_longest_length() -> None:
    """The error names both."""
    packed = rnn.pack_padded_sequence(X, [4, 3, 1])
    with pytest.raises(ValueError, match="got total_length=3 and max sequence length being 4"):
        rnn.pad_packed_sequence(packed, total_length=3)

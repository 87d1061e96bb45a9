"""Sequences of different lengths in one batch: padded, packed, and back.

A packed sequence holds the values of all sequences as one matrix, without padding: ``batch_sizes[t]`` rows for each
time step t. The sequences are sorted by length, the longest first; ``sorted_indices`` is the permutation that sorted
them, and ``unsorted_indices`` its inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self, cast

import candelabra
from candelabra import Tensor
from candelabra.dtypes import dtype, float16, float32, float64, int8, int16, int32, int64, uint8

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):
    """The fields of a :class:`PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """The data of a packed sequence, its batch sizes, and the permutation of the sequences, or None.

    :func:`pack_padded_sequence` and :func:`pack_sequence` return it, and recurrent networks take and return it.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, cast("Tensor", batch_sizes), sorted_indices, unsorted_indices)

    def _with(self, data: Tensor, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the sequence with other data, and with the indices moved; itself if the data are the same."""
        if data is self.data:
            return self
        indices = (None if each is None else move(each) for each in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move the data, and cast them, as ``Tensor.to``. The batch sizes stay where they are."""
        data: Tensor = self.data.to(*args, **kwargs)
        return self._with(data, lambda indices: indices.to(data.device))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a CUDA device. A backend for CUDA has to be installed."""
        data: Tensor = cast("Any", self.data).cuda(*args, **kwargs)
        return self._with(data, lambda indices: indices.to(data.device))

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Move to the host's device, and cast with a dtype."""
        return self.to(cast("Any", self.data).cpu().device, *args, **kwargs)

    def _cast(self, target: dtype) -> Self:
        return self.to(dtype=target)

    def double(self) -> Self:
        """Cast the data to float64."""
        return self._cast(float64)

    def float(self) -> Self:
        """Cast the data to float32."""
        return self._cast(float32)

    def half(self) -> Self:
        """Cast the data to float16."""
        return self._cast(float16)

    def long(self) -> Self:
        """Cast the data to int64."""
        return self._cast(int64)

    def int(self) -> Self:
        """Cast the data to int32."""
        return self._cast(int32)

    def short(self) -> Self:
        """Cast the data to int16."""
        return self._cast(int16)

    def char(self) -> Self:
        """Cast the data to int8."""
        return self._cast(int8)

    def byte(self) -> Self:
        """Cast the data to uint8."""
        return self._cast(uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return bool(cast("Any", self.data).is_cuda)

    def is_pinned(self) -> bool:
        """Return whether the data are in page-locked memory."""
        return self.data.is_pinned()

    def pin_memory(self) -> Self:
        """Return the sequence itself: accepted for PyTorch's programs, as by DataLoader."""
        return self


# -- packing ----------------------------------------------------------------------------------------------------------
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation, a vector of indices; None for None."""
    if permutation is None:
        return None
    inverse: Tensor = candelabra.empty_like(permutation)
    inverse.scatter_(0, permutation, candelabra.arange(0, permutation.numel(), device=permutation.device))
    return inverse


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch (T, B, *), or (B, T, *) with ``batch_first``; ``lengths`` has the B lengths.

    With ``enforce_sorted`` the lengths must not increase; otherwise the sequences are sorted.

    Raises ``RuntimeError`` for lengths that are no vector, not sorted, not positive, or not as many as sequences, and
    for an empty batch; ``IndexError`` for a vector.
    """
    given = candelabra.as_tensor(lengths, dtype=int64)
    if given.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D tensor of integers, but got {given.ndim}D tensor")
    sizes: list[int] = given.tolist()
    order = None
    if not enforce_sorted:
        order = sorted(range(len(sizes)), key=lambda b: -sizes[b])
        sizes = [sizes[b] for b in order]
    if input.ndim < 2:
        raise IndexError(f"expected a padded batch of shape (T, B, *), got {list(input.shape)}")
    padded = input.transpose(0, 1) if batch_first else input
    if not padded.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    length, count = padded.shape[:2]
    if len(sizes) != count:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={count})"
        )
    if min(sizes) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if order is None and sizes != sorted(sizes, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if sizes[0] > length:
        raise RuntimeError(f"a sequence of length {sizes[0]} does not fit in the padded length {length}")
    indices = None
    if order is not None:
        indices = candelabra.as_tensor(order, dtype=int64, device=input.device)
        padded = padded.index_select(1, indices)
    data, batch_sizes = _packed(padded, sizes)
    return PackedSequence(data, candelabra.as_tensor(batch_sizes, dtype=int64), indices)


def _packed(padded: Tensor, sizes: list[int]) -> tuple[Tensor, list[int]]:
    """Return the rows of all time steps, and the number of rows of each. The sizes do not increase."""
    rows, batch_sizes, start = [], [], 0
    for number in range(len(sizes), 0, -1):
        stop = sizes[number - 1]
        if stop > start:
            part = padded[start:stop, :number]
            rows.append(part.reshape((part.shape[0] * number, *padded.shape[2:])))
            batch_sizes += [number] * (stop - start)
            start = stop
    data: Tensor = rows[0] if len(rows) == 1 else candelabra.cat(rows, 0)
    return data, batch_sizes


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the padded batch (T, B, *), or (B, T, *) with ``batch_first``, and the lengths, in the original order.

    T is the longest length, or ``total_length``. Raises ``ValueError`` if ``total_length`` is shorter.
    """
    data, _, _, unsorted = sequence
    batch_sizes: list[int] = sequence.batch_sizes.tolist()
    longest, count = len(batch_sizes), batch_sizes[0]
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    lengths = [sum(size > b for size in batch_sizes) for b in range(count)]
    steps = total_length or longest
    starts, row = [], 0
    for size in batch_sizes:
        starts.append(row)
        row += size
    # Row number ``row``, which is added at the end, is the padding.
    index = [starts[t] + b if t < lengths[b] else row for t in range(steps) for b in range(count)]
    if row == len(index):
        padded = data
    else:
        padding = data.new_full((1, *data.shape[1:]), padding_value)
        padded = candelabra.cat([data, padding], 0).index_select(
            0, candelabra.as_tensor(index, dtype=int64, device=data.device)
        )
    padded = padded.reshape((steps, count, *data.shape[1:]))
    if unsorted is not None:
        padded = padded.index_select(1, unsorted)
        lengths = [lengths[b] for b in unsorted.tolist()]
    return padded.transpose(0, 1) if batch_first else padded, candelabra.as_tensor(lengths, dtype=int64)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L, *) of lengths L, which must not increase with ``enforce_sorted``."""
    lengths = [each.shape[0] for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the list of sequences of a packed sequence, in the original order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


# -- padding ----------------------------------------------------------------------------------------------------------
def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (L, *) of different lengths to (T, B, *), or (B, T, *) with ``batch_first``.

    T is the longest length; shorter sequences are filled with ``padding_value`` on the side ``padding_side``.

    Raises ``RuntimeError`` for no sequences, a side other than left and right, and sizes * that differ.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    rows = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not rows:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first, rest = rows[0], tuple(rows[0].shape[1:])
    longest = max(row.shape[0] if row.ndim else 0 for row in rows)
    filled = []
    for number, row in enumerate(rows):
        if not row.ndim or tuple(row.shape[1:]) != rest:
            raise RuntimeError(
                f"expected sequences whose sizes differ in the first dim only: sequence {number} has shape "
                f"{list(row.shape)}, and the first {list(first.shape)}"
            )
        row = row.to(first.dtype)
        if row.shape[0] < longest:
            padding = candelabra.full(
                (longest - row.shape[0], *rest), padding_value, dtype=first.dtype, device=first.device
            )
            row = candelabra.cat([row, padding] if padding_side == "right" else [padding, row], 0)
        filled.append(row)
    out: Tensor = candelabra.stack(filled, 0 if batch_first else 1)
    return out


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded batch (T, B, *), or (B, T, *) with ``batch_first``; ``lengths`` has their
    lengths.

    Raises ``ValueError`` for another number of lengths.
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows.unbind(0), lengths.tolist(), strict=True)]


def __dir__() -> list[str]:
    return sorted(__all__)

"""Padding with a constant."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING
from candelabra._geometry import Ints
from candelabra._operators.conversion.python_numbers import number_for
from candelabra._operators.creation.filled import new_full
from candelabra._operators.indexing.basic import basic_index, basic_index_scatter
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@by
def _padded(input: Tensor, pad: Sequence[int], value: Number = 0) -> Ints:
    shape = shape_of(input)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {len(shape)} dimensions."
        )
    result = list(shape)
    for number in range(len(pad) // 2):
        before, after = pad[2 * number], pad[2 * number + 1]
        d = len(shape) - 1 - number
        if shape[d] + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(
                f"The input size {shape[d]}, plus negative padding {before} and {after} resulted in a negative output "
                f"size, which is invalid. Check dimension {d} of your input."
            )
        result[d] += before + after
    return tuple(result)


@operator(_padded, method=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Number = 0) -> Tensor:
    """Insert ``value`` before and after the last dims: ``pad`` is (before, after) for the last dim, the second-to-last,
    …

    Negative amounts remove elements. Raises ``RuntimeError`` for an odd number of amounts, for amounts for more dims
    than the tensor has, and if more elements are removed than a dim has.
    """
    output_size: Ints = _padded(constant_pad_nd, (input, pad, value))
    source: list[slice] = []
    target: list[slice] = []
    for d, size in enumerate(input.shape):
        number = 2 * (input.ndim - 1 - d)
        before, after = pad[number : number + 2] if number < len(pad) else (0, 0)
        source.append(slice(max(0, -before), size - max(0, -after), 1))
        start = max(0, before)
        target.append(slice(start, start + source[-1].stop - source[-1].start, 1))
    padded = new_full(input, output_size, number_for(value, input.dtype))
    return basic_index_scatter(padded, basic_index(input, tuple(source)), tuple(target))

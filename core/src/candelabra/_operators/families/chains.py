"""The order in which a chain of matrices is multiplied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def chain_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run ``(first, last)`` of matrices of sizes[i] × sizes[i + 1], for the fewest multiplications.

    Source: the dynamic programme of Cormen et al., Introduction to Algorithms, section 15.2.
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def chained(matrices: Sequence[Tensor], product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The product of matrices, multiplied with ``product`` in the order that takes the fewest operations."""
    split = chain_order([matrices[0].shape[0], *[m.shape[1] for m in matrices]])

    def part(first: int, last: int) -> Tensor:
        if first == last:
            return matrices[first]
        middle = split[first, last]
        return product(part(first, middle), part(middle + 1, last))

    return part(0, len(matrices) - 1)

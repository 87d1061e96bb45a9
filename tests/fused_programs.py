"""Programs of pointwise operators, for tests that compare fused kernels with single ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
from candelabra import Tensor
from candelabra.dtypes import dtype
from candelabra.graph import Graph, trace
from candelabra.testing import assert_close
from candelabra_clike.fusion import fused

Program = Callable[..., Any]
SEED = 11


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Return one result of nine operators."""
    return cd.relu(cd.tanh(cd.exp(-(x * y + x)) * 0.5 + y) - y)


def several_outputs(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return results of which some are also operands."""
    product = x * y
    activated = F.gelu(product + 1.5)
    return product, activated, cd.sigmoid(activated) * (1 - activated)


def selections(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return masks, and what masks and limits select."""
    larger = x > y
    chosen = cd.where(larger, x, y * 2)
    return larger, cd.logical_not(larger) | (chosen == chosen), chosen.clamp(-0.5, 0.75)


def casts(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return results of several dtypes."""
    whole = (x * 10).to(cd.int32) + 3
    return whole, whole.to(cd.float64) / 7, (whole > 0).to(x.dtype) * y, (x + y).to(cd.float16).to(cd.float32) * 3


def powers(x: Tensor, y: Tensor) -> Tensor:
    """Return squares, roots and powers."""
    return (x**2 + y**2).sqrt() + (x.abs() + 1) ** 1.5


def dropped(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return results of two random masks."""
    kept = F.dropout(x, 0.25)
    return kept + y, kept * 2, F.dropout(y, 0.5) - x


FLOATING: dict[str, Program] = {
    "chain": chain, "several_outputs": several_outputs, "selections": selections, "casts": casts, "powers": powers,
}  # fmt: skip


def mean_square(x: Tensor, y: Tensor) -> Tensor:
    """Return the mean of squared differences."""
    return ((x - y) ** 2).mean()


def row_sum(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return the sums of rows, and their elements."""
    product = x * y
    return product.sum(-1), product


def column_sum(x: Tensor, y: Tensor) -> Tensor:
    """Return the sums of columns."""
    return (x.exp() * y + 1).sum(0)


def extremes(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return the largest elements, and another result of the same elements."""
    absolute = (x - y).abs()
    return absolute.amax(1), absolute * 2


def count(x: Tensor, y: Tensor) -> Tensor:
    """Return how often a condition holds."""
    return (x > y).sum()


REDUCED: dict[str, tuple[Program, int]] = {
    "mean_square": (mean_square, 3), "row_sum": (row_sum, 2),
    "extremes": (extremes, 4), "count": (count, 2),
}  # fmt: skip
"""Programs with a reduction, and the number of nodes of their kernel."""


def scaled_softmax(x: Tensor, y: Tensor) -> Tensor:
    """Return the weights of attention."""
    return F.softmax(x * 0.125 + y, -1)


def around_log_softmax(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return a log-softmax, and products with its operand."""
    total = x + y
    logs = F.log_softmax(total, -1)
    return logs, logs * total, total * 2


def dropped_norm(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return a residual sum with dropout, and its normalization."""
    total = y + F.dropout(x, 0.25)
    return cd.relu(F.layer_norm(total, total.shape[-1:])), total


ROWS: dict[str, tuple[Program, int]] = {
    "scaled_softmax": (scaled_softmax, 3), "around_log_softmax": (around_log_softmax, 4),
    "dropped_norm": (dropped_norm, 8),
}  # fmt: skip
"""Programs with a row program, and the number of nodes of their kernel."""


def integers(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return results that wrap around."""
    wrapped = x * y * 77 - 5
    return wrapped, (wrapped & y) ^ x, cd.maximum(wrapped, x).sign(), wrapped << 2


def complex_numbers(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return results of complex numbers."""
    product = x * y + (1 - 2j)
    return product, cd.exp(product * 0.1) / y, product == product


def numbers(shape: tuple[int, ...], d: dtype, device: cd.device, offset: int = 0) -> Tensor:
    """Return numbers of a dtype from a seed: negative ones, too, if the dtype has them."""
    generator = cd.Generator("cpu").manual_seed(SEED + offset)
    if d.is_complex:
        return cd.randn(shape, generator=generator, dtype=d, device="cpu").to(device)
    if d.is_floating_point:
        return cd.randn(shape, generator=generator, device="cpu").to(d).to(device)
    return cd.randint(0 if not d.is_signed else -90, 90, shape, generator=generator, device="cpu").to(d).to(device)


def after_scans(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return what is computed in place of cumulative sums, and one that is not."""
    first, second, third = x.cumsum(0), y.cumsum(1), x.cumsum(1)
    activated = (first + 1).sigmoid() * second
    return activated, (third * 2 - x).tanh(), third[0], (activated.cumsum(0) + x[0]).relu() * 0.5


def groups(graph: Graph, serial: bool = True) -> list[int]:
    """Return the number of nodes of each fused kernel."""
    return [len(node.op.nodes) for node in fused(graph, serial).nodes if isinstance(node.op, Graph)]


def check(program: Program, *tensors: Tensor, on: str = "", terms: int = 0) -> list[int]:
    """Check the results of a compiled program, after all calls, and return the sizes of its groups.

    ``on`` is the device whose single kernels compute what is expected, by default the tensors' own. If it adds the
    ``terms`` of a product in another order, two sums of normal numbers differ by some ``terms * eps``: the roundings
    of partial sums, which grow with the root of their number, add up as a random walk.
    """
    # Four of these: the operators after a product multiply it by numbers of up to that size.
    close: dict[str, Any] = {"rtol": 1.3e-6, "atol": 4 * terms * cd.finfo(cd.float32).eps} if terms else {}
    compiled = cd.compile(program, fullgraph=True)
    pairs: list[tuple[Tensor, Tensor]] = []
    for seed in range(3):
        cd.manual_seed(seed)
        expected = _results(program(*[t.to(on) if on else t for t in tensors]))
        cd.manual_seed(seed)
        pairs += zip(_results(compiled(*tensors)), expected, strict=True)
    for got, want in pairs:
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert on or got.stride() == want.stride()
        assert_close(got, want, equal_nan=True, check_device=False, **close)
    found = groups(trace(program, *tensors))
    assert found
    return found


def _results(value: Any) -> tuple[Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)


LAYOUTS: dict[str, Callable[[cd.device], tuple[Tensor, Tensor]]] = {
    "contiguous": lambda d: (numbers((3, 50), cd.float32, d), numbers((3, 50), cd.float32, d, 1)),
    "broadcast": lambda d: (numbers((3, 5, 7), cd.float32, d), numbers((5, 1), cd.float32, d, 1)),
    "a row and a column": lambda d: (numbers((300, 1), cd.float32, d), numbers((1, 70), cd.float32, d, 1)),
    "transposed": lambda d: (numbers((40, 70), cd.float32, d).t(), numbers((70, 40), cd.float32, d, 1)),
    "both transposed": lambda d: (numbers((40, 70), cd.float32, d).t(), numbers((40, 70), cd.float32, d, 1).t()),
    "with steps": lambda d: (numbers((9, 40), cd.float32, d)[::2, ::3], numbers((5, 14), cd.float32, d, 1)),
    "expanded": lambda d: (numbers((4,), cd.float32, d).expand(6, 4), numbers((6, 4), cd.float32, d, 1)),
    "with an offset": lambda d: (numbers((90,), cd.float32, d)[17:], numbers((90,), cd.float32, d, 1)[:73]),
    "of one element": lambda d: (numbers((1,), cd.float32, d), numbers((1, 1), cd.float32, d, 1)),
    "without dims": lambda d: (numbers((), cd.float32, d), numbers((), cd.float32, d, 1)),
    "a number and a matrix": lambda d: (numbers((), cd.float32, d), numbers((30, 3), cd.float32, d, 1)),
    "empty": lambda d: (numbers((0, 4), cd.float32, d), numbers((4,), cd.float32, d, 1)),
    "of many dims": lambda d: (
        numbers((2, 3, 2, 2, 3), cd.float32, d).permute(4, 2, 0, 1, 3),
        numbers((3, 2, 2, 3, 2), cd.float32, d, 1),
    ),
    "larger than a chunk": lambda d: (numbers((10_007,), cd.float32, d), numbers((10_007,), cd.float32, d, 1)),
}
"""Two operands in every kind of layout."""


def special_values(device: cd.device) -> tuple[Tensor, Tensor]:
    """Return every pair of some special numbers."""
    values = cd.tensor([0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 1e-40, 3e38], device=device)
    x, y = cd.meshgrid(values, values, indexing="ij")
    return x.reshape(-1), y.reshape(-1)


def activated(x: Tensor, y: Tensor) -> Tensor:
    """Return an activation of a product and a bias."""
    return F.gelu(x @ y + y[0])


def saved_product(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return a linear layer's result, and functions of it and of other operands."""
    product = F.linear(x, y.t(), y[0])
    return product, cd.tanh(product) * product + y[1], product > 0


def batched_products(x: Tensor, y: Tensor) -> Tensor:
    """Return a batch of products of one matrix with others, with a bias for each row and each matrix."""
    batch = cd.stack([x, x * 2, x - 1])
    return (batch @ y + batch[:, :, :1]).relu() * batch[:, :1, :1]


def product_of_itself(x: Tensor, y: Tensor) -> Tensor:
    """Return a product of a matrix and its transpose, with the matrix as a further operand."""
    return (x @ x.t() * 0.5 - x[:, :1]).relu()


PRODUCTS: dict[str, Program] = {
    "activated": activated, "saved_product": saved_product, "batched_products": batched_products,
    "product_of_itself": product_of_itself,
}  # fmt: skip
"""Programs with a product and pointwise operators after it, for matrices of sizes (m, k) and (k, n)."""


def activated_convolution(x: Tensor, w: Tensor) -> Tensor:
    """Return an activation of a convolution with a bias."""
    return F.gelu(F.conv2d(x, w, w[:, 0, 0, 0].contiguous(), padding=1))


def residual_convolution(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    """Return a convolution, and functions of it, of an operand per channel and of one for each element."""
    product = F.conv2d(x, w, stride=2)
    scaled = product * w[:, 0, :1, :1] + product.detach() * 0.5
    return product, scaled.relu(), product > 0


def grouped_convolution(x: Tensor, w: Tensor) -> Tensor:
    """Return an activation of a convolution in two groups."""
    return F.conv2d(x.repeat(1, 2, 1, 1), w, dilation=2, groups=2).relu() * 2


CONVOLUTIONS: dict[str, Program] = {
    "activated_convolution": activated_convolution, "residual_convolution": residual_convolution,
    "grouped_convolution": grouped_convolution,
}  # fmt: skip
"""Programs with a convolution and pointwise operators after it, for images and filters."""

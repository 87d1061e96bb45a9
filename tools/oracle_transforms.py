"""Compare compositions of function transforms with ``torch.func``.

All ordered pairs and triples of grad, jvp and vmap are applied to functions with softmax, layer_norm, attention, conv,
indexing and views that are written, in float64: alone, with ``no_grad`` around a part inside the function, and with
``no_grad`` around the call. Both libraries run the same text. ``python tools/oracle_transforms.py`` (with a Python that
has both, such as that of ``make oracle``) prints the differences, and exits with status 1 if there are any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final, NamedTuple

import candelabra as cd
import numpy as np
import torch
from candelabra import nn

BOUND: Final = 1e-9
"""The largest difference, relative to the largest number of the result."""
SHAPE: Final = (4, 3)
TRANSFORMS: Final = ("grad", "jvp", "vmap")
MODES: Final = ("none", "inside", "outside")
Function = Callable[[Any], Any]


class Library(NamedTuple):
    """The names of one of the two libraries."""

    xp: Any
    functional: Any

    def ramp(self, *shape: int) -> Any:
        """Return numbers that differ, the same in both libraries."""
        return self.xp.tensor(np.sin(np.arange(1.0, 1 + np.prod(shape))).tolist(), dtype=self.xp.float64).reshape(shape)


OURS, PEER = Library(cd, nn.functional), Library(torch, torch.nn.functional)


# -- functions of a matrix, which return a matrix ----------------------------------------------------------------------
def softmax(lib: Library, x: Any) -> Any:
    """Two softmaxes, along different dims."""
    return x.softmax(-1) * x.log_softmax(0)


def layer_norm(lib: Library, x: Any) -> Any:
    """The parameters depend on the input, too."""
    return lib.functional.layer_norm(x, (3,), x[0], x[1]) ** 3


def layer_norm_in_parts(lib: Library, x: Any) -> Any:
    """The same by its definition. PyTorch's second derivatives of its own layer_norm are wrong in forward mode."""
    distance = x - x.mean(-1, keepdim=True)
    return (distance / ((distance**2).mean(-1, keepdim=True) + 1e-5).sqrt() * x[0] + x[1]) ** 3


def attention(lib: Library, x: Any) -> Any:
    """Self-attention of the rows."""
    return lib.functional.scaled_dot_product_attention((x * 2)[None], x[None], x.sin()[None])[0]


def conv(lib: Library, x: Any) -> Any:
    """An image and a filter that depends on it."""
    image = lib.functional.conv2d(x.reshape(1, 1, 4, 3), x[:3].reshape(1, 1, 3, 3) / 9, x[0, :1], padding=1)
    return image.sin()[0, 0]


def indexing(lib: Library, x: Any) -> Any:
    """Index tensors, a mask that does not depend on the input, and gather."""
    rows, columns = lib.xp.tensor([0, 2, 2, 3]), lib.xp.tensor([1, 0, 1])
    return x[rows][:, columns].exp() * x.gather(0, lib.xp.tensor([[0, 2, 1]] * 4))


def views(lib: Library, x: Any) -> Any:
    """Views of a new tensor are written, and so is the tensor."""
    out = x * 2
    view = out[:, 1:]
    out[0] = x[1] * x[2]
    view.mul_(x[:, 1:])
    out.t()[0].add_(x[:, 2].sin())
    return out


FUNCTIONS: Final = (softmax, layer_norm, attention, conv, indexing, views)
DEFINITIONS: Final[dict[Any, Any]] = {layer_norm: layer_norm_in_parts}
"""The functions with which PyTorch is asked again where results differ."""


# -- compositions -----------------------------------------------------------------------------------------------------
def applied(lib: Library, transform: str, f: Function) -> Function:
    """Return a transform of a function, as a function of one tensor."""
    func = lib.xp.func
    if transform == "vmap":
        transformed: Function = func.vmap(f)
        return transformed
    if transform == "grad":
        of_sum: Function = func.grad(lambda a: (f(a) ** 2).sum())
        return of_sum
    return lambda x: sum_of(func.jvp(f, (x,), (lib.ramp(*x.shape),)))


def sum_of(value_and_tangent: tuple[Any, Any]) -> Any:
    """Return a result that depends on both."""
    value, tangent = value_and_tangent
    return value + tangent * 2


def result(lib: Library, function: Any, transforms: tuple[str, ...], mode: str) -> Any:
    """Return the result of transforms, the first one outermost, as a NumPy array."""

    def f(x: Any) -> Any:
        if mode != "inside":
            return function(lib, x)
        with lib.xp.no_grad():
            constant = x.cos()
        return function(lib, x) * constant

    g: Function = f
    for transform in reversed(transforms):
        g = applied(lib, transform, g)
    x = lib.ramp(*(2,) * transforms.count("vmap"), *SHAPE) + 1.5
    if mode == "outside":
        with lib.xp.no_grad():
            return g(x).detach().numpy()
    return g(x).detach().numpy()


def compositions() -> Iterator[tuple[str, ...]]:
    """Yield all ordered pairs and triples."""
    for length in (2, 3):
        yield from product(TRANSFORMS, repeat=length)


def differs(actual: Any, expected: Any) -> bool:
    """Return whether two arrays differ by more than rounding."""
    scale = max(np.abs(expected).max(), 1e-300)
    return actual.shape != expected.shape or not np.abs(actual - expected).max() <= BOUND * scale


def verdict(function: Any, transforms: tuple[str, ...], mode: str) -> str:
    """Return how the libraries compare: "equal", "differs", or why PyTorch has no result to compare with."""
    actual = result(OURS, function, transforms, mode)
    try:
        expected = result(PEER, function, transforms, mode)
    except RuntimeError as error:
        return f"PyTorch raises {str(error).splitlines()[0]!r}"
    if not differs(actual, expected):
        return "equal"
    if function in DEFINITIONS and not differs(actual, result(PEER, DEFINITIONS[function], transforms, mode)):
        return "equal to PyTorch with the function's definition, with which PyTorch's own result disagrees"
    return "differs"


def main() -> int:
    """Compare, print the unequal compositions and the number of each verdict, and return 0 if none differs."""
    counts: Counter[str] = Counter()
    for function, transforms, mode in product(FUNCTIONS, compositions(), MODES):
        outcome = verdict(function, transforms, mode)
        counts[outcome] += 1
        if outcome != "equal":
            print(f"{'∘'.join(transforms)} of {function.__name__}, no_grad {mode}: {outcome}")
    for text, count in counts.most_common():
        print(f"{count} {text}")
    return int("differs" in counts)


if __name__ == "__main__":
    raise SystemExit(main())

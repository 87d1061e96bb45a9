"""Layers of LuaTorch's nn that have no counterpart of their own: of tables, of shapes, and single operators.

A table of Lua is a list of tensors here. Dims are counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = [
    "Branches", "Computed", "Folded", "FullConvolution", "Item", "Joined", "Parallel", "Scaled", "Shaped", "Split",
]  # fmt: skip


class Computed(Module):
    """One function of candelabra: ``name(input, *arguments)``."""

    def __init__(self, name: str, *arguments: Any) -> None:
        super().__init__()
        self.name = name
        self.arguments = arguments

    def forward(self, input: Tensor) -> Any:
        return getattr(F if hasattr(F, self.name) else cd, self.name)(input, *self.arguments)

    def extra_repr(self) -> str:
        return ", ".join([self.name, *map(repr, self.arguments)])


class Branches(Module):
    """All modules applied to one input: a list of results, or their concatenation along ``dim``."""

    def __init__(self, modules: Sequence[Module], dim: int | None = None) -> None:
        super().__init__()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)
        self.dim = dim

    def forward(self, input: Any) -> Any:
        results = [module(input) for module in self.children()]
        return results if self.dim is None else cd.cat(results, self.dim)

    def extra_repr(self) -> str:
        return "" if self.dim is None else f"dim={self.dim}"


class Parallel(Branches):
    """Each module applied to its item of a list."""

    def forward(self, input: Any) -> Any:
        return [module(item) for module, item in zip(self.children(), input, strict=True)]


class Folded(Module):
    """The items of a list combined by an operator: their sum, product, difference or quotient."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, input: Sequence[Tensor]) -> Tensor:
        return reduce(getattr(cd, self.name), input)

    def extra_repr(self) -> str:
        return self.name


class Joined(Module):
    """The items of a list, concatenated along ``dim`` of each sample; ``rank``: the dims of a sample, 0 for any."""

    def __init__(self, dim: int, rank: int) -> None:
        super().__init__()
        self.dim = dim
        self.rank = rank

    def forward(self, input: Sequence[Tensor]) -> Tensor:
        return cd.cat(list(input), self.dim + (1 if self.rank and input[0].ndim > self.rank else 0))

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Split(Joined):
    """A tensor split along ``dim`` of each sample, into a list."""

    def forward(self, input: Any) -> Any:
        return list(input.unbind(self.dim + (1 if self.rank and input.ndim > self.rank else 0)))


class Item(Module):
    """One item of a list."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index

    def forward(self, input: Sequence[Any]) -> Any:
        return input[self.index]

    def extra_repr(self) -> str:
        return str(self.index)


class Shaped(Module):
    """A tensor in another shape.

    ``batch``: whether the first dim is that of a batch and stays; None: if the input has more elements than ``sizes``,
    more dims than ``rank`` (the dims of a sample, 0 for any), or one sample.
    """

    def __init__(self, sizes: Sequence[int], batch: bool | None = None, rank: int = 0) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.batch = batch
        self.rank = rank

    def forward(self, input: Tensor) -> Tensor:
        sizes = self.sizes
        if self.batch is False:
            return input.reshape(sizes)
        if self.batch or (self.rank and input.ndim > self.rank):
            return input.reshape((input.shape[0], *sizes))
        count = prod(sizes)
        if count < 0 or (input.numel() == count and not (input.ndim > 1 and input.shape[0] == 1)):
            return input.reshape(sizes)
        return input.reshape((input.numel() // max(count, 1), *sizes))

    def extra_repr(self) -> str:
        return ", ".join(map(str, self.sizes))


class Scaled(Module):
    """An input times a parameter (``mul``), or plus one (``add``)."""

    def __init__(self, name: str, weight: Tensor) -> None:
        super().__init__()
        self.name = name
        self.weight = Parameter(weight)

    def forward(self, input: Tensor) -> Tensor:
        return getattr(cd, self.name)(input, self.weight)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        return self.name


class FullConvolution(Module):
    """A transposed convolution of (N, C, H, W)."""

    def __init__(self, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, added: Any) -> None:
        super().__init__()
        self.weight = Parameter(weight)
        self.register_parameter("bias", None if bias is None else Parameter(bias))
        self.stride = stride
        self.padding = padding
        self.added = added

    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.added)

    def extra_repr(self) -> str:
        return f"stride={self.stride}, padding={self.padding}, output_padding={self.added}"


def __dir__() -> list[str]:
    return sorted(__all__)

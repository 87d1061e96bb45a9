"""Options of ``fully_shard``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a sharded module; None for that of its parameters.

    Attributes:
        param_dtype: of the gathered parameters, for forward and backward. Shards keep their own.
        reduce_dtype: in which gradients are added up; by default ``param_dtype``.
        output_dtype: of the module's floating-point outputs.
        cast_forward_inputs: whether floating-point inputs are cast to ``param_dtype``.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards stay on the device of the parameters."""


def cast_floats(value: Any, dtype: Any) -> Any:
    """Return tensors of floating-point numbers, also inside tuples, lists and dictionaries, in a dtype."""
    from candelabra.utils._pytree import tree_map

    def cast(leaf: Any) -> Any:
        floats = getattr(getattr(leaf, "dtype", None), "is_floating_point", False)
        return leaf.to(dtype) if floats else leaf

    return tree_map(cast, value)

"""The keywords of every factory: ``out``, ``layout``, ``pin_memory``, ``requires_grad``, ``memory_format``.

A factory is a public callable with ``dtype`` and ``device`` that is declared with ``factory=True``. Its entry processes
these keywords, so that the function itself only creates the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype
from candelabra._dispatch.out import store
from candelabra._layout import layout as Layout
from candelabra._layout import physical_order, strided
from candelabra.dtypes import FLOATING
from candelabra.errors import UnsupportedLayout

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def factory_lines(name: str, call: str, served: Collection[str], scope: dict[str, Any]) -> list[str]:
    """Return the lines of a factory's entry after the conversion of its arguments.

    ``call`` is the call of its body, and ``served`` are the names of its parameters.
    """
    scope |= {"fill_out": fill_out, "in_format": in_format, "check_layout": check_layout, "as_leaf": as_leaf}
    lines = {
        "layout": [f"if layout is not None: check_layout({name!r}, layout)"],
        "out": [
            "if out is not None:",
            f"    dtype, device, store = fill_out({name!r}, out, dtype, device)",
            f"    return store({call})",
        ],
        "memory_format": [
            f"if memory_format is not None: return as_leaf(in_format({call}, memory_format), requires_grad)"
        ],
        "requires_grad": [f"if requires_grad: return as_leaf({call}, True)"],
    }
    return [line for keyword in lines if keyword in served for line in lines[keyword]] + [f"return {call}"]


def fill_out(name: str, out: Tensor, dtype: Any, device: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Return the dtype and device of ``out``, and a function that writes the result into it."""
    wanted = getattr(out, "dtype", dtype)
    if dtype is not None and as_dtype(dtype) is not wanted:
        raise RuntimeError(f"dtype {as_dtype(dtype).title} does not match dtype of out parameter ({wanted.title})")
    return wanted, device or getattr(out, "device", None), lambda result: store(name, result, out)


def as_leaf(result: Tensor, requires_grad: bool) -> Tensor:
    """Set ``requires_grad`` of a new tensor and return it. Raise ``RuntimeError`` for integer dtypes."""
    if not requires_grad:
        return result
    if result.dtype.category < FLOATING:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_()


def in_format(result: Tensor, memory_format: Any) -> Tensor:
    """Return a new tensor in a memory format."""
    if physical_order(result.ndim, memory_format) is None:
        return result
    return result.detach().contiguous(memory_format=memory_format).detach()


def check_layout(name: str, layout: Any) -> None:
    """Raise :class:`UnsupportedLayout` for a layout other than ``strided``, and TypeError for other values."""
    if layout is strided:
        return
    if not isinstance(layout, Layout):
        raise TypeError(f"{name}(): argument 'layout' must be candelabra.layout, not {type(layout).__name__}")
    raise UnsupportedLayout(f"{name}(): layout {layout!r} is not supported, the only one is candelabra.strided")

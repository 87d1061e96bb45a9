"""The ``out=`` form: compute, then write into the tensor that was given."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.dispatch.promote import title
from candelabra.dtypes import can_cast
from candelabra.keys import AUTOGRAD, NO_GRAD, state

if TYPE_CHECKING:
    from candelabra.operator.record import Operator


def write_out(op: Operator[..., Any], out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``op`` and write the result into ``out``, resized if its shape differs (with a warning unless empty).

    ``out`` may have a wider dtype of the same or a higher category. Neither it nor the arguments may require grad.
    """
    from candelabra.tensor import Tensor

    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not state.bits & NO_GRAD and (out._keys & AUTOGRAD or any(getattr(a, "_keys", 0) & AUTOGRAD for a in args)):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    value = op.function(*args, **kwargs)
    if value.device != out.device:
        raise RuntimeError(
            f"{op.name}(): Expected out tensor to have device {value.device}, but got {out.device} instead"
        )
    if not can_cast(value.dtype, out.dtype):
        raise RuntimeError(
            f"result type {title(value.dtype)} can't be cast to the desired output type {title(out.dtype)}"
        )
    if value.shape != out.shape:
        if out.numel():
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(value.shape)}. This behavior is deprecated: resize it "
                "yourself, or pass an empty tensor.",
                UserWarning,
                stacklevel=3,
            )
        from candelabra.autograd.views import rebind

        rebind(out, value.to(out.dtype)._payload)
        return out
    return out.copy_(value)

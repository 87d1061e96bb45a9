"""Moves between devices, as one differentiable operator."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import open_device
from candelabra._operators.primitives.creation import cast, uncast
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import like_input

if TYPE_CHECKING:
    from candelabra._device import device
    from candelabra.typing import DType, Tensor


@operator(like_input, promote=unpromoted, out=False, method=False, public=False)
def moved(input: Tensor, target: device, *, dtype: DType | None = None) -> Tensor:
    """A copy on another device, in another dtype if one is given.

    The cast happens on the device that holds both dtypes, the source where it can.
    """
    from candelabra._dispatch.fallback import move_payload
    from candelabra._keys import INFERENCE, state
    from candelabra._tensor import wrap

    source, destination = input._instance, open_device(target)
    wanted = input.dtype if dtype is None else dtype
    destination.keys_for(wanted)
    if wanted is not input.dtype and wanted in source.keys:
        input = cast(input, dtype=wanted)
    keys = destination.keys_for(input.dtype) | state.bits & INFERENCE
    out = wrap(move_payload(input._payload, source, destination), keys)
    return out if out.dtype is wanted else cast(out, dtype=wanted)


def _moved_back(g: Tensor, input_spec: Any) -> Tensor:
    return uncast(moved(g, input_spec.device), input_spec)


moved.vjp(input=_moved_back)

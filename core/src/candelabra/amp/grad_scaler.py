"""``GradScaler``: scale a loss so that gradients in float16 do not underflow, and skip steps with overflow.

As ``torch.amp.GradScaler``. Gradients of ``loss * scale`` are divided by ``scale`` before the optimizer's step. If one
of them is infinite or NaN, the step is skipped and the scale shrinks; after ``growth_interval`` steps without that it
grows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum

from candelabra._annotations import Any
from candelabra._autograd.modes import no_grad
from candelabra._device import device as device_type
from candelabra._device_modules import device_module
from candelabra._tensor import Tensor
from candelabra.dtypes import float16, float32, int32


class OptState(Enum):
    """What was done with an optimizer since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _PerOptimizer:
    """The state of one optimizer: its stage, and per device whether a gradient was infinite or NaN."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found_inf: dict[device_type, Tensor] = {}


class GradScaler:
    """Scale losses and unscale gradients. With ``enabled=False`` every method lets its arguments pass.

    ``device``: where the scale is kept, by default the accelerator; without it the scaler warns and is disabled.
    ``growth_factor`` multiplies the scale after ``growth_interval`` steps without overflow, and ``backoff_factor``
    after one with overflow. Raises ``ValueError`` unless ``growth_factor > 1 > backoff_factor``.
    """

    def __init__(
        self,
        device: str | None = None,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled and self._available()
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise ValueError(f"The growth factor must be > 1.0, got {growth_factor}")
        if backoff_factor >= 1.0:
            raise ValueError(f"The backoff factor must be < 1.0, got {backoff_factor}")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._optimizers: dict[int, _PerOptimizer] = {}

    def _available(self) -> bool:
        from candelabra.accelerator import current_accelerator

        if self._device is None:
            found = current_accelerator()
            self._device = None if found is None else found.type
        module = None if self._device is None else device_module(self._device)
        if module is not None and module.is_available():
            return True
        words = "no accelerator is available" if self._device is None else f"{self._device!r} is not available"
        warnings.warn(f"GradScaler is enabled, but {words}. Disabling.", UserWarning, stacklevel=3)
        return False

    # -- scaling ------------------------------------------------------------------------------------------------------
    def _current_scale(self) -> Tensor:
        if self._scale is None:
            from candelabra import full

            self._scale = full((), self._init_scale, dtype=float32, device=self._device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=self._device)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or each tensor of an iterable, multiplied by the scale.

        Raises ``ValueError`` for anything else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            scale, device = self._current_scale(), outputs.device
            return outputs * (scale if scale.device == device else scale.to(device))
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(value) for value in outputs]
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example before they are clipped.

        Raises ``RuntimeError`` if that was done since the last :meth:`update`, or if the step was made, and
        ``ValueError`` for gradients in float16.
        """
        if not self._enabled:
            return
        state = self._of(optimizer)
        if state.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad():
            self._unscale(optimizer, state, allow_fp16=False)
        state.stage = OptState.UNSCALED

    def _unscale(self, optimizer: Any, state: _PerOptimizer, allow_fp16: bool) -> None:
        # The reciprocal in float64 is exact for scales that are powers of two, and rounded once for others.
        inverse = float(1.0 / self._current_scale().item())
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype is float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                infinite = ~grad.isfinite().all()
                found = state.found_inf.get(grad.device)
                state.found_inf[grad.device] = infinite if found is None else found | infinite
                grad.mul_(inverse)

    def _of(self, optimizer: Any) -> _PerOptimizer:
        return self._optimizers.setdefault(id(optimizer), _PerOptimizer())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients, if :meth:`unscale_` was not called, and make the optimizer's step unless one of them
        is infinite or NaN. Return what the step returns, or None if it was skipped.

        Raises ``RuntimeError`` for a closure, and if the step was made since the last :meth:`update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._of(optimizer)
        if state.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state.stage is OptState.READY:
            self.unscale_(optimizer)
        if not state.found_inf:
            raise RuntimeError("No inf checks were recorded for this optimizer: none of its parameters has a gradient.")
        result = None
        if not any(found.item() for found in state.found_inf.values()):
            result = optimizer.step(*args, **kwargs)
        state.stage = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Change the scale after the steps of all optimizers: shrink it after an overflow, or let it grow.

        ``new_scale`` sets it. Raises ``RuntimeError`` if no step was made since the last update, ``ValueError`` for a
        ``new_scale`` that is not one positive number.
        """
        if not self._enabled:
            return
        scale = self._current_scale()
        assert self._growth_tracker is not None
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise ValueError("new_scale should be a float or a Tensor of one element without gradient")
            scale.fill_(float(new_scale))
        else:
            found = [flag.item() for state in self._optimizers.values() for flag in state.found_inf.values()]
            if not found:
                raise RuntimeError("No inf checks were recorded prior to update.")
            self._adapt(scale, self._growth_tracker, any(found))
        self._optimizers = {}

    def _adapt(self, scale: Tensor, tracker: Tensor, overflow: bool) -> None:
        if overflow:
            scale.mul_(self._backoff_factor)
            tracker.fill_(0)
            return
        successes = int(tracker.item()) + 1
        if successes == self._growth_interval:
            grown = scale * self._growth_factor
            if grown.isfinite().item():
                scale.copy_(grown)
            successes = 0
        tracker.fill_(successes)

    # -- state --------------------------------------------------------------------------------------------------------
    def is_enabled(self) -> bool:
        """Return whether the scaler has an effect."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale; 1 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps without overflow after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without overflow after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def state_dict(self) -> dict[str, Any]:
        """Return the state with PyTorch's keys; empty if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state. Raises ``RuntimeError`` for an empty state, which a disabled scaler has."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._optimizers:
                raise RuntimeError("A GradScaler can only be pickled between update() and the next step()")
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state


__all__ = ["GradScaler", "OptState"]


def __dir__() -> list[str]:
    return sorted(__all__)

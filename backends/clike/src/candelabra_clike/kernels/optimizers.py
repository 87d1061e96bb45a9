"""Fused optimizer steps: one launch for many parameters and their state.

The operations and their order are those of ``candelabra.nn._operators.steps``, so the results are the same to the last
bit. A kernel with the suffix ``_`` updates many parameters in place. The kernel without it updates copies of one
parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, sqrt
from typing import Any, Final, NamedTuple

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.conversions import scalar_converter
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.kernels.copies import clone, contiguous, copy_into
from candelabra_clike.language import Value, select
from candelabra_clike.language import sqrt as square_root
from candelabra_clike.templates.elementwise.loops import CHUNK
from candelabra_clike.templates.optimizer_steps import OptimizerStep


class SelectedStep(NamedTuple):
    """The step for the options of a call, and the values of its numbers."""

    step: OptimizerStep
    numbers: Sequence[float]


# -- gradient descent -------------------------------------------------------------------------------------------------
def decayed_gradient(p: Value, g: Value, decay: Value, sign: Value, *, decayed: bool) -> Value:
    """Return the gradient, or its negative to maximize, with the decay of the parameter: ``g.add(p, alpha=decay)``."""
    return g * sign + p * decay if decayed else g * sign


@lru_cache(None)
def sgd(decayed: bool) -> OptimizerStep:
    """The step without momentum."""

    def update(p: Value, g: Value, lr: Value, decay: Value, sign: Value) -> Value:
        return p - decayed_gradient(p, g, decay, sign, decayed=decayed) * lr

    return OptimizerStep(f"sgd{'_decayed' * decayed}", ("p", "g"), ("p",), ("lr", "decay", "sign"), update)


def select_sgd(lr: float, weight_decay: float, maximize: bool) -> SelectedStep:
    """Select the step for the options of ``sgd_step``."""
    return SelectedStep(sgd(bool(weight_decay)), (lr, weight_decay, -1.0 if maximize else 1.0))


@lru_cache(None)
def momentum(decayed: bool, nesterov: bool) -> OptimizerStep:
    """The step with momentum."""

    def update(
        p: Value, g: Value, b: Value, lr: Value, keep: Value, share: Value, decay: Value, sign: Value
    ) -> tuple[Value, Value]:
        g = decayed_gradient(p, g, decay, sign, decayed=decayed)
        b = b * keep + g * share
        return p - (g + b * keep if nesterov else b) * lr, b

    name = f"momentum{'_decayed' * decayed}{'_nesterov' * nesterov}"
    return OptimizerStep(name, ("p", "g", "b"), ("p", "b"), ("lr", "keep", "share", "decay", "sign"), update)


def select_momentum(
    lr: float, keep: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool
) -> SelectedStep:
    """Select the step for the options of ``momentum_step``."""
    numbers = (lr, keep, 1 - dampening, weight_decay, -1.0 if maximize else 1.0)
    return SelectedStep(momentum(bool(weight_decay), nesterov), numbers)


# -- Adam -------------------------------------------------------------------------------------------------------------
@lru_cache(None)
def adam(decay: str, near: bool, largest: bool) -> OptimizerStep:
    """The Adam step. ``decay`` is empty, ``coupled`` or ``decoupled``; ``near`` is true if the weight of g is below
    1/2.
    """
    coupled, decoupled = decay == "coupled", decay == "decoupled"

    def moments(
        p: Value, g: Value, m: Value, s: Value, decay: Value, share: Value, keep: Value, share2: Value, sign: Value
    ) -> tuple[Value, Value, Value]:
        g = decayed_gradient(p, g, decay, sign, decayed=coupled)
        m = m + (g - m) * share if near else g - (g - m) * share
        return p * decay if decoupled else p, m, s * keep + g * g * share2

    def moved(p: Value, m: Value, s: Value, lack: Value, eps: Value, rate: Value) -> Value:
        return p + m * rate / (square_root(s) / lack + eps)

    def update(
        p: Value, g: Value, m: Value, s: Value, decay: Value, share: Value, keep: Value, share2: Value, lack: Value,
        eps: Value, rate: Value, sign: Value,
    ) -> tuple[Value, ...]:  # fmt: skip
        p, m, s = moments(p, g, m, s, decay, share, keep, share2, sign)
        return moved(p, m, s, lack, eps, rate), m, s

    def update_with_largest(
        p: Value, g: Value, m: Value, s: Value, top: Value, decay: Value, share: Value, keep: Value, share2: Value,
        lack: Value, eps: Value, rate: Value, sign: Value,
    ) -> tuple[Value, ...]:  # fmt: skip
        p, m, s = moments(p, g, m, s, decay, share, keep, share2, sign)
        top = select((top > s) | (top != top), top, s)
        return moved(p, m, top, lack, eps, rate), m, s, top

    name = "_".join(filter(None, ("adam", decay, "" if near else "far", "largest" * largest)))
    kept = ("m", "s", "top") if largest else ("m", "s")
    numbers = ("decay", "share", "keep", "share2", "lack", "eps", "rate", "sign")
    return OptimizerStep(name, ("p", "g", *kept), ("p", *kept), numbers, update_with_largest if largest else update)


def select_adam(
    step: float, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
    maximize: bool, *, largest: bool = False,
) -> SelectedStep:  # fmt: skip
    """Select the step for the options of ``adam_step``."""
    decay = ("decoupled" if decoupled else "coupled") if weight_decay else ""
    shrinking = 1 - lr * weight_decay if decoupled else weight_decay
    weight = 1 - beta1
    near = weight < 0.5
    lack, rate = sqrt(1 - beta2**step), -lr / (1 - beta1**step)
    numbers = (
        shrinking, weight if near else 1 - weight, beta2, 1 - beta2, lack, eps, rate, -1.0 if maximize else 1.0,
    )  # fmt: skip
    return SelectedStep(adam(decay, near, largest), numbers)


select_amsgrad = partial(select_adam, largest=True)
"""Select the step for the options of ``amsgrad_step``."""


# -- kernels ----------------------------------------------------------------------------------------------------------
ParameterRow = tuple[StridedArray, ...]
"""A parameter, its gradient and its state."""
SHARED_LAUNCH_LIMIT: Final = 1 << 16
"""The maximum size of a parameter that shares a launch on devices whose work-items are lanes. For larger parameters,
finding
the parameter costs more than a launch."""


@lru_cache(None)
def compiled(engine: Engine, step: OptimizerStep, d: dtype, width: int) -> Launch:
    """Return the compiled kernel of a step for ``width`` parameters."""
    serial = engine.traits.serial
    return engine.compile(step.single(d, serial) if width == 1 else step.several(d, serial, width))


class LaunchedGroup(NamedTuple):
    """Parameters that share a launch."""

    launch: Launch
    group: slice
    padding: int
    """The number of empty parameters that the launch takes besides."""


@lru_cache(1024)
def groups(engine: Engine, step: OptimizerStep, d: dtype, count: int) -> tuple[LaunchedGroup, ...]:
    """Return the launches that update ``count`` parameters."""
    widths, found = step.widths, []
    for start in range(0, count, widths[-1]):
        width = next((width for width in widths if width >= count - start), widths[-1])
        stop = min(start + width, count)
        found.append(LaunchedGroup(compiled(engine, step, d, width), slice(start, stop), width - (stop - start)))
    return tuple(found)


@dataclass(frozen=True)
class FusedStep:
    """One step with its arguments on one device."""

    engine: Engine
    step: OptimizerStep
    dtype: dtype
    values: Sequence[float]

    def __call__(self, columns: Sequence[Sequence[StridedArray]]) -> None:
        """Update all parameters in as few launches as possible. ``columns`` has a sequence of arrays per array of the
        step.

        Raises ``RuntimeError``, without changing anything, if the arrays of a parameter differ in shape. The
        kernels are compiled before the first one is launched, so that an error of the compiler changes nothing either.
        """
        shapes = [a.shape for a in columns[0]]
        for column in columns[1:]:
            if [a.shape for a in column] != shapes:
                wrong = next(([a.shape for a in row] for row in zip(*columns) if len({a.shape for a in row}) > 1), None)
                raise RuntimeError(f"{self.step.name}: expected arrays of one shape per parameter, got {wrong}")
        shared, separate = self._partition_rows(columns)
        separate = [row for row in separate if row[0].size]
        groups(self.engine, self.step, self.dtype, len(shared))
        launches = [compiled(self.engine, self.step, self.dtype, 1) for _ in separate]
        if shared:
            buffers = [[a.buffer for a in column] for column in zip(*shared)]
            self.over_buffers(buffers, [row[0].size for row in shared])
        for row, launch in zip(separate, launches):
            self._launch_one(launch, row)

    def over_buffers(self, columns: Sequence[Sequence[Buffer]], sizes: Sequence[int]) -> None:
        """Update several parameters, which are contiguous, start at their buffers, and share no memory."""
        for launch, group, padding in groups(self.engine, self.step, self.dtype, len(sizes)):
            some = sizes[group]
            buffers: list[Any] = []
            for column in columns:
                buffers += column[group]
                buffers += buffers[-1:] * padding
            items = sum(some)
            if self.engine.traits.serial:
                items = 0
                for n in some:
                    items += (n + CHUNK - 1) // CHUNK
            launch(items, *buffers, *some, *[0] * padding, *self.values)

    def _partition_rows(
        self, columns: Sequence[Sequence[StridedArray]]
    ) -> tuple[list[ParameterRow], list[ParameterRow]]:
        """Return the rows that share launches, and those with a launch of their own: large or non-contiguous arrays, or
        views.

        Rows that write arrays of other rows are processed one after another.
        """
        rows = list(zip(*columns, strict=True))
        written: set[int] = set()
        read: set[int] = set()
        for name, column in zip(self.step.arrays, columns):
            (written if name in self.step.written else read).update([id(a.buffer) for a in column])
        if len(written) < len(self.step.written) * len(rows) or not written.isdisjoint(read):
            return [], rows
        limit = inf if self.engine.traits.serial else SHARED_LAUNCH_LIMIT
        shared, separate = [], []
        for row in rows:
            for a in row:
                if a.offset or not a.contiguous or a.size > limit:
                    separate.append(row)
                    break
            else:
                shared.append(row)
        return (shared, separate) if len(shared) > 1 else ([], rows)

    def _launch_one(self, launch: Launch, row: ParameterRow) -> None:
        size = row[0].size
        whole = [contiguous(a) for a in row]
        items = -(-size // CHUNK) if self.engine.traits.serial else size
        launch(items, *[a.buffer for a in whole], *[a.offset for a in whole], size, *self.values)
        for name, argument, result in zip(self.step.arrays, row, whole):
            if result is not argument and name in self.step.written:
                copy_into(argument, result)


class FusedOptimizer:
    """The kernel of an operator: ``arrays`` arrays, then options from which ``select`` selects the step.

    In place, the arguments are sequences of arrays, with one array per parameter. Half types are left to the composite,
    which rounds after each operation.
    """

    def __init__(self, select: Callable[..., SelectedStep], arrays: int, inplace: bool) -> None:
        self.choose = select
        self.arrays = arrays
        self.inplace = inplace
        self._functions = {d: self._inplace(d) if inplace else self._on_copies(d) for d in (float32, float64)}

    def for_dtype(self, d: dtype) -> Callable[..., Any] | None:
        """Return the function for a dtype, or None."""
        return self._functions.get(d)

    def __call__(self, *args: Any) -> Any:
        """Call the function for the dtype of the arrays. Raises ``TypeError`` for half types."""
        d = (args[0][0] if self.inplace else args[0]).dtype
        kernel = self.for_dtype(d)
        if kernel is None:
            raise TypeError(f"fused optimizer steps support float32 and float64, got {d}")
        return kernel(*args)

    def _inplace(self, d: dtype) -> Callable[..., None]:
        count, select, convert = self.arrays, self.choose, scalar_converter(d)

        @lru_cache(64)  # the options of most steps are those of the step before
        def selected(engine: Engine, options: tuple[Any, ...]) -> FusedStep:
            step, numbers = select(*options)
            return FusedStep(engine, step, d, [v for x in numbers for v in convert(x)])

        def steps_in_place(*args: Any) -> None:
            selected(args[0][0].engine, args[count:])(args[:count])

        def over_buffers(engine: Engine, columns: Sequence[Any], sizes: Sequence[int], *options: Any) -> None:
            selected(engine, options).over_buffers(columns, sizes)

        steps_in_place.over_buffers = over_buffers  # type: ignore[attr-defined]
        return steps_in_place

    def _on_copies(self, d: dtype) -> Callable[..., Any]:
        count, steps = self.arrays, self._inplace(d)

        def step_on_copies(*args: Any) -> Any:
            param, grad, *kept = args[:count]
            moved_to_last = (clone(param), *map(clone, kept))
            steps(*[[a] for a in (moved_to_last[0], grad, *moved_to_last[1:])], *args[count:])
            return moved_to_last if kept else moved_to_last[0]

        return step_on_copies


SELECTORS: Final[dict[str, tuple[Callable[..., SelectedStep], int]]] = {
    "sgd_step": (select_sgd, 2), "momentum_step": (select_momentum, 3), "adam_step": (select_adam, 4),
    "amsgrad_step": (select_amsgrad, 5),
}  # fmt: skip
KERNELS: Final = {
    name + form: FusedOptimizer(select, arrays, inplace=bool(form))
    for name, (select, arrays) in SELECTORS.items()
    for form in ("", "_")
}

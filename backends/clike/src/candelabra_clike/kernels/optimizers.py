"""Whole steps of optimisers: one launch for many parameters and all that is kept beside them.

The operations and their order are those of ``candelabra.nn._operators.steps``, so the numbers are the same to the last
bit. A kernel whose name ends in ``_`` takes many parameters and writes into its arguments; the one without takes one
and works on copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, sqrt
from typing import Any, Final, NamedTuple

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copying import clone, copy_into, dense
from candelabra_clike.numbers import converter
from candelabra_clike.templates.elementwise.loops import CHUNK
from candelabra_clike.templates.steps import Step


class Chosen(NamedTuple):
    """The step that a call's options take, and the values of its numbers."""

    step: Step
    numbers: Sequence[float]


# -- gradient descent -------------------------------------------------------------------------------------------------
COUPLED: Final = "vg = vg + vp * decay;\n"
"""``g.add(p, alpha=decay)``"""


@lru_cache(None)
def sgd(decayed: bool) -> Step:
    """Without momentum."""
    text = f"vg = vg * way;\n{COUPLED if decayed else ''}vp = vp - vg * lr;\n"
    return Step(f"sgd{'_decayed' * decayed}", ("p", "g"), ("p",), ("lr", "decay", "way"), text)


def choose_sgd(lr: float, weight_decay: float, maximize: bool) -> Chosen:
    """From the options of ``sgd_step``."""
    return Chosen(sgd(bool(weight_decay)), (lr, weight_decay, -1.0 if maximize else 1.0))


@lru_cache(None)
def momentum(decayed: bool, nesterov: bool) -> Step:
    """With momentum."""
    ahead = "(vg + vb * keep)" if nesterov else "vb"
    text = (
        f"vg = vg * way;\n{COUPLED if decayed else ''}vb = vb * keep;\nvb = vb + vg * share;\nvp = vp - {ahead} * lr;\n"
    )
    name = f"momentum{'_decayed' * decayed}{'_nesterov' * nesterov}"
    return Step(name, ("p", "g", "b"), ("p", "b"), ("lr", "keep", "share", "decay", "way"), text)


def choose_momentum(
    lr: float, keep: float, dampening: float, weight_decay: float, nesterov: bool, maximize: bool
) -> Chosen:
    """From the options of ``momentum_step``."""
    numbers = (lr, keep, 1 - dampening, weight_decay, -1.0 if maximize else 1.0)
    return Chosen(momentum(bool(weight_decay), nesterov), numbers)


# -- Adam -------------------------------------------------------------------------------------------------------------
@lru_cache(None)
def adam(decay: str, near: bool, largest: bool) -> Step:
    """``decay``: nothing, ``coupled`` or ``decoupled``; ``near``: the average is nearer to itself than to g."""
    decaying = {"": "", "coupled": COUPLED, "decoupled": "vp = vp * decay;\n"}[decay]
    average = "vm + (vg - vm) * share" if near else "vg - (vg - vm) * share"
    top = "vl = vl > vs || vl != vl ? vl : vs;\n" if largest else ""
    text = (
        f"vg = vg * way;\n{decaying}vm = {average};\nvs = vs * keep;\nvs = vs + vg * vg * share2;\n{top}"
        f"const {{T}} root = DIVIDE_{{W}}(SQRT_{{W}}({'vl' if largest else 'vs'}), lack) + eps;\n"
        "vp = vp + DIVIDE_{W}(vm * rate, root);\n"
    )
    name = "_".join(filter(None, ("adam", decay, "" if near else "far", "largest" * largest)))
    kept = ("m", "s", "l") if largest else ("m", "s")
    numbers = ("decay", "share", "keep", "share2", "lack", "eps", "rate", "way")
    return Step(name, ("p", "g", *kept), ("p", *kept), numbers, text)


def choose_adam(
    step: float, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
    maximize: bool, *, largest: bool = False,
) -> Chosen:  # fmt: skip
    """From the options of ``adam_step``."""
    decay = ("decoupled" if decoupled else "coupled") if weight_decay else ""
    shrinking = 1 - lr * weight_decay if decoupled else weight_decay
    weight = 1 - beta1
    near = weight < 0.5
    lack, rate = sqrt(1 - beta2**step), -lr / (1 - beta1**step)
    numbers = (
        shrinking, weight if near else 1 - weight, beta2, 1 - beta2, lack, eps, rate, -1.0 if maximize else 1.0,
    )  # fmt: skip
    return Chosen(adam(decay, near, largest), numbers)


choose_amsgrad = partial(choose_adam, largest=True)
"""From the options of ``amsgrad_step``."""


# -- kernels ----------------------------------------------------------------------------------------------------------
Row = tuple[StridedArray, ...]
"""A parameter, its gradient, and what is kept beside it."""
SHARING: Final = 1 << 16
"""Elements up to which a parameter shares a launch where a work-item is one element: finding the parameter then costs
less than the launch that is saved."""


@lru_cache(None)
def compiled(engine: Engine, step: Step, d: dtype, width: int) -> Launch:
    """The kernel of a step on one device, for so many parameters."""
    serial = engine.traits.serial
    return engine.compile(step.single(d, serial) if width == 1 else step.several(d, serial, width))


@dataclass(frozen=True)
class Steps:
    """One step with its numbers, as arguments, on one device: what a call of a kernel does to its parameters."""

    engine: Engine
    step: Step
    dtype: dtype
    values: Sequence[float]

    def __call__(self, columns: Sequence[Sequence[StridedArray]]) -> None:
        """Do the step of all parameters, in as few launches as there can be; ``columns`` are given array by array.

        Raises ``RuntimeError``, and nothing is done, where a parameter's arrays differ in shape.
        """
        shapes = [a.shape for a in columns[0]]
        if any([a.shape for a in column] != shapes for column in columns):
            raise RuntimeError(f"{self.step.name}: shapes differ")
        shared, lone = self._divided(columns)
        widths = self.step.widths
        for start in range(0, len(shared), widths[-1]):
            part = shared[start : start + widths[-1]]
            self._several(part, next(width for width in widths if width >= len(part)))
        for row in lone:
            self._one(row)

    def _divided(self, columns: Sequence[Sequence[StridedArray]]) -> tuple[list[Row], list[Row]]:
        """The rows that share launches, and those that have one of their own: what does not begin its buffer, is not
        contiguous or large. Rows that write what others use are done in their order.
        """
        rows = list(zip(*columns, strict=True))
        written: set[int] = set()
        read: set[int] = set()
        for name, column in zip(self.step.arrays, columns):
            (written if name in self.step.written else read).update([id(a.buffer) for a in column])
        if len(written) < len(self.step.written) * len(rows) or not written.isdisjoint(read):
            return [], rows
        limit = inf if self.engine.traits.serial else SHARING
        shared, lone = [], []
        for row in rows:
            for a in row:
                if a.offset or not a.contiguous or a.size > limit:
                    lone.append(row)
                    break
            else:
                shared.append(row)
        return (shared, lone) if len(shared) > 1 else ([], rows)

    def _several(self, rows: Sequence[Row], width: int) -> None:
        """One launch for all; what they lack to its ``width`` are parameters of no elements."""
        sizes = [row[0].size for row in rows]
        missing = width - len(rows)
        buffers: list[Any] = []
        for column in zip(*rows):
            buffers += [a.buffer for a in column]
            buffers += buffers[-1:] * missing
        items = sum([(n + CHUNK - 1) // CHUNK for n in sizes]) if self.engine.traits.serial else sum(sizes)
        launch = compiled(self.engine, self.step, self.dtype, width)
        launch(items, *buffers, *sizes, *[0] * missing, *self.values)

    def _one(self, row: Row) -> None:
        size = row[0].size
        if not size:
            return
        whole = [dense(a) for a in row]
        items = -(-size // CHUNK) if self.engine.traits.serial else size
        launch = compiled(self.engine, self.step, self.dtype, 1)
        launch(items, *[a.buffer for a in whole], *[a.offset for a in whole], size, *self.values)
        for name, given, changed in zip(self.step.arrays, row, whole):
            if changed is not given and name in self.step.written:
                copy_into(given, changed)


class Fused:
    """The kernel of an operator: ``arrays`` arrays, then options from which ``choose`` makes the step.

    In place it is sequences of arrays instead, one array for each parameter. Half types are left to the operators that
    a step is made of, which round after each.
    """

    def __init__(self, choose: Callable[..., Chosen], arrays: int, inplace: bool) -> None:
        self.choose = choose
        self.arrays = arrays
        self.inplace = inplace
        self._made = {d: self._inplace(d) if inplace else self._on_copies(d) for d in (float32, float64)}

    def for_dtype(self, d: dtype) -> Callable[..., Any] | None:
        """The function of one dtype."""
        return self._made.get(d)

    def __call__(self, *args: Any) -> Any:
        """The function of whatever dtype the arrays have. ``TypeError`` for half types."""
        d = (args[0][0] if self.inplace else args[0]).dtype
        kernel = self.for_dtype(d)
        if kernel is None:
            raise TypeError(f"there is no fused step for {d}")
        return kernel(*args)

    def _inplace(self, d: dtype) -> Callable[..., None]:
        count, choose, convert = self.arrays, self.choose, converter(d)

        def steps_in_place(*args: Any) -> None:
            step, numbers = choose(*args[count:])
            Steps(args[0][0].engine, step, d, [v for x in numbers for v in convert(x)])(args[:count])

        return steps_in_place

    def _on_copies(self, d: dtype) -> Callable[..., Any]:
        count, steps = self.arrays, self._inplace(d)

        def step_on_copies(*args: Any) -> Any:
            param, grad, *kept = args[:count]
            moved = (clone(param), *map(clone, kept))
            steps(*[[a] for a in (moved[0], grad, *moved[1:])], *args[count:])
            return moved if kept else moved[0]

        return step_on_copies


CHOICES: Final[dict[str, tuple[Callable[..., Chosen], int]]] = {
    "sgd_step": (choose_sgd, 2), "momentum_step": (choose_momentum, 3), "adam_step": (choose_adam, 4),
    "amsgrad_step": (choose_amsgrad, 5),
}  # fmt: skip
KERNELS: Final = {
    name + form: Fused(choose, arrays, inplace=bool(form))
    for name, (choose, arrays) in CHOICES.items()
    for form in ("", "_")
}

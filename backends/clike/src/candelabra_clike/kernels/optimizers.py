"""Whole steps of optimisers: one launch for a parameter and all that is kept beside it.

The operations and their order are those of ``candelabra.nn.operators.steps``, so the numbers are the same to the last
bit. A kernel whose name ends in ``_`` writes into its arguments; the one without works on copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import sqrt
from typing import Any, Final, NamedTuple

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copying import clone, copy_into, dense
from candelabra_clike.numbers import converter
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.loops import CHUNK
from candelabra_clike.types import CTYPES


@dataclass(frozen=True)
class Step:
    """What happens to one element. In the text ``p``, ``g`` … are values of the arrays; ``{W}`` ends SQRT and DIVIDE.

    ``written`` are the arrays that change, ``numbers`` further values.
    """

    name: str
    arrays: tuple[str, ...]
    written: tuple[str, ...]
    numbers: tuple[str, ...]
    text: str

    def source(self, d: dtype, serial: bool) -> Source:
        """The kernel over contiguous arrays of ``n`` elements."""
        type = CTYPES[d].value
        head = (
            *[(writes if a in self.written else reads)(a, type) for a in self.arrays],
            *[number(f"{a}_at") for a in self.arrays],
            number("n"),
            *[number(s, type) for s in self.numbers],
        )
        loads = "".join(f"{type} v{a} = q{a}[i];\n" for a in self.arrays)
        stores = "".join(f"q{a}[i] = v{a};\n" for a in self.written)
        start = "GLOBAL_ID" if not serial else f"GLOBAL_ID * {CHUNK}u"
        pointers = "".join(
            f"GLOBAL {'' if a in self.written else 'const '}{type}* q{a} = {a} + ({a}_at + first);\n"
            for a in self.arrays
        )
        body = f"const INDEX first = {start};\nif (first >= n) return;\n{pointers}"
        if serial:
            body += (
                f"const INDEX rest = n - first;\nconst int trips = rest < {CHUNK} ? (int)rest : {CHUNK};\n"
                "INDEPENDENT\nfor (int i = 0; i < trips; ++i) {\n"
            )
        else:
            body += "{ const u32 i = 0;\n"
        text = self.text.format(T=type, W=type.upper())
        return Source(
            f"{self.name}_{d.name}", head, f"{body}{loads}{text}{stores}}}", group=1 if serial else None, wide=True
        )


@lru_cache(None)
def compiled(engine: Engine, step: Step, d: dtype) -> Launch:
    """The kernel of a step on one device."""
    return engine.compile(step.source(d, engine.traits.serial))


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
class Fused:
    """The kernel of an operator: ``arrays`` arrays, then options from which ``choose`` makes the step.

    Half types are left to the operators that a step is made of, which round after each.
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
        kernel = self.for_dtype(args[0].dtype)
        if kernel is None:
            raise TypeError(f"there is no fused step for {args[0].dtype}")
        return kernel(*args)

    def _inplace(self, d: dtype) -> Callable[..., None]:
        count, choose, convert = self.arrays, self.choose, converter(d)

        @lru_cache(64)  # the parameters of a group come one after the other with the same options
        def launched(engine: Engine, *options: Any) -> tuple[Step, Launch, list[Any]]:
            step, numbers = choose(*options)
            return step, compiled(engine, step, d), [v for x in numbers for v in convert(x)]

        def step_in_place(*args: Any) -> None:
            arrays: tuple[StridedArray, ...] = args[:count]
            first = arrays[0]
            step, launch, values = launched(first.engine, *args[count:])
            size = first.size
            if len({a.shape for a in arrays}) != 1:
                raise RuntimeError(f"{step.name}: shapes differ")
            if not size:
                return
            whole = [a if a.contiguous else dense(a) for a in arrays]
            items = -(-size // CHUNK) if first.engine.traits.serial else size
            launch(items, *[a.buffer for a in whole], *[a.offset for a in whole], size, *values)
            for name, given, changed in zip(step.arrays, arrays, whole):
                if changed is not given and name in step.written:
                    copy_into(given, changed)

        return step_in_place

    def _on_copies(self, d: dtype) -> Callable[..., Any]:
        count, step = self.arrays, self._inplace(d)

        def step_on_copies(*args: Any) -> Any:
            param, grad, *kept = args[:count]
            moved = (clone(param), *map(clone, kept))
            step(moved[0], grad, *moved[1:], *args[count:])
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

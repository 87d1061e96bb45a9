"""One step of a recurrent network after its products, as one kernel: the loops around the expressions of a step.

The arrays are contiguous matrices with the same rows. Each has one or several parts of ``width`` columns. The function
of a step gets the elements of each array that belong to the current element of the state, by the name of the array: a
value, or a tuple of the values of several parts. It returns those of all written arrays, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.language import INDEX, Value, call, constant, parameters_of
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.source import Source
from candelabra_clike.types import CTYPES

Parts = tuple[tuple[str, int], ...]
"""The names of arrays, with their numbers of parts."""
Place = tuple[KernelArray, Value]
"""An array and the index of an element."""
DTYPES = (float32, float64)


def compute(
    k: KernelBuilder, name: str, function: Callable[..., Any], read: Mapping[str, Sequence[Place]],
    written: Sequence[Place],
) -> None:  # fmt: skip
    """Load the elements that the function of a step asks for, and store those that it returns.

    An array that a step may not have is an argument with a default. Raises ``ExpressionError`` if a value has another
    type, or if there are not as many as places.
    """
    known: dict[str, Any] = {}
    for array in [array for array in read if array in parameters_of(function)]:
        values = tuple([k.let(f"{array}_{part}", x[at]) for part, (x, at) in enumerate(read[array])])
        known[array] = values if len(values) > 1 else values[0]
    k.compute(f"{name!r} in {written[0][0].type}", function, known, written)


@dataclass(frozen=True, eq=False)
class GateStep:
    """A step: the arrays that it reads and writes, each with its number of parts, and its function. Raises
    ``ExpressionError``.
    """

    name: str
    read: Parts
    written: Parts
    function: Callable[..., Any]

    def __post_init__(self) -> None:
        for d in DTYPES:
            self.source(d, serial=True)

    def source(self, d: dtype, serial: bool) -> Source:
        """Return the kernel: one work-item for each row on ``serial`` devices, otherwise one for each element.

        Parameters are the written buffers, the buffers that are read, their offsets, and the width.
        """
        return built(self.name)(self._built)(d, serial)

    def _built(self, d: dtype, serial: bool) -> Source:
        type = CTYPES[d].value
        k = KernelBuilder(f"{self.name}_{d.name}", wide=True)
        arrays = [k.writes(name, type) for name, _ in self.written] + [k.reads(name, type) for name, _ in self.read]
        starts = [constant(INDEX, 0) for _ in self.written] + [k.number(f"{name}_at") for name, _ in self.read]
        width = k.number("width")
        row = k.let("row", k.item if serial else k.item // width)
        rows = [
            (k.pointer(f"{name}_row", array, row * parts * width + start), parts)
            for (name, parts), array, start in zip((*self.written, *self.read), arrays, starts, strict=True)
        ]

        def step(i: Value) -> None:
            places = [[(array, part * width + i) for part in range(parts)] for array, parts in rows]
            read = {name: places[len(self.written) + j] for j, (name, _) in enumerate(self.read)}
            written = [place for each in places[: len(self.written)] for place in each]
            compute(k, self.name, self.function, read, written)

        if serial:
            with k.loop("i", 0, width, independent=True) as i:
                step(i)
        else:
            step(k.let("i", k.item % width))
        return k.source(group=1 if serial else None)


# -- the cells --------------------------------------------------------------------------------------------------------
Values = tuple[Value, ...]


def plus(x: Value, y: Value | None) -> Value:
    """Return a sum, or ``x`` if there is no ``y``."""
    return x if y is None else x + y


def _sigmoid_gradient(gradient: Value, y: Value) -> Value:
    return gradient * (y * (1 - y))


def _tanh_gradient(gradient: Value, y: Value) -> Value:
    return gradient * (1 - y * y)


def lstm_values(s: Values, last: Value) -> Values:
    """Return the hidden state, the cell and the gates of an LSTM from the sums of its gates and the last cell."""
    i, f, o = (call("sigmoid", s[k]) for k in (0, 1, 3))
    g = call("tanh", s[2])
    c = f * last + i * g
    return o * call("tanh", c), c, i, f, g, o


def gru_values(p: Values, q: Values, last: Value) -> Values:
    """Return the hidden state of a GRU and its gates from the sums of inputs, of states, and the last state."""
    r, z = (call("sigmoid", p[k] + q[k]) for k in (0, 1))
    n = call("tanh", p[2] + r * q[2])
    return n + z * (last - n), r, z, n, q[2]


def lstm_gradients(
    gates: Values, cell: Value, last: Value, dh: Value, dcell: Value | None = None, dgates: Values | None = None
) -> Values:
    """Return the gradients of the sums of the gates and of the last cell."""
    i, f, g, o = gates
    top = call("tanh", cell)
    dc = plus(dh * o * (1 - top * top), dcell)
    own = dgates or (None,) * 4
    totals = [plus(total, d) for total, d in zip((dc * g, dc * last, dc * i, dh * top), own, strict=True)]
    slopes = _sigmoid_gradient, _sigmoid_gradient, _tanh_gradient, _sigmoid_gradient
    return *[slope(total, y) for slope, total, y in zip(slopes, totals, gates, strict=True)], dc * f


def gru_gradients(gates: Values, last: Value, dh: Value, dgates: Values | None = None) -> Values:
    """Return the gradients of the sums of inputs, of those of states, and of the last state."""
    r, z, n, qn = gates
    own = dgates or (None,) * 4
    dpn = _tanh_gradient(plus(dh * (1 - z), own[2]), n)
    dpr = _sigmoid_gradient(plus(dpn * qn, own[0]), r)
    dpz = _sigmoid_gradient(plus(dh * (last - n), own[1]), z)
    return dpr, dpz, dpn, dpr, dpz, plus(dpn * r, own[3]), dh * z


LSTM = GateStep("lstm_step", (("s", 4), ("last", 1)), (("hidden", 1), ("cell", 1), ("gates", 4)), lstm_values)
GRU = GateStep("gru_step", (("p", 3), ("q", 3), ("last", 1)), (("hidden", 1), ("gates", 4)), gru_values)


@lru_cache(None)
def lstm_backward(with_cell: bool, with_gates: bool) -> GateStep:
    """Return the gradient of the step of an LSTM, with a gradient of its cell and of its gates if they have one."""
    read = [("gates", 4), ("cell", 1), ("last", 1), ("dh", 1)]
    read += [("dcell", 1)] * with_cell + [("dgates", 4)] * with_gates
    name = f"lstm_step_backward{'_cell' * with_cell}{'_gates' * with_gates}"
    return GateStep(name, tuple(read), (("ds", 4), ("dlast", 1)), lstm_gradients)


@lru_cache(None)
def gru_backward(with_gates: bool) -> GateStep:
    """Return the gradient of the step of a GRU, with a gradient of its gates if they have one."""
    read = [("gates", 4), ("last", 1), ("dh", 1), *[("dgates", 4)] * with_gates]
    written = ("dp", 3), ("dq", 3), ("dlast", 1)
    return GateStep(f"gru_step_backward{'_gates' * with_gates}", tuple(read), written, gru_gradients)

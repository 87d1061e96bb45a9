"""Connectionist temporal classification: losses, and the probabilities of classes given the labels.

A work-item of a processor follows the recursion of one sequence, that of
:mod:`candelabra.nn._operators.temporal_classification`. Rows of ``alpha`` and ``beta`` have two entries of -inf before,
or after, those of the states, so that the loops over states have no cases.
"""

from __future__ import annotations

from functools import partial
from math import inf, nan
from typing import Any, Final

from candelabra.dtypes import dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OF_DIM
from candelabra_clike.kernels.reductions import of_single_and_double
from candelabra_clike.language import INDEX, Value, and_then, call, cast, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source
from candelabra_clike.templates.indexing.index_arrays import IndexErrors
from candelabra_clike.types import CTYPES

INVALID_LABEL = IndexOutOfBounds("alignment_losses", RuntimeError, f"gather(): {OF_DIM}")


def _run(gradient: bool, x: StridedArray, *arguments: Any) -> Any:
    """Run a recursion over a batch, one work-item a sequence. Declines devices on which that would be slow."""
    targets, input_lengths, target_lengths, blank, zero_infinity = arguments
    engine, d, count = x.engine, x.dtype, targets.shape[:1]
    fits = len(x.shape) == 3 and 0 not in x.shape and len(targets.shape) == 2 and x.shape[1:2] == count
    if not engine.traits.serial or not fits or not input_lengths.shape == target_lengths.shape == count:
        return NotImplemented  # for the operator's body, which also says what is wrong
    times, sequences, classes = x.shape
    longest = targets.shape[1]
    width, rows = 2 * longest + 1 + EDGE, times if gradient else 2
    launch = compiled(engine, posteriors if gradient else losses, d)
    out: StridedArray = engine.empty(x.shape if gradient else count, d)
    scratch = [rows, 2, 1] if gradient else [rows]
    arrays = [contiguous(each) for each in (x, targets, input_lengths, target_lengths)]
    errors, ticket = engine.errors.register(INVALID_LABEL, [])
    launch(
        sequences, out.buffer, *[engine.allocate(n * sequences * width * d.itemsize) for n in scratch],
        *[engine.allocate(sequences * width * 4) for _ in range(2)], *[each.buffer for each in arrays], errors, ticket,
        *[each.offset for each in arrays], blank, zero_infinity, times, sequences, classes, longest, rows,
    )  # fmt: skip
    return out


EDGE: Final = 2
"""The entries of a row besides those of the states."""


@built("alignment_losses")
def losses(d: dtype) -> Source:
    """Return the kernel of the losses."""
    recursion = Recursion("alignment_losses", d)
    recursion.out[recursion.sequence] = recursion.forward()
    return recursion.source()


@built("label_posteriors")
def posteriors(d: dtype) -> Source:
    """Return the kernel of the posteriors. It needs all rows of ``alpha``, and two of ``beta``."""
    recursion = Recursion("label_posteriors", d, gradient=True)
    recursion.backward(recursion.forward())
    return recursion.source()


class Recursion:
    """The recursion of one sequence. The parameters are ``out``, scratch memory, the inputs, the record of errors,
    offsets of the inputs, and numbers.
    """

    def __init__(self, name: str, d: dtype, gradient: bool = False) -> None:
        self.type = type = CTYPES[d].value
        k = self.kernel = KernelBuilder(f"{name}_{d.name}", wide=True)
        self.out, alpha = k.writes("out", type), k.writes("alpha", type)
        if gradient:
            self.beta, self.chances = k.writes("beta", type), k.writes("chances", type)
        classes, skips, self.x = k.writes("classes", "u32"), k.writes("skips", "u32"), k.reads("x", type)
        targets, taken, spelled = (k.reads(n, "i64") for n in ("targets", "input_lengths", "target_lengths"))
        self.errors = IndexErrors(k)
        self.x_at, targets_at, taken_at, spelled_at = k.numbers("x_at", "targets_at", "inputs_at", "lengths_at")
        blank, self.zeros = k.number("blank", "i64"), k.number("zeros", "u32")
        self.times, self.sequences, self.count, longest, self.rows = k.numbers(
            "times", "sequences", "count", "longest", "rows"
        )
        q = self.sequence = k.let("q", k.item)
        self.labels = k.let("labels", _within(spelled[spelled_at + q], longest))
        self.end = k.let("end", _within(taken[taken_at + q], self.times))
        self.states = k.let("states", 2 * self.labels + 1)
        self.width = k.let("width", 2 * longest + 1 + EDGE)
        self.classes = k.pointer("classes_q", classes, q * self.width)
        self.skips = k.pointer("skips_q", skips, q * self.width)
        self.alpha = k.pointer("alpha_q", alpha, q * self.rows * self.width)
        self.errors.declare()
        self._declare_classes(k.pointer("targets_q", targets, targets_at + q * longest), blank)
        self.errors.report(2, self.count)

    def _declare_classes(self, targets: KernelArray, blank: Value) -> None:
        """Store the class of each state, and whether it may follow the one two before."""
        k, classes = self.kernel, self.classes
        with k.loop("s", 0, self.states) as s:
            spells = (s & 1) != 0
            label = k.let("label", select(spells, targets[s >> 1], blank))
            good = k.let("good", cast("u64", label) < cast("u64", self.count))
            with k.when(~good):
                self.errors.note(label)
            classes[s] = select(good, cast("u32", label), 0)
            self.skips[s] = and_then(spells, s > 1, classes[s] != classes[s - 2])

    def forward(self) -> Value:
        """Compute ``alpha`` in ``rows`` rows, which are used in turn. Return the loss."""
        k, none = self.kernel, constant(self.type, -inf)
        with k.loop("t", 0, self.end) as t:
            time = cast(INDEX, t)
            emitted = k.pointer("emitted", self.x, self.x_at + self._at(time))
            before = k.pointer("before", self.alpha, (time + self.rows - 1) % self.rows * self.width)
            row = k.pointer("row", self.alpha, time % self.rows * self.width)
            row[0] = row[1] = none
            with k.when(t == 0), k.loop("s", 0, self.states) as s:
                row[s + EDGE] = select(s < 2, emitted[self.classes[s]], none)
            with k.otherwise(), k.loop("s", 0, self.states, independent=True) as s:
                total = self._log_sum(before[s + 2], before[s + 1], select(self.skips[s] != 0, before[s], none))
                row[s + EDGE] = total + emitted[self.classes[s]]
        loss = k.variable("loss", select(self.labels != 0, constant(self.type, inf), 0))
        with k.when(self.end != 0):
            last = k.pointer("last", self.alpha, cast(INDEX, self.end - 1) % self.rows * self.width + EDGE)
            labelled = select(self.labels != 0, last[self.states - 2], none)
            k.assign(loss, -self._log_sum(last[self.states - 1], labelled, none))
        return loss

    def backward(self, loss: Value) -> None:
        """Add the posteriors of the states to those of their classes. A row of ``beta`` gets the emission of its time
        last.
        """
        k, none, states, skips = self.kernel, constant(self.type, -inf), self.states, self.skips
        with k.loop("t", 0, self.times) as time:
            to = k.pointer("to", self.out, self._at(time))
            infinite = and_then(time < cast(INDEX, self.end), loss == inf, self.zeros == 0)
            fill = k.let("fill", select(infinite, constant(self.type, nan), 0))
            with k.loop("c", 0, self.count) as c:
                to[c] = fill
        beta = k.pointer("beta_q", self.beta, self.sequence * 2 * self.width)
        chances = k.pointer("chances_q", self.chances, self.sequence * self.width)
        with k.when(loss != inf), k.loop("left", 0, self.end) as left:
            time = k.let("time", cast(INDEX, self.end - 1 - left))
            emitted = k.pointer("emitted", self.x, self.x_at + self._at(time))
            row = k.pointer("row", self.alpha, time * self.width + EDGE)
            later, now = (k.pointer(n, beta, (time + one & 1) * self.width) for n, one in (("later", 1), ("now", 0)))
            to = k.pointer("to", self.out, self._at(time))
            now[states] = now[states + 1] = none
            skips[states] = skips[states + 1] = 0
            with k.loop("s", 0, states, independent=True) as s:
                total = self._log_sum(later[s], later[s + 1], select(skips[s + 2] != 0, later[s + 2], none))
                now[s] = select(left == 0, select(s >= states - 2, 0, none), total)
            with k.loop("s", 0, states, independent=True) as s:
                chances[s] = call("exp", row[s] + now[s] + loss)
            with k.loop("s", 0, states) as s:
                to[self.classes[s]] = to[self.classes[s]] + chances[s]
                now[s] = now[s] + emitted[self.classes[s]]

    def _at(self, time: Value) -> Value:
        """Return the offset of the classes of a time."""
        return (time * self.sequences + self.sequence) * self.count

    def _log_sum(self, a: Value, b: Value, c: Value) -> Value:
        """Declare the logarithm of the sum of three exponentials. Without a finite term, it is log(0)."""
        k = self.kernel
        a, b, c = k.let("a", a), k.let("b", b), k.let("c", c)
        high = k.let("high", select(a > b, select(a > c, a, c), select(b > c, b, c)))
        base = k.let("base", select(high == -inf, 0, high))
        return k.let("sum", base + call("log", call("exp", a - base) + call("exp", b - base) + call("exp", c - base)))

    def source(self) -> Source:
        """Return the kernel."""
        return self.kernel.source(group=1, contract=True)


def _within(length: Value, most: Value) -> Value:
    """Return a length as it counts: between 0 and a size."""
    return cast("i32", select(length < 0, 0, least(length, cast("i64", most))))


KERNELS: dict[str, Any] = {
    "alignment_losses": of_single_and_double(partial(_run, False)),
    "label_posteriors": of_single_and_double(partial(_run, True)),
}

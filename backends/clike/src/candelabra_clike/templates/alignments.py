"""Connectionist temporal classification on processors: a work-item follows the recursion of one sequence.

The recursion is that of :mod:`candelabra.nn._operators.temporal_classification`. Rows of ``alpha`` and ``beta`` have
two entries of -inf before, or after, those of the states, so that the loops over states have no cases.
"""

from __future__ import annotations

import re

from candelabra.dtypes import dtype

from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.types import CTYPES

EDGE = 2
"""The entries of a row besides those of the states."""

STATES = """const INDEX q = GLOBAL_ID;
const i64 spelled = target_lengths[target_lengths_at + q], taken = input_lengths[input_lengths_at + q];
const int labels = spelled < 0 ? 0 : spelled > (i64)longest ? (int)longest : (int)spelled;
const int end = taken < 0 ? 0 : taken > (i64)times ? (int)times : (int)taken, states = 2 * labels + 1;
const INDEX width = 2 * longest + 1 + EDGE;
GLOBAL u32* const classes_q = classes + q * width;
GLOBAL u32* const skips_q = skips + q * width;
u32 wrong = 0; i64 value = 0;
for (int s = 0; s < states; ++s) {
const i64 label = s & 1 ? targets[targets_at + q * longest + (INDEX)(s >> 1)] : blank;
const u32 good = (u64)label < (u64)count;
if (!good) { wrong = 1; value = label; }
classes_q[s] = good ? (u32)label : 0;
skips_q[s] = (s & 1) && s > 1 && classes_q[s] != classes_q[s - 2];
}
if (wrong) report_error(errors, ticket, value, 2, (i64)count);
"""
"""Defines the number of states and of times of a sequence, the class of each state, and whether it may follow the one
two before."""

LOG_SUM = """const T high = {a} > {b} ? ({a} > {c} ? {a} : {c}) : ({b} > {c} ? {b} : {c});
const T base = high == -INFINITE_W ? 0 : high;
const T sum = base + log_T(exp_T({a} - base) + exp_T({b} - base) + exp_T({c} - base));
"""
"""Defines ``sum``, the logarithm of the sum of three exponentials. Without a finite term, it is log(0)."""

FORWARD = f"""GLOBAL T* const alpha_q = alpha + q * rows * width;
for (int t = 0; t < end; ++t) {{
GLOBAL const T* const e = x + (x_at + ((INDEX)t * sequences + q) * count);
GLOBAL const T* const before = alpha_q + (INDEX)(t + rows - 1) % rows * width;
GLOBAL T* const row = alpha_q + (INDEX)t % rows * width;
row[0] = -INFINITE_W; row[1] = -INFINITE_W;
if (t == 0) {{ for (int s = 0; s < states; ++s) row[s + {EDGE}] = s < 2 ? e[classes_q[s]] : -INFINITE_W; continue; }}
INDEPENDENT
for (int s = 0; s < states; ++s) {{
const T a = before[s + 2], b = before[s + 1], c = skips_q[s] ? before[s] : -INFINITE_W;
{LOG_SUM.format(a="a", b="b", c="c")}row[s + {EDGE}] = sum + e[classes_q[s]];
}}
}}
T loss = labels ? INFINITE_W : 0;
if (end) {{
GLOBAL const T* const final = alpha_q + (INDEX)(end - 1) % rows * width + {EDGE};
const T a = final[states - 1], b = labels ? final[states - 2] : -INFINITE_W;
{LOG_SUM.format(a="a", b="b", c="-INFINITE_W")}loss = -sum;
}}
"""
"""Computes ``alpha`` in ``rows`` rows, which are used in turn, and the loss."""

BACKWARD = f"""for (INDEX t = 0; t < times; ++t) {{
GLOBAL T* const to = out + (t * sequences + q) * count;
const T fill = t < (INDEX)end && loss == INFINITE_W ? (zeros ? 0 : NAN_W) : 0;
for (INDEX k = 0; k < count; ++k) to[k] = fill;
}}
if (loss == INFINITE_W) return;
GLOBAL T* const beta_q = beta + q * 2 * width;
for (int t = end - 1; t >= 0; --t) {{
GLOBAL const T* const e = x + (x_at + ((INDEX)t * sequences + q) * count);
GLOBAL const T* const row = alpha_q + (INDEX)t * width + {EDGE};
GLOBAL const T* const later = beta_q + (INDEX)((t + 1) & 1) * width;
GLOBAL T* const now = beta_q + (INDEX)(t & 1) * width;
GLOBAL T* const to = out + ((INDEX)t * sequences + q) * count;
now[states] = -INFINITE_W; now[states + 1] = -INFINITE_W;
skips_q[states] = 0; skips_q[states + 1] = 0;
INDEPENDENT
for (int s = 0; s < states; ++s) {{
const T a = later[s], b = later[s + 1], c = skips_q[s + 2] ? later[s + 2] : -INFINITE_W;
{LOG_SUM.format(a="a", b="b", c="c")}now[s] = t == end - 1 ? (s >= states - 2 ? 0 : -INFINITE_W) : sum;
}}
INDEPENDENT
for (int s = 0; s < states; ++s) chances[q * width + s] = exp_T(row[s] + now[s] + loss);
for (int s = 0; s < states; ++s) {{
to[classes_q[s]] += chances[q * width + s];
now[s] += e[classes_q[s]];
}}
}}
"""
"""Adds the posteriors of the states to those of their classes. A row of ``beta`` gets the emission of its time last."""

NUMBERS = ("times", "sequences", "count", "longest", "rows")
INPUTS = ("x", "targets", "input_lengths", "target_lengths")


def losses(d: dtype) -> Source:
    """Return the kernel of the losses; its arguments are those of :func:`_source`."""
    return _source("alignment_losses", d, STATES + FORWARD + "out[q] = loss;\n", ())


def posteriors(d: dtype) -> Source:
    """Return the kernel of the posteriors. It needs all rows of ``alpha``, and two of ``beta``."""
    scratch = (writes("beta", CTYPES[d].memory), writes("chances", CTYPES[d].memory))
    return _source("label_posteriors", d, STATES + FORWARD + BACKWARD, scratch)


def _source(name: str, d: dtype, body: str, scratch: tuple[KernelParameter, ...]) -> Source:
    """Return a kernel: ``out``, scratch memory, the inputs, the record of errors, offsets of the inputs, numbers."""
    type = CTYPES[d].value
    head = (
        writes("out", type), writes("alpha", type), *scratch, writes("classes", "u32"), writes("skips", "u32"),
        reads("x", type), *[reads(each, "i64") for each in INPUTS[1:]],
        writes("errors", "i64"), number("ticket", "u32"), *[number(f"{each}_at") for each in INPUTS],
        number("blank", "i64"), number("zeros", "u32"), *map(number, NUMBERS),
    )  # fmt: skip
    text = re.sub(r"\bEDGE\b", str(EDGE), re.sub(r"\bT\b|(?<=_)T\b", type, re.sub(r"(?<=_)W\b", type.upper(), body)))
    return Source(f"{name}_{d.name}", head, text, group=1, wide=True, contract=True)

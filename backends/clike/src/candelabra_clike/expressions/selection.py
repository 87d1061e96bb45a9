"""Selection of an operand: by a mask, by comparison, by limits."""

from __future__ import annotations

from candelabra_clike.expressions import Entry

# maximum and minimum propagate NaN; fmax and fmin ignore it.
_LARGER = {"float": "({a} > {b}) | ({a} != {a}) ? {a} : {b}", "integer": "{a} > {b} ? {a} : {b}", "bool": "{a} | {b}"}
_SMALLER = {"float": "({a} < {b}) | ({a} != {a}) ? {a} : {b}", "integer": "{a} < {b} ? {a} : {b}", "bool": "{a} & {b}"}

EXPRESSIONS: dict[str, Entry] = {
    "where": {"any": "{a} ? {b} : {c}"},
    "masked_fill": {"any": "{b} ? {c} : {a}"},
    "maximum": _LARGER,
    "minimum": _SMALLER,
    # Of two zeros the operand, not the limit, as PyTorch: clamp_min(-0.0, 0) is -0.0.
    "clamp_min": {**_LARGER, "float": "({a} >= {b}) | ({a} != {a}) ? {a} : {b}"},
    "clamp_max": {**_SMALLER, "float": "({a} <= {b}) | ({a} != {a}) ? {a} : {b}"},
    "fmax": {**_LARGER, "float": "({a} >= {b}) | ({b} != {b}) ? {a} : {b}"},
    "fmin": {**_SMALLER, "float": "({a} <= {b}) | ({b} != {b}) ? {a} : {b}"},
    "relu": {"float": "{a} < 0 ? 0 : {a}", "signed": "{a} < 0 ? 0 : {a}", "unsigned": "{a}"},
    "relu_backward": {"number": "{b} <= 0 ? 0 : {a}", "bool": "{b} & {a}"},
}

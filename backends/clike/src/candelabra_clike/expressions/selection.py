"""Selection of an operand: by a mask, by comparison, by limits."""

from __future__ import annotations

from candelabra_clike.expressions import Entry, Expression
from candelabra_clike.language import select

# maximum and minimum propagate NaN; fmax and fmin ignore it.
_LARGER: dict[str, Expression] = {
    "float": lambda a, b: select((a > b) | (a != a), a, b),
    "integer": lambda a, b: select(a > b, a, b),
    "bool": lambda a, b: a | b,
}
_SMALLER: dict[str, Expression] = {
    "float": lambda a, b: select((a < b) | (a != a), a, b),
    "integer": lambda a, b: select(a < b, a, b),
    "bool": lambda a, b: a & b,
}

EXPRESSIONS: dict[str, Entry] = {
    "where": {"any": lambda a, b, c: select(a, b, c)},
    "masked_fill": {"any": lambda a, b, c: select(b, c, a)},
    "maximum": _LARGER,
    "minimum": _SMALLER,
    # Of two zeros the operand, not the limit, as PyTorch: clamp_min(-0.0, 0) is -0.0.
    "clamp_min": {**_LARGER, "float": lambda a, b: select((a >= b) | (a != a), a, b)},
    "clamp_max": {**_SMALLER, "float": lambda a, b: select((a <= b) | (a != a), a, b)},
    "fmax": {**_LARGER, "float": lambda a, b: select((a >= b) | (b != b), a, b)},
    "fmin": {**_SMALLER, "float": lambda a, b: select((a <= b) | (b != b), a, b)},
    "relu": {**dict.fromkeys(("float", "signed"), lambda a: select(a < 0, 0, a)), "unsigned": lambda a: a},
    "relu_backward": {"number": lambda a, b: select(b <= 0, 0, a), "bool": lambda a, b: b & a},
}

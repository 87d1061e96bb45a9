"""Powers and square roots."""

from __future__ import annotations

from candelabra_clike.expressions import Entry, function_of_two
from candelabra_clike.language import call, cast, sqrt

CONTRACTED = True

EXPRESSIONS: dict[str, Entry] = {
    "sqrt": dict.fromkeys(("float", "complex"), lambda a: sqrt(a)),
    "rsqrt": {"float": lambda a: 1 / sqrt(a), "complex": lambda a: call("divide", 1, sqrt(a))},
    "pow": {
        **dict.fromkeys(("float", "complex"), function_of_two("power")),
        "signed": lambda a, b: cast(a.type, call("power_i64", a, b)),
        "unsigned": lambda a, b: cast(a.type, call("power_u64", a, b)),
    },
}

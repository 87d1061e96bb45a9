"""Powers and square roots."""

from __future__ import annotations

CONTRACTED = True

EXPRESSIONS = {
    "sqrt": {"float": "SQRT_{W}({a})", "complex": "sqrt_{T}({a})"},
    "rsqrt": {"float": "DIVIDE_{W}(1, SQRT_{W}({a}))", "complex": "divide_{T}({W}(1, 0), sqrt_{T}({a}))"},
    "pow": {
        "float": "power_{T}({a}, {b})",
        "complex": "power_{T}({a}, {b})",
        "signed": "({T})power_i64({a}, {b})",
        "unsigned": "({T})power_u64({a}, {b})",
    },
}

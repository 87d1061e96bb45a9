"""Square roots."""

from __future__ import annotations

EXPRESSIONS = {
    "sqrt": {"float": "SQRT_{W}({a})"},
    "rsqrt": {"float": "DIVIDE_{W}(1, SQRT_{W}({a}))"},
}

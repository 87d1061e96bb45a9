"""Sums, products, quotients."""

from __future__ import annotations

# Signed integers are added as unsigned ones: they wrap, where overflow of signed ones is undefined in C.
EXPRESSIONS = {
    "add": {"float": "{a} + {b}", "integer": "({T})(({U}){a} + ({U}){b})", "bool": "{a} | {b}", "complex": "{a} + {b}"},
    "sub": {"float": "{a} - {b}", "integer": "({T})(({U}){a} - ({U}){b})", "complex": "{a} - {b}"},
    "mul": {"float": "{a} * {b}", "integer": "({T})(({U}){a} * ({U}){b})", "bool": "{a} & {b}"},
    "neg": {"float": "-{a}", "integer": "({T})(-({U}){a})"},
    "relu": {"float": "{a} < 0 ? 0 : {a}", "integer": "{a} < 0 ? 0 : {a}"},
    "where": {"any": "{a} ? {b} : {c}"},
    "lt": {"number": "{a} < {b}", "bool": "{a} < {b}"},
}

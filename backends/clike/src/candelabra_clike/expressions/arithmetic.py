"""Sums, products, quotients and related operators."""

from __future__ import annotations

# Signed integers are computed as unsigned ones, which wrap around; signed overflow is undefined in C. The factor
# 1u prevents the promotion of a product of two u16 to a signed int.
_SUM = "({T})(({U}){a} + ({U}){b})"
_DIFFERENCE = "({T})(({U}){a} - ({U}){b})"
_PRODUCT = "({T})(1u * ({U}){a} * ({U}){b})"


EXPRESSIONS = {
    "add": {"float": "{a} + {b}", "integer": _SUM, "bool": "{a} | {b}", "complex": "{a} + {b}"},
    "sub": {"float": "{a} - {b}", "integer": _DIFFERENCE, "complex": "{a} - {b}"},
    "mul": {"float": "{a} * {b}", "integer": _PRODUCT, "bool": "{a} & {b}", "complex": "product_{T}({a}, {b})"},
    "div": {"float": "DIVIDE_{W}({a}, {b})", "complex": "divide_{T}({a}, {b})"},
    "neg": {"float": "-{a}", "integer": "({T})(0u - ({U}){a})", "complex": "-{a}"},
    "reciprocal": {"float": "DIVIDE_{W}(1, {a})", "complex": "divide_{T}({W}(1, 0), {a})"},
    "square": {
        "float": "{a} * {a}",
        "integer": "({T})(1u * ({U}){a} * ({U}){a})",
        "complex": "product_{T}({a}, {a})",
    },
    "floor_divide": {
        "float": "floor_divide_{T}({a}, {b})",
        "signed": "(REFUSE({b} == 0, DIVISION_BY_ZERO), ({T})floor_divide_{L}({a}, {b}))",
        "unsigned": "(REFUSE({b} == 0, DIVISION_BY_ZERO), ({T})trunc_divide_{L}({a}, {b}))",
    },
    "trunc_divide": {
        "float": "trunc_{T}(DIVIDE_{W}({a}, {b}))",
        # The quotient is rounded to the half type before it is truncated.
        "float16": "trunc_f32(load_f16(store_f16(DIVIDE_F32({a}, {b}))))",
        "bfloat16": "trunc_f32(load_bf16(store_bf16(DIVIDE_F32({a}, {b}))))",
        "integer": "(REFUSE({b} == 0, DIVISION_BY_ZERO), ({T})trunc_divide_{L}({a}, {b}))",
    },
    "remainder": {
        "float": "remainder_{T}({a}, {b})",
        "signed": "(REFUSE({b} == 0, DIVISION_BY_ZERO), ({T})remainder_{L}({a}, {b}))",
        "unsigned": "(REFUSE({b} == 0, DIVISION_BY_ZERO), ({T})fmod_{L}({a}, {b}))",
    },
    "fmod": {"float": "fmod_{T}({a}, {b})", "integer": "(REFUSE({b} == 0, DIVISION_BY_ZERO), ({T})fmod_{L}({a}, {b}))"},
    "gcd": {
        "signed": "({T})gcd_u64(abs_i64({a}), abs_i64({b}))",
        "unsigned": "({T})gcd_u64({a}, {b})",
    },
    "lcm": {
        "signed": "({T})lcm_u64(abs_i64({a}), abs_i64({b}))",
        "unsigned": "({T})lcm_u64({a}, {b})",
    },
    "hypot": {"float": "hypot_{T}({a}, {b})"},
    "addcmul": {
        "float": "{a} + {b} * {c} * {value}",
        "integer": "({T})(({U}){a} + 1u * ({U}){value} * ({U}){b} * ({U}){c})",
        "bool": "{a} | ({value} & {b} & {c})",
        "complex": "{a} + product_{T}(scale_{T}({b}, {value}), {c})",
    },
    "addcdiv": {
        "float": "{a} + DIVIDE_{W}({value} * {b}, {c})",
        "complex": "{a} + divide_{T}(scale_{T}({b}, {value}), {c})",
    },
    # Interpolate from the nearer end, so that a weight of 1 gives the end exactly.
    "lerp": {
        "float": "abs_{T}({c}) < ({T})0.5f ? {a} + {c} * ({b} - {a}) : {b} - ({b} - {a}) * (1 - {c})",
        "complex": "hypot_{R}({c}.x, {c}.y) < ({R})0.5f ? {a} + product_{T}({c}, {b} - {a}) : "
        "{b} - product_{T}({b} - {a}, {W}(1, 0) - {c})",
    },
}

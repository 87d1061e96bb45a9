"""Activation functions and their gradients."""

from __future__ import annotations

CONTRACTED = True


def _gelu(approximate: str) -> str:
    return "gelu_tanh_{T}({a})" if approximate == "tanh" else "gelu_{T}({a})"


def _gelu_f32(approximate: str) -> str:
    return _gelu("tanh") if approximate == "tanh" else "RARE({a} < -5) ? gelu_{T}({a}) : gelu_near_{T}({a})"


def _gelu_backward(approximate: str) -> str:
    return "{a} * gelu_tanh_derivative_{T}({b})" if approximate == "tanh" else "{a} * gelu_derivative_{T}({b})"


def _gelu_backward_f32(approximate: str) -> str:
    exact = "RARE({b} < -5) ? {a} * gelu_derivative_{T}({b}) : {a} * gelu_near_derivative_{T}({b})"
    return _gelu_backward("tanh") if approximate == "tanh" else exact


EXPRESSIONS = {
    "gelu": {"f32": _gelu_f32, "f64": _gelu},
    "gelu_backward": {"f32": _gelu_backward_f32, "f64": _gelu_backward},
    "silu": {"float": "times_sigmoid_{T}({a}, {a})"},
    "silu_backward": {"float": "{a} * silu_derivative_{T}({b})"},
    "sigmoid_backward": {"float": "{a} * ({b} * (1 - {b}))"},
    "tanh_backward": {"float": "{a} * (1 - {b} * {b})"},
    "softplus": {
        "float": "{a} * {beta} > {threshold} ? {a} : softplus_{T}({a} * {beta}) / {beta}",
    },
    "log_sigmoid": {"float": "-softplus_{T}(-{a})"},
    "leaky_relu": {"float": "{a} > 0 ? {a} : {a} * {negative_slope}"},
    "elu": {"float": "elu_{T}({a}, {alpha}, {scale}, {input_scale})"},
    "hardsigmoid": {"float": "DIVIDE_{W}(clamp_{T}({a} + 3, 0, 6), 6)"},
    "hardswish": {"float": "{a} * DIVIDE_{W}(clamp_{T}({a} + 3, 0, 6), 6)"},
    "hardshrink": {"float": "abs_{T}({a}) <= {lambd} ? 0 : {a}"},
    "soft_threshold": {
        "float": "abs_{T}({a}) <= {lambd} ? copysign_{T}(0, {a}) : {a} > 0 ? {a} - {lambd} : {a} + {lambd}",
    },
    "threshold": {"float": "{a} <= {threshold} ? {value} : {a}"},
    "hardtanh": {"float": "{a} < {min_val} ? {min_val} : {a} > {max_val} ? {max_val} : {a}"},
}

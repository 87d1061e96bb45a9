"""Activation functions and their gradients."""

from __future__ import annotations

from candelabra_clike.expressions import Entry
from candelabra_clike.language import Value, call, rare, select

CONTRACTED = True


def _gelu(a: Value, approximate: str) -> Value:
    return call("gelu_tanh" if approximate == "tanh" else "gelu", a)


def _gelu_f32(a: Value, approximate: str) -> Value:
    return _gelu(a, "tanh") if approximate == "tanh" else rare(a < -5, call("gelu_anywhere", a), call("gelu_near", a))


def _gelu_backward(a: Value, b: Value, approximate: str) -> Value:
    return a * call("gelu_tanh_derivative" if approximate == "tanh" else "gelu_derivative", b)


def _gelu_backward_f32(a: Value, b: Value, approximate: str) -> Value:
    if approximate == "tanh":
        return _gelu_backward(a, b, approximate)
    return rare(b < -5, a * call("gelu_derivative_anywhere", b), a * call("gelu_near_derivative", b))


def _elu_backward(a: Value, b: Value, alpha: float, scale: float, input_scale: float) -> Value:
    scaled = b * input_scale
    below = call("exp", select(scaled > 0, 0, scaled)) * (alpha * scale * input_scale)
    return a * select(b > 0, scale, below)


def _soft_threshold(a: Value, lambd: Value) -> Value:
    return select(call("abs", a) <= lambd, call("copysign", 0, a), select(a > 0, a - lambd, a + lambd))


EXPRESSIONS: dict[str, Entry] = {
    "gelu": {"f32": _gelu_f32, "f64": _gelu},
    "gelu_backward": {"f32": _gelu_backward_f32, "f64": _gelu_backward},
    "silu": {"float": lambda a: call("times_sigmoid", a, a)},
    "silu_backward": {"float": lambda a, b: a * call("silu_derivative", b)},
    "sigmoid_backward": {"float": lambda a, b: a * (b * (1 - b))},
    "tanh_backward": {"float": lambda a, b: a * (1 - b * b)},
    "softplus": {
        "float": lambda a, beta, threshold: select(a * beta > threshold, a, call("softplus", a * beta) / beta),
    },
    "log_sigmoid": {"float": lambda a: -call("softplus", -a)},
    "leaky_relu": {"float": lambda a, negative_slope: select(a > 0, a, a * negative_slope)},
    "leaky_relu_backward": {"float": lambda a, b, negative_slope: select(b > 0, a, a * negative_slope)},
    "sloped": {"float": lambda a, b: select(a > 0, a, a * b)},
    "sloped_backward": {"float": lambda a, b, c: select(b > 0, a, a * c)},
    "elu": {"float": lambda a, alpha, scale, input_scale: call("elu", a, alpha, scale, input_scale)},
    "elu_backward": {"float": _elu_backward},
    "hardsigmoid": {"float": lambda a: call("clamp", a + 3, 0, 6) / 6},
    "hardsigmoid_backward": {"float": lambda a, b: select(b <= -3, 0, select(b >= 3, 0, a / 6))},
    "hardswish": {"float": lambda a: a * (call("clamp", a + 3, 0, 6) / 6)},
    "hardswish_backward": {
        "float": lambda a, b: select(b >= 3, a, select(b <= -3, 0, a * (b / 3 + 0.5))),
    },
    "hardshrink": {"float": lambda a, lambd: select(call("abs", a) <= lambd, 0, a)},
    "soft_threshold": {"float": _soft_threshold},
    "shrink_backward": {"float": lambda a, b, lambd: select(call("abs", b) <= lambd, 0, a)},
    "threshold": {"float": lambda a, threshold, value: select(a <= threshold, value, a)},
    "hardtanh": {
        "float": lambda a, min_val, max_val: select(a < min_val, min_val, select(a > max_val, max_val, a)),
    },
    "hardtanh_backward": {
        "float": lambda a, b, min_val, max_val: select(b <= min_val, 0, select(b >= max_val, 0, a)),
    },
}

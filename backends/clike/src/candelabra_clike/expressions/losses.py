"""Losses of the distance of two numbers, and values around a center."""

from __future__ import annotations

EXPRESSIONS = {
    "huber": {"float": "huber_{T}({a} - {b}, {curve}, {width}, {slope})"},
    "huber_backward": {"float": "{a} * (clamp_{T}({b} - {c}, -{width}, {width}) * (2 * {curve}))"},
    "scale_about": {"float": "({a} - {b}) * {c} + {d}"},
}

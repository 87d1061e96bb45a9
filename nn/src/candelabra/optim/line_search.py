"""A line search for the strong Wolfe conditions (Nocedal & Wright, Numerical Optimization, 2006, algorithms 3.5, 3.6).

The constants and safeguards are those of minFunc (Schmidt, 2005), which torch/optim for Lua and PyTorch have, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

__all__ = ["Point", "strong_wolfe"]

DECREASE: Final = 1e-4
"""The share of the decrease along the tangent that a step has to reach: the first condition."""
CURVATURE: Final = 0.9
"""The share of the slope at the start that the slope at a step may have: the second condition."""


class Point(NamedTuple):
    """A point on the line: the step ``t``, the loss, its gradient, and its slope along the line."""

    t: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, t: float, length: float, tolerance: float, trials: int
) -> tuple[Point, int]:
    """Return a point that fulfils the conditions, or the best one found, and the number of evaluations.

    ``start``: the point at 0; ``t``: the first step to try; ``length``: of the direction, in the maximum norm. A
    bracket of less than ``tolerance`` ends the search, and so do ``trials`` evaluations after the first one.
    """

    def is_low_enough(point: Point) -> bool:
        return not point.loss > start.loss + DECREASE * point.t * start.slope

    def is_flat_enough(point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * start.slope

    previous, point, trial = start, evaluate(t), 0
    bracket = None
    while bracket is None and trial < trials:
        if not is_low_enough(point) or (trial > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
        elif is_flat_enough(point):
            return point, trial + 1
        elif point.slope >= 0:
            bracket = [previous, point]
        else:
            nearest, farthest = point.t + 0.01 * (point.t - previous.t), point.t * 10
            previous, point = point, evaluate(_interpolate(previous, point, nearest, farthest))
            trial += 1
    if bracket is None:
        bracket = [start, point]

    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    was_close = False
    while trial < trials and abs(bracket[1].t - bracket[0].t) * length >= tolerance:
        left, right = sorted(p.t for p in bracket)
        t, was_close = _away_from_ends(_interpolate(bracket[0], bracket[1], left, right), left, right, was_close)
        point = evaluate(t)
        trial += 1
        if not is_low_enough(point) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if is_flat_enough(point):
            return point, trial + 1
        if point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], trial + 1


def _interpolate(a: Point, b: Point, lowest: float, highest: float) -> float:
    """Return where the cubic through two points with their slopes is least, within bounds (equation 3.59)."""
    if a.t > b.t:
        a, b = b, a
    middle = (lowest + highest) / 2
    if a.t == b.t:
        return middle
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = mean**2 - a.slope * b.slope
    if not 0 <= square < math.inf:
        return middle
    root = math.sqrt(square)
    curvature = b.slope - a.slope + 2 * root
    if curvature == 0:
        return middle
    return min(max(b.t - (b.t - a.t) * ((b.slope + root - mean) / curvature), lowest), highest)


def _away_from_ends(t: float, left: float, right: float, was_close: bool) -> tuple[float, bool]:
    """Return a step that is not close to an end of the bracket twice in a row, and whether it is close to one."""
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not was_close and left < t < right:
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def __dir__() -> list[str]:
    return sorted(__all__)

"""Samples of window functions: those of ``signal.windows``, and the older functions of the top-level namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra_conformance.samples.factories import chosen
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_SIZE, Sample, sample

OPTIONS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "bartlett": ({},), "blackman": ({},), "cosine": ({},), "hamming": ({},), "hann": ({},), "nuttall": ({},),
    "exponential": ({}, {"tau": 3.0}, {"center": 2.0, "sym": False}), "gaussian": ({}, {"std": 2.5}),
    "general_cosine": ({"a": [0.5, 0.3, 0.2]}, {"a": (1.0,)}), "general_hamming": ({}, {"alpha": 0.7}),
    "kaiser": ({}, {"beta": 5.0}),
}  # fmt: skip
"""By window of ``signal.windows``: the calls in addition to symmetric and periodic ones."""
OLDER: Final[dict[str, tuple[tuple[Any, ...], ...]]] = {
    "bartlett_window": ((),), "blackman_window": ((),), "hann_window": ((),),
    "hamming_window": ((), (True, 0.6, 0.4)), "kaiser_window": ((), (True, 5.0)),
}  # fmt: skip
"""By window of the top-level namespace: the arguments after the length."""


def plus_one(window: Any) -> Any:
    """Return the window plus 1: at its ends it is a difference of terms of about 1, and no more exact than they are."""
    return window + 1


@inputs(*[f"signal.windows.{name}" for name in OPTIONS])
def windows(t: Maker) -> Iterator[Sample]:
    """Yield even and odd lengths, symmetric and periodic windows, one point and none."""
    if t.dtype.name not in ("float32", "float64"):
        return
    for options in OPTIONS[t.operator.rpartition(".")[2]]:
        yield sample(8, **options, **chosen(t), of=plus_one)
        yield sample(7, **{"sym": False, **options}, dtype=t.dtype, of=plus_one)
        if "center" not in options:
            yield sample(1, **options, dtype=t.dtype, kind=LENGTH_ONE)
        yield sample(0, **options, dtype=t.dtype, kind=ZERO_SIZE)


@mistakes(*[f"signal.windows.{name}" for name in OPTIONS])
def no_windows(t: Maker) -> Iterator[Sample]:
    """Yield lengths that are negative or not integers, and dtypes that are not real floating ones."""
    options = OPTIONS[t.operator.rpartition(".")[2]][0]
    yield sample(-1, **options, note="negative")
    yield sample(2.5, **options, note="a fraction")
    yield sample(4, **options, dtype=t.of("float16").dtype, note="a half type")


@mistakes("signal.windows.exponential", "signal.windows.gaussian", "signal.windows.kaiser")
def no_widths(t: Maker) -> Iterator[Sample]:
    """Yield widths that are not positive."""
    name = {"exponential": "tau", "gaussian": "std", "kaiser": "beta"}[t.operator.rpartition(".")[2]]
    yield sample(4, **{name: -1.0}, note="a negative width")


@mistakes("signal.windows.general_cosine")
def no_coefficients(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are not a list, and an empty list."""
    yield sample(4, a=[], note="none")
    yield sample(4, a=1.0, note="no list")


@inputs(*OLDER)
def older_windows(t: Maker) -> Iterator[Sample]:
    """Yield even and odd lengths, periodic and symmetric windows, one point and none."""
    if not t.is_floating or t.dtype.is_half:
        return
    for arguments in OLDER[t.operator]:
        yield sample(8, *arguments, **chosen(t), of=plus_one)
        yield sample(7, *arguments, dtype=t.dtype, of=plus_one)
    yield sample(7, False, dtype=t.dtype, of=plus_one)
    yield sample(1, dtype=t.dtype, kind=LENGTH_ONE)
    yield sample(0, dtype=t.dtype, kind=ZERO_SIZE)


@mistakes(*OLDER)
def no_older_windows(t: Maker) -> Iterator[Sample]:
    """Yield lengths that are negative or not integers, and dtypes that are not floating."""
    yield sample(-1, note="negative")
    yield sample(2.5, note="a fraction")
    yield sample(4, dtype=t.of("int64").dtype, note="integers")

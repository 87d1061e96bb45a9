"""Describe a failure in words and as a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.context import Context, Failure
from candelabra_conformance.model import Case
from candelabra_conformance.samples.sample import Sample


def described_sample(sample: Sample | None, layout: str) -> str:
    """Return a sample in one line: tensors by dtype and shape, other arguments by value."""
    if sample is None:
        return ""
    words = [_described(a) for a in sample.args]
    words += [f"{name}={_described(v)}" for name, v in sample.kwargs.items()]
    about = [w for w in (sample.note, layout if layout != "contiguous" else "") if w]
    return f"({', '.join(words)})" + (f" [{', '.join(about)}]" if about else "")


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
        return "[" + ", ".join(_described(v) for v in value) + "]"
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."


def reproduced(context: Context, case: Case, failure: BaseException | None) -> str:
    """Return a stand-alone program that shows the failure. Without an error, a forbidden fallback is the failure."""
    from candelabra_conformance.failure_program import of_failure, rerun

    if not isinstance(failure, Failure):
        return rerun(context, case, "a fallback is forbidden", forbid_fallback=True)
    return of_failure(context, case, failure)

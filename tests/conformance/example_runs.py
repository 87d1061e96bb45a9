"""Handwritten runs for the tests of the reports, with texts that break careless escaping."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from candelabra_conformance import model
from candelabra_conformance.model import VERDICTS, Case, NextKernel, Result, Run, Subject

DTYPES = ("bool", "int32", "float16", "bfloat16", "float32", "complex64")
PROPERTIES = ("value", "gradient", "inplace", "errors")
NASTY = {
    "script": "</script><script>document.title = 'owned'</script><!-- <img src=http://127.0.0.1:9/x onerror=alert(1)>",
    "quotes": """both "double" and 'single' and `ticks` and ```fences``` \\ backslash""",
    "lines": "first\nsecond | cell | cell\r\nthird\ttab",
    "unicode": "π ≤ ∞ 漢字 🕎 e\u0301 \u2028 line \u2029 paragraph",
    "control": "nul \x00 escape \x1b[31m bell \x07 delete \x7f c1 \x9f",
    "surrogate": "half a pair \ud800 and a noncharacter \ufffe",
    "markup": "[link](http://x) **bold** <b>html</b> &amp; {{data}} {{script}} [bold red]rich[/] %s {0}",
    "entity": "]]> & < > &#0;",
}
"""Problematic texts, by what they test."""
PROGRAM = 'import candelabra as cd\n\nx = cd.tensor([1.0], device="acme:0")\nprint(x.softmax(0))  # expected: 1.0\n'


def subject(**changes: Any) -> Subject:
    """Return an invented device as the subject of a run."""
    facts = {
        "device": "acme:0",
        "description": "ACME X1 <rev 2>",
        "facts": {"driver": "4.2", "memory": "8 GiB"},
        "backend": "candelabra-acme",
        "backend_version": "1.0",
        "reference": "host:0",
        "core": "0.1.0",
        "suite": "0.1.0",
        "python": "3.11.9",
        "platform": "Linux",
    }
    return Subject(**(facts | changes))


def run(*results: Result, **changes: Any) -> Run:
    """Return a run with these results."""
    facts: Mapping[str, Any] = {"subject": subject(), "started": "2030-01-02T03:04:05Z", "seconds": 75.25}
    return Run(**({**facts, "results": results} | changes))


def result(case_id: str, verdict: str = model.PASSED, level: int = 1, **facts: Any) -> Result:
    """Return a result of the case with this id, for example ``softmax/value/float16/transposed``."""
    operator, name, dtype, layout = [*case_id.split("/"), "", ""][:4]
    return Result(Case(operator, name, dtype, layout, level), verdict, **facts)


def green_run() -> Run:
    """Return a run that reaches every level without a failure."""
    cases = ("device/copy/float32", "add/value/float32", "add/gradient/float32", "add/value/float16")
    return run(*(result(case, level=level, route="native") for level, case in enumerate(cases)))


def nasty_run() -> Run:
    """Return a run with every verdict, every problematic text as message and as program, and errors of every size."""
    results = [
        result(f"{name}/value/float32/contiguous", model.FAILED, message=text, reproducer=text, route="native", ulp=ulp)
        for (name, text), ulp in zip(NASTY.items(), (math.nan, math.inf, 0.0, 1e300, 0.5, 3.0, None, 12345.678))
    ]
    results += [
        result(f"softmax/{verdict}/float16", verdict, level=2, message=f"because {verdict}", reproducer=PROGRAM)
        for verdict in VERDICTS
    ]
    results.append(result("softmax/errors//transposed", model.BLOCKED, blocked_by="device/copy/float32", seconds=0.25))
    results.append(result("gelu/value/float32", model.FAILED, uses=("erf", "mul"), missing=("erf",), route="fallback"))
    reason = f"erf in float64: TypeError: {NASTY['quotes']}"
    results.append(result("gelu/value/float64", missing=("erf",), route="fallback", declined=(reason,)))
    results.append(result("device/copy/float32", model.CRASHED, level=0, message="signal 11", route="unsupported"))
    stale = ("softmax/gone/*", NASTY["quotes"])
    kernels = (
        NextKernel("matmul", ("linear", "bmm"), ("float16", "float32")),
        NextKernel("exp", ("softmax",), ("float32",), broken=True),
        NextKernel("sum", ("mean",), ("int8",), declines=True),
    )
    options = {"quick": True, "only": ["softmax/*"], "limit": None, "seconds": 0.5, "nested": {"a": [1, 2]}}
    return run(*results, options=options, next_kernels=kernels, stale=stale)


def large_run(operators: int) -> Run:
    """Return 24 cases of each operator: one fails in every fifth operator, some are blocked, some fall back."""
    results = []
    for at in range(operators):
        for name in PROPERTIES:
            for dtype in DTYPES:
                verdict = model.FAILED if at % 5 == 4 and (name, dtype) == ("value", "float16") else model.PASSED
                verdict = model.BLOCKED if at % 7 == 3 and name == "gradient" else verdict
                route = "fallback" if at % 3 == 1 and dtype == "bool" else "native"
                results.append(
                    result(
                        f"operator{at:04}/{name}/{dtype}/contiguous",
                        verdict,
                        level=1 + PROPERTIES.index(name) % 3,
                        route=route,
                        message=f"expected 1, got {at}" if verdict != model.PASSED else "",
                        reproducer=PROGRAM if verdict == model.FAILED else "",
                        ulp=at / 100 if name == "value" else None,
                        blocked_by="sum" if verdict == model.BLOCKED else "",
                    )
                )
    return run(*results)

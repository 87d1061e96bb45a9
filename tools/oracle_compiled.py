"""Compare candelabra's compiled functions with its eager calls, with the samples in PyTorch's own wheel.

``python tools/oracle_compiled.py [NAME...]`` (with a Python that has both, such as that of ``make oracle``) runs every
OpInfo of ``torch.testing._internal``, every module of ``module_db`` and every optimizer of ``optim_db`` eagerly and by
``compile(fullgraph=True)``: values, gradients after the call and in the compiled function, writes, buffers, states.
PyTorch gives the samples only. Its ``python_ref_db`` has no samples of its own: they are those of the OpInfos.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import torch
from oracle import selected
from oracle_checks import UNINITIALISED, full_name, plain
from oracle_compiled_checks import Form, Verdict, compare, differentiated
from oracle_compiled_networks import module_cases, optimizer_cases
from oracle_compiled_report import printed, with_section
from oracle_journal import Journal
from oracle_peer import UNSUPPORTED, Missing, counterpart, lookup, record_modules
from oracle_values import KNOWN, Slow, attempt, described, torch_leaves

Case = tuple[str, Callable[[Verdict], Iterator[str]]]
"""A name, and the function that yields the differences."""


def operator_cases(names: list[str], dtypes: list[str], most: int) -> Iterator[Case]:
    """Yield the OpInfos that candelabra supports."""
    for op in selected(names, nn=True):
        if not op.name.startswith(UNSUPPORTED) and type(op.op).__module__ != "torch._ops":
            yield full_name(op), lambda verdict, op=op: differences(op, dtypes, most, verdict)


def differences(op: Any, dtypes: list[str], most: int, verdict: Verdict) -> Iterator[str]:
    """Yield the differences of one operator, sample by sample."""
    public = op.aten_name if op.name.startswith("_") and lookup(cd, op.name) is None else op.name
    function = counterpart(op.op, op.name) if public == op.name or not lookup(cd, public) else lookup(cd, public)
    wrapper = counterpart(op.gradcheck_wrapper)
    backward = op.supported_backward_dtypes("cpu") if op.supports_autograd else ()
    for name in dtypes:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=dtype in backward))
        for sample in samples[:: max(1, -(-len(samples) // most))]:
            arguments = (sample.input, *sample.args), sample.kwargs
            known, error = attempt(lambda: op.op(*arguments[0], **arguments[1]))  # noqa: B023
            if error is not None or any(t.dtype not in KNOWN for t in torch_leaves(known)):
                continue
            verdict.samples += 1
            process = counterpart(sample.output_process_fn_grad)
            for difference in sample_differs(function, wrapper, process, arguments, verdict, op.name):
                yield f"{name}: {difference}; {described(sample)}"


def sample_differs(
    function: Any, wrapper: Any, process: Any, arguments: Any, verdict: Verdict, name: str
) -> Iterator[str]:
    """Yield the differences of the value, and of the gradients that are computed after the call and in it."""

    def value(args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def processed(args: Any, kwargs: Any) -> Any:
        return process(wrapper(function, *args, **kwargs))

    verdict.determined = name not in UNINITIALISED
    yield from compare(lambda: Form(value), plain(arguments), verdict)
    if any(t.requires_grad for t in torch_leaves(arguments)) and verdict.determined:
        outside = compare(lambda: Form(processed, differentiated), arguments, verdict)
        yield from (f"gradient after the call: {difference}" for difference in outside)
        inside = compare(lambda: Form(differentiated(processed)), arguments, verdict)
        yield from (f"gradient in the function: {difference}" for difference in inside)


def judge(name: str, find: Callable[[Verdict], Iterator[str]], seconds: float, most: int) -> Verdict:
    """Return the verdict on one case, within a limit of CPU time."""
    verdict, started = Verdict(name), time.process_time()

    def ring(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for difference in find(verdict):
                if len(verdict.differences) >= most:
                    break
                verdict.differences.append(difference)
    except Missing as error:
        verdict.differences.append(f"no candelabra.{error}")
    except Slow:
        verdict.differences.append(f"not done within {seconds:g} s of CPU time")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    verdict.seconds = time.process_time() - started
    return verdict


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: add, 'linalg.*', Linear, AdamW")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "int64"], metavar="DTYPE", help="of operators")
    parser.add_argument("--samples", type=int, default=6, help="at most so many per operator and dtype (6)")
    parser.add_argument("--seconds", type=float, default=300.0, help="at most so much CPU time per operator (300)")
    parser.add_argument("--differences", type=int, default=4, help="at most so many reported per operator (4)")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write each verdict there as it comes, and go on")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a section of that page")
    return parser.parse_args()


def main() -> int:
    """Run, print and write the report. Return 1 if anything differs."""
    options = arguments()
    record_modules()
    limits = {key: getattr(options, key) for key in ("dtypes", "samples", "seconds", "differences")}
    journal = Journal(options.journal, limits)
    kinds = {
        "operators": operator_cases(options.names, options.dtypes, options.samples) if operators(options.names) else (),
        "modules": module_cases(options.samples),
        "optimizers": optimizer_cases(),
    }
    verdicts: dict[str, list[Verdict]] = {}
    for kind, cases in kinds.items():
        verdicts[kind] = []
        for name, find in cases:
            if kind != "operators" and options.names and not any(fnmatch.fnmatch(name, p) for p in options.names):
                continue
            key = f"{kind} {name}"
            if key not in journal.verdicts:
                journal.record(key, dataclasses.asdict(judge(name, find, options.seconds, options.differences)))
            verdicts[kind].append(Verdict(**journal.verdicts[key]))
            print(printed(verdicts[kind][-1]), end="", flush=True)
    if options.report:
        options.report.write_text(with_section(options.report.read_text(), verdicts, limits))
    return int(any(v.status == "differs" for group in verdicts.values() for v in group))


def operators(names: list[str]) -> bool:
    """Return whether any of the names is one of an OpInfo, or there are no names."""
    from torch.testing._internal.common_methods_invocations import op_db

    return not names or any(fnmatch.fnmatch(n, p) for p in names for op in op_db for n in (op.name, full_name(op)))


if __name__ == "__main__":
    sys.exit(main())

"""Record what kernels compute and how they read, before and after a change of the kernel language, and compare.

Usage::

    python tools/kernel_digests.py record before.json --operators softmax cumsum --devices cpu opencl
    python tools/kernel_digests.py compare before.json after.json

A record has two parts. *Results*: the digest of every result of the suite's cases, per device. *Programs*: the kernels
of these cases in C for two processor levels and in CUDA C++, on a device that runs nothing. The comparison lists every
case whose bits changed. Programs in C whose text changed are compiled, and those with other machine code are listed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import candelabra as cd
from candelabra.dtypes import ALL
from candelabra.library import OPERATORS, Instance, Operator, fallback, plugins
from candelabra_clike import CUDA, C, Dialect, Source, Traits
from candelabra_conformance.context import Context
from candelabra_conformance.properties import registry as properties
from candelabra_conformance.samples.sample import Sample
from candelabra_native.compiling import TARGETS, command_for
from candelabra_native.processor import traits_of
from cuda_needed import everything, record_operator, samples, value
from cuda_recording import GPU, RecordingBackend
from rich.console import Console
from rich.progress import track

LEVEL: Final = 2
"""The highest level of the suite whose cases are recorded."""
VARIANTS: Final[dict[str, tuple[Dialect, Traits]]] = {
    **{level: (C, traits_of(level)) for level in ("x86_64_v3", "x86_64_v4")}, "cuda": (CUDA, GPU),
}  # fmt: skip
"""The devices whose programs are recorded: the levels of processors have the names of those of the compiler."""
Record = dict[str, dict[str, dict[str, Any]]]


def main(words: Sequence[str] | None = None) -> int:
    """Record, or compare two records; the status is 1 if they differ in results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--operators", nargs="+", default=sorted(OPERATORS), choices=sorted(OPERATORS), metavar="OP")
    recording.add_argument("--devices", nargs="*", default=["cpu", "opencl"], help="whose results are recorded")
    recording.add_argument("--dtypes", nargs="+", default=[d.name for d in ALL], help="of the results")
    comparing = commands.add_parser("compare")
    comparing.add_argument("files", nargs=2, type=Path)
    options = parser.parse_args(words)
    if options.command == "record":
        found = recorded(options.operators, options.devices, options.dtypes)
        options.file.write_text(json.dumps(found), encoding="utf-8")
        return 0
    before, after = (json.loads(file.read_text(encoding="utf-8")) for file in options.files)
    changed = list(changed_results(before["results"], after["results"]))
    for line in (*changed, *changed_programs(before["programs"], after["programs"])):
        print(line)
    return 1 if any(line.startswith("  ") for line in changed) else 0


# -- recording --------------------------------------------------------------------------------------------------------
def recorded(names: Sequence[str], devices: Sequence[str], dtypes: Sequence[str]) -> Record:
    """Return the record of some operators."""
    properties.load()
    cd.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "results": {device: results(device, names, dtypes) for device in devices},
            "programs": {name: programs(*variant, names) for name, variant in VARIANTS.items()},
        }


def results(device: str, names: Sequence[str], dtypes: Sequence[str]) -> dict[str, Any]:
    """Return the digest of each case on a device, by operator, dtype, layout and position."""
    context, found = Context(device), {}
    with context.mode(), fallback("error"):
        for name in track(names, device, console=Console(stderr=True)):
            op = OPERATORS[name]
            for kind in ("value", "special"):
                for d, layout, level in properties.OF_OPERATORS[kind].axes(context, op):
                    if d is None or d.name not in dtypes or level > LEVEL:
                        continue
                    for position, sample in enumerate(samples(context, op, d, layout, kind)):
                        case = f"{name} {kind} {d.name} {layout} {position}"
                        found[case] = digest(op, sample, layout, context.instance)
    return found


def digest(op: Operator[..., Any], sample: Sample, layout: str, instance: Instance) -> str:
    """Return the digest of the results of a call, or the name of its error."""
    try:
        made = value(op, sample, layout, instance)
    except Exception as error:
        return type(error).__name__
    return sha256(repr([(t.dtype, t.tolist()) for t in made]).encode()).hexdigest()[:16]


def programs(dialect: Dialect, traits: Traits, names: Sequence[str]) -> dict[str, Any]:
    """Return the programs that a device would compile for the cases: the text and whether it may be contracted."""
    backend = RecordingBackend()
    backend.recorder.dialect, backend.recorder.traits = dialect, traits  # type: ignore[misc]
    remove = plugins.add_backend(backend)
    try:
        context = Context(backend.name)
        with fallback("error"):
            for name in track(names, dialect.name, console=Console(stderr=True)):
                record_operator(context, OPERATORS[name], partial(everything, highest_level=LEVEL))
    finally:
        remove()
    return {identity(source): [source.program(dialect), source.contract] for source in backend.recorder.sources}


def identity(source: Source) -> str:
    """Return what a kernel has in common before and after a change of its text."""
    parameters = ", ".join(p.declaration() for p in source.parameters)
    return f"{source.name}({parameters}) {source.group} {source.index}"


# -- comparing --------------------------------------------------------------------------------------------------------
def changed_results(before: Record, after: Record) -> Iterator[str]:
    """Yield a line per device, and one for each case whose digest changed or that only one record has."""
    for device in sorted({*before, *after}):
        old, new = before.get(device, {}), after.get(device, {})
        other = [case for case in sorted({*old, *new}) if old.get(case) != new.get(case)]
        yield f"{device}: {len(new)} cases, {len(other)} with other bits"
        yield from (f"  {case}" for case in other)


def changed_programs(before: Record, after: Record) -> Iterator[str]:
    """Yield a line per variant, and one for each program in C whose machine code changed."""
    for variant in after:
        old, new = before.get(variant, {}), after[variant]
        both = [name for name in new if name in old]
        texts = [name for name in both if old[name] != new[name]]
        count = f"{variant}: {len(both)} programs in both, {len(old) - len(both)} and {len(new) - len(both)} in one"
        if variant not in TARGETS:
            yield f"{count}; {len(texts)} with another text"
            continue
        shown = track(texts, variant, console=Console(stderr=True))
        other = [n for n in shown if machine_code(*old[n], variant) != machine_code(*new[n], variant)]
        yield f"{count}; {len(texts)} with another text, {len(other)} of them with other machine code"
        yield from (f"  {name}" for name in other)


def machine_code(program: str, contract: bool, level: str) -> bytes:
    """Return the object file of a program. Its symbols are the names of the kernels, which are no part of a text."""
    with tempfile.TemporaryDirectory() as folder:
        text, made = Path(folder, "kernel.c"), Path(folder, "kernel.o")
        text.write_text(program, encoding="utf-8")
        subprocess.run([*command_for(level, contract), "-g0", "-c", text, "-o", made], check=True, cwd=folder)
        return made.read_bytes()


if __name__ == "__main__":
    raise SystemExit(main())

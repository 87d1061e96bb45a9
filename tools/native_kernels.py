"""Write the lists of calls from which candelabra-native's kernels are compiled ahead of time.

Usage: ``python tools/native_kernels.py [short] [full]``. Programs run on a device that records the calls of kernels and
computes nothing (``native_recording``). The short list, which a checkout compiles, has those of the benchmarks and the
examples; the full one, for wheels, adds those of conformance level 2. Each line of a list adds at least one kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import candelabra as cd
from candelabra import nn, optim
from candelabra.library import OPERATORS, fallback, plugins, public_names
from candelabra_conformance.context import Context
from candelabra_conformance.properties import registry as properties
from candelabra_native.pack import libraries
from candelabra_native.pack.calls import combined
from candelabra_native.pack.replaying import minimal, needed_sources
from cuda_needed import everything, record_operator
from native_recording import RecordingBackend
from rich.console import Console
from rich.progress import Progress, track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `benchmarks` and `examples`

LEVELS: Final = ("x86_64_v3", "x86_64_v4")
"""The processor levels between which kernels differ in more than the compiler's options."""
LEVEL: Final = 2
"""The conformance level whose calls are in the full list."""
PATIENCE: Final = 20.0
"""Seconds after which a program is stopped: one that waits for a result waits forever."""
OPERATOR: Final = 2.0
"""The same for one operator, which the fallback may compute on the host."""
Program = Callable[[], object]


def main(words: Sequence[str] | None = None) -> int:
    """Write the lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", nargs="*", choices=["short", "full", []], help="which (default: both)")
    chosen = parser.parse_args(words).lists or ["short", "full"]
    cd.ones(1)  # opens the host's device, before a program that is stopped could be the first to do so
    backend = RecordingBackend()
    remove = plugins.add_backend(backend)
    try:
        with cd.device(backend.name):
            for name, program in track(list(programs()), "programs", console=Console(stderr=True)):
                attempt(name, program)
        write("short", backend)
        if "full" in chosen:
            record_conformance(backend)
            write("full", backend)
    finally:
        remove()
    return 0


def write(name: str, backend: RecordingBackend) -> None:
    """Write a list of all calls so far, without those that add nothing."""
    calls = minimal(backend.calls.values(), LEVELS)
    file = libraries.FOLDER / f"{name}.txt"
    head = "# The calls whose kernels are compiled, written by tools/native_kernels.py. See calls.py.\n"
    file.write_text(head + combined(calls), encoding="utf-8")
    left = f"; no notation for {', '.join(sorted(backend.unwritten))}" if backend.unwritten else ""
    kernels = len(needed_sources(calls, LEVELS[-1]))
    print(f"{file.name}: {len(calls)} calls, {kernels} kernels, {file.stat().st_size} bytes{left}")


def attempt(name: str, program: Program, seconds: float = PATIENCE) -> None:
    """Run a program to its end, its first error or the end of our patience, without its output.

    Errors are no matter: on a device that computes nothing many programs fail, after the calls that count.
    """

    def stop(*_: Any) -> None:
        raise TimeoutError(name)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            program()
    except (Exception, SystemExit):
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- programs ---------------------------------------------------------------------------------------------------------
def programs() -> Iterator[tuple[str, Program]]:
    """Yield the benchmarks, the examples, the optimizers and convolutions of usual sizes, with a name each."""
    from benchmarks.accelerator.models import MODELS
    from benchmarks.accelerator.sizes import SIZES
    from benchmarks.cases import CASES
    from benchmarks.operator_calls import CALLS, FORMS, LARGE, SETUP
    from benchmarks.operators import LEFT_OUT
    from benchmarks.processor import PROCESSOR
    from benchmarks.transforms import TRANSFORMS

    for name, optimizer in OPTIMIZERS.items():
        yield name, partial(run_optimizer, optimizer)
    for case in [*CASES, *PROCESSOR, *TRANSFORMS]:
        yield case.name, partial(run_case, case)
    for sizes in SIZES.values():
        for name, model in MODELS.items():
            yield name, partial(run_model, model, sizes)
    names: dict[str, Any] = {"xp": cd}
    exec(LARGE + SETUP, names)
    for name in sorted(n for n in public_names() if not LEFT_OUT.search(n)):
        forms = (CALLS[name],) if name in CALLS else FORMS
        yield name, partial(attempt, name, partial(run_operator, name, forms, names), OPERATOR)
    for name, options in EXAMPLES.items():
        yield name, partial(run_example, name, options)
    yield "digits", run_digits
    yield "convolutions", run_convolutions


def run_case(case: Any) -> None:
    """Run a case of the benchmarks once."""
    names: dict[str, Any] = {"xp": cd}
    exec(case.setup, names)
    exec(case.prepare, names)
    exec(case.statement, names)


def run_model(model: Callable[..., Callable[[], None]], sizes: Any) -> None:
    """Take one training step."""
    model(cd, cd.get_default_device(), sizes)()


def run_operator(name: str, forms: Sequence[str], names: dict[str, Any]) -> None:
    """Call an operator on large inputs in the first form that it accepts."""
    for form in forms:
        try:
            eval(f"xp.{name}({form})", dict(names))
        except TimeoutError:
            raise
        except Exception:
            continue
        return


EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "carbon_dioxide": ("--steps", "1"), "cartpole": ("--episodes", "2"),
    "character_gpt": ("--steps", "1", "--length", "2"), "gan": ("--epochs", "1"), "instruments": ("--epochs", "1"),
    "names": ("--epochs", "1"), "sunspots": ("--epochs", "1"), "transfer": ("--steps", "1"),
    "tree_lstm": ("--epochs", "1", "--trees", "64"), "vae": ("--epochs", "1"),
}  # fmt: skip
"""The examples, and the options for as little as possible."""


def run_example(name: str, options: Sequence[str]) -> None:
    """Run an example, without keeping its curve."""
    with tempfile.TemporaryDirectory() as folder:
        import_module(f"examples.{name}").main([*options, "--curve", str(Path(folder, "curve.svg"))])


def run_digits() -> None:
    """Train the demo for an epoch."""
    from examples.digits import read_digits, train

    train(cd.get_default_device(), 1, 0, read_digits(), Progress(disable=True))


OPTIMIZERS: Final[dict[str, Callable[..., optim.Optimizer]]] = {
    "SGD": partial(optim.SGD, lr=0.1), "SGD with decay": partial(optim.SGD, lr=0.1, weight_decay=0.1),
    "momentum": partial(optim.SGD, lr=0.1, momentum=0.9),
    "momentum with decay": partial(optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.1),
    "Nesterov": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True), "Adam": optim.Adam,
    "Adam with decay": partial(optim.Adam, weight_decay=0.1), "AdamW": optim.AdamW,
}  # fmt: skip
"""Optimizers with steps of their own kernels. There is a kernel for each of several numbers of parameters."""


def run_optimizer(make: Callable[..., optim.Optimizer]) -> None:
    """Take steps with 1, 2, 4 … parameters."""
    for count in (1 << i for i in range(8)):
        moved = [nn.Parameter(cd.zeros(8)) for _ in range(count)]
        for p in moved:
            p.grad = cd.zeros(8)
        make(moved).step()


def run_convolutions() -> None:
    """Train convolutions of usual sizes, forward and backward: each form of loops has a kernel for several numbers of
    channels.
    """
    for channels in (2, 4, 8, 13, 16, 32, 64):
        for size, width in ((32, 3), (32, 1), (56, 3), (28, 5), (14, 3), (14, 1), (8, 3), (7, 3), (7, 1), (4, 3)):
            for stride, bias in ((1, False), (1, True), (2, False), (2, True)):
                first, second = (nn.Conv2d(c, channels, width, stride, width // 2, bias=bias) for c in (3, channels))
                second(first(cd.randn(16, 3, size, size))).sum().backward()


# -- conformance ------------------------------------------------------------------------------------------------------
def record_conformance(backend: RecordingBackend) -> None:
    """Make the calls of the suite's cases up to :data:`LEVEL`."""
    properties.load()
    context = Context(backend.name)
    with fallback("error"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in track(sorted(OPERATORS), "conformance", console=Console(stderr=True)):
            record_operator(context, OPERATORS[name], partial(everything, highest_level=LEVEL))


if __name__ == "__main__":
    raise SystemExit(main())

"""Write PyTorch's verdicts on the bad calls.

``python tools/oracle_bad_calls.py [NAME...]`` runs each bad call of ``candelabra_conformance.bad_calls`` in PyTorch,
and writes one letter for each into ``tests/core/bad_calls/verdicts.txt``, with which ``make test`` compares. Calls run
in a process of their own, as some crash PyTorch or do not end. With ``--journal`` an interrupted run goes on with the
function at which it stopped.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import select
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from candelabra import dtype
from candelabra_conformance.bad_calls import BadCall, bad_calls, names_called, written
from candelabra_conformance.bad_calls.calls import function_named
from candelabra_conformance.samples.sample import HERE, Fresh, HostArray
from oracle_journal import Journal

VERDICTS = Path(__file__).resolve().parents[1] / "tests/core/bad_calls/verdicts.txt"
HEAD = """PyTorch's verdicts on bad calls, written by `make oracle` (tools/oracle_bad_calls.py).
A line is: function parameter:verdict and codes; candelabra_conformance/bad_calls/verdicts.py explains the letters."""
LETTERS = {NotImplementedError: "N", TypeError: "T", ValueError: "V", RuntimeError: "R", IndexError: "I"}
SECONDS = 10.0
CALLED = ("core/src", "nn/src", "conformance/src")
"""What the calls are computed from: signatures, and the suite's samples."""
MEMORY = 16 << 30
"""The address space of a child: sizes such as 2**40 fail instead of filling the machine."""


class NoCounterpart(Exception):
    """An argument that PyTorch has no counterpart of."""


def for_torch(value: Any) -> Any:
    """Return an argument of a sample for PyTorch."""
    if isinstance(value, np.ndarray):
        if value.dtype.name == "bfloat16":
            return torch.from_numpy(value.astype(np.float32)).bfloat16()
        return torch.from_numpy(np.array(value))
    if value is HERE:
        return "cpu"
    if isinstance(value, HostArray):
        return value.array.copy()
    if isinstance(value, Fresh):
        try:
            return eval(value.source, {"cd": torch, "np": np, "device": "cpu"})
        except Exception:
            raise NoCounterpart(value.source) from None
    if isinstance(value, dtype):
        return getattr(torch, value.name)
    if isinstance(value, dict):
        return {name: for_torch(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(for_torch(v) for v in value)
    if type(value).__module__.partition(".")[0] == "candelabra":
        found = getattr(torch, str(value).rpartition(".")[2], None)
        if found is None:
            raise NoCounterpart(repr(value))
        return found
    return value


def verdict(call: BadCall, known: dict[int, bool]) -> str:
    """Return the letter of a call in PyTorch. ``known``: whether the call that works does, by its id."""
    function = function_named(call.name, torch)
    if function is None:
        return "-"
    base = id(call.base[0])
    if base not in known:
        try:
            function(*for_torch(call.base[0]), **for_torch(call.base[1]))
            known[base] = True
        except Exception:
            known[base] = False
    if not known[base]:
        return "-"
    try:
        args, kwargs = for_torch(call.args), for_torch(call.kwargs)
    except NoCounterpart:
        return "-"
    try:
        function(*args, **kwargs)
    except Exception as error:
        return next((letter for cls, letter in LETTERS.items() if isinstance(error, cls)), "O")
    return "."


def letters(calls: list[BadCall], judge: Callable[[BadCall], str]) -> Iterator[str]:
    """Yield the letter of each call, from a child process that is replaced when a call ends it or takes too long."""
    done = 0
    while done < len(calls):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            for call in calls[done:]:
                os.write(writing, judge(call).encode())
            os._exit(0)
        os.close(writing)
        while select.select([reading], [], [], SECONDS)[0] and (chunk := os.read(reading, 4096)):
            yield from chunk.decode()
            done += len(chunk)
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if done < len(calls):
            yield "X"
            done += 1


def verdicts(names: list[str], journal: Journal) -> Iterator[tuple[str, str]]:
    """Yield (id, letter) of every call of these functions, those in the journal from there."""
    for number, name in enumerate(names):
        if name not in journal.verdicts:
            calls = list(bad_calls(name))
            judge = functools.partial(verdict, known={})
            journal.record(name, list(zip((call.id for call in calls), letters(calls, judge), strict=True)))
            print(f"\r{number + 1}/{len(names)} {name:40}", end="", file=sys.stderr, flush=True)
        yield from ((call, letter) for call, letter in journal.verdicts[name])


def main() -> int:
    """Run and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, printed and not written")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write each verdict there as it comes, and go on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    journal = Journal(options.journal, {}, CALLED)
    text = written(verdicts(options.names or names_called(), journal), HEAD)
    if options.names:
        print(text)
    else:
        VERDICTS.parent.mkdir(parents=True, exist_ok=True)
        VERDICTS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

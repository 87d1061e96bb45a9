"""A fuzzer of `candelabra.load`: files of all formats, made and damaged by their structure.

`files.py` writes valid files, `damage.py` damages them, and this program loads them within bounds on time and memory
and records the audit events that reading a file must not cause.
``python -m tests.core.serialization.fuzzing SEED COUNT [FIRST]``
loads the files FIRST to FIRST + COUNT of a seed, which are the same on every machine, and prints a summary as JSON.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import candelabra as cd
import numpy as np
from candelabra.serialization import FileFormatError

from tests.core.serialization.fuzzing import damage

SECONDS = 4.0
"""The processor time that one file may take."""
MEMORY = 5 * (1 << 28)
"""The memory that one file may take: the limit for expanded tensors, their copies, and the file."""
FORBIDDEN = ("os.", "subprocess.", "socket.", "shutil.", "pickle.", "ctypes.", "exec", "compile", "import", "marshal.")
OURS = ("<candelabra", str(Path(cd.__file__).parent), str(Path(cd.nn.__file__ or "").parent))


class TooSlow(BaseException):
    """A file took longer than `SECONDS`. It is no Exception, so that no reader converts it."""


class Watch:
    """An audit hook, which cannot be removed, with a switch."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record what loading a file must not do. Modules of candelabra may be imported, and code generated there."""
        if not self.on or not event.startswith(FORBIDDEN) or event in ("os.listdir", "os.scandir"):
            return
        first = arguments[0] if arguments else ""
        if event == "import" and str(first).startswith("candelabra."):
            return
        caller = sys._getframe(1).f_code.co_filename
        if event.startswith(("marshal.", "os.")) and caller == "<frozen importlib._bootstrap_external>":
            return  # the bytecode of such a module, read or written
        if event == "exec" and getattr(first, "co_filename", "").startswith(OURS):
            return
        if event == "compile" and str(arguments[1]).startswith(OURS):
            return
        self.seen.append(f"{event} {arguments!r:.200}")


def stopped(_signal: int, _frame: object) -> None:
    """Stop a file that takes too long."""
    raise TooSlow


def damaged(rng: Random) -> tuple[str, bytes, bool]:
    """Return the format of a file, its bytes, and whether it is valid."""
    form = rng.choice(list(damage.FORMATS))
    write, spoil = damage.FORMATS[form]
    data = write(rng)
    count = rng.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))
    for _ in range(count):
        data = spoil(rng, data)
    return form, data, count == 0


class Loader:
    """Loads files in one of the ways that there are, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "good").write_bytes(_saved({"x": cd.ones(2)}))

    def load(self, data: bytes, form: str, rng: Random) -> object:
        """Load a file as an object, a path, a map, by names, or as a part of an index."""
        kind = rng.randrange(6)
        if kind < 2 or (kind < 5 and form in ("t7", "legacy")):
            return cd.load(io.BytesIO(data))
        path = self.folder / "file"
        path.write_bytes(data)
        if kind == 2:
            return cd.load(path)
        if kind == 3:
            return cd.load(path, mmap=True)
        if kind == 4:
            return cd.load(path, mmap=bool(rng.randrange(2)), names=["w", "v.0", "u"][: rng.randrange(4)])
        return self.load_index(rng)

    def load_index(self, rng: Random) -> object:
        """Load the index of two files, one of which is damaged; sometimes the index is too."""
        index: Any = {"metadata": {"total_size": 4}, "weight_map": {"x": "good", "w": "file", "v": "file"}}
        if rng.randrange(2):
            index = damage.json_value(rng, index)
        path = self.folder / "model.index.json"
        path.write_bytes(damage.json_text(rng, index))
        return cd.load(path)


def _saved(obj: object) -> bytes:
    f = io.BytesIO()
    cd.save(obj, f)
    return f.getvalue()


def accepted(error: BaseException) -> bool:
    """Return whether `load` documents an exception: a refusal, or what the arguments cause."""
    if isinstance(error, ValueError):
        return str(error).startswith("load(): mmap and names are for")
    return isinstance(error, FileFormatError | KeyError | FileNotFoundError)


def used(value: object) -> None:
    """Read every element of the tensors in what was loaded, up to a size."""
    ahead, seen = [value], set()
    while ahead:
        part = ahead.pop()
        if isinstance(part, cd.Tensor):
            if part.numel() < 100_000:
                np.asarray(part.detach().numpy()).tobytes()
        elif isinstance(part, dict | list | tuple) and id(part) not in seen:
            seen.add(id(part))
            ahead += part.values() if isinstance(part, dict) else part


def run(seed: str, count: int, first: int) -> dict[str, Any]:
    """Load files and return how they went; ``faults`` must be empty."""
    faults: list[str] = []
    outcomes: Counter[str] = Counter()
    slowest = (0.0, -1)
    watch = Watch()
    signal.signal(signal.SIGVTALRM, stopped)
    with tempfile.TemporaryDirectory() as folder:
        for form in ("safetensors", "pt"):  # import what loading needs
            cd.save({"x": cd.ones(2)}, Path(folder) / "good", format=form)
            cd.load(Path(folder) / "good", mmap=True)
        cd.load(io.BytesIO(_saved({"x": cd.nn.Linear(2, 3)})))
        for codec in ("ascii", "latin-1", "raw_unicode_escape", "unicode_escape"):  # of the strings in pickles
            codecs.lookup(codec)
        loader = Loader(Path(folder))
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        for i in range(first, first + count):
            rng = Random(f"{seed}/{i}")
            form, data, valid = damaged(rng)
            start = time.process_time()
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            watch.on = True
            try:
                used(loader.load(data, form, rng))
                outcomes[f"{form} loaded"] += 1
            except BaseException as error:
                outcomes[f"{form} refused"] += 1
                if not accepted(error) or (valid and isinstance(error, FileFormatError) and "index" not in str(error)):
                    faults.append(f"{i}: {form}, {type(error).__name__}: {str(error)[:300]}")
            finally:
                watch.on = False
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            faults += [f"{i}: {form}, {event}" for event in watch.seen]
            watch.seen.clear()
            slowest = max(slowest, (time.process_time() - start, i))
    return {"faults": faults, "outcomes": dict(sorted(outcomes.items())), "slowest": slowest}


if __name__ == "__main__":
    found = run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")

"""Names that several threads use first at the same time."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import _journal as journal
from candelabra._namespace import index

MODULE = """
from __future__ import annotations
from candelabra import Tensor
from candelabra.library import operator, overloads, pointwise, public

@operator(pointwise, method=False)
def late_twice(input: Tensor) -> Tensor:
    "Return twice the input, by a function that is defined below."
    return twice(input)

@operator(pointwise, method=False, public=False)
def late_twice_scaled(input: Tensor, scale: float) -> Tensor:
    "Return twice the input times a number."
    return twice(input) * scale

late = overloads("late", late_twice, late_twice_scaled, method=False)

@public(method=False)
def late_callable(input: Tensor) -> Tensor:
    "Return twice the input."
    return twice(input)

import sink_of_slow_declarations as sink

sink.declared.set()
sink.release.wait(30)

def twice(x):
    return x + x
"""


NAMES = ("late_twice", "late", "late_callable")


class Sink:
    """What the module under import shares with the test."""

    def __init__(self) -> None:
        self.declared, self.release = threading.Event(), threading.Event()
        self.waiting: set[str] = set()

    def arrive(self) -> None:
        """Let the import go on once every user of a name has arrived."""
        self.waiting.add(threading.current_thread().name)
        if self.waiting >= set(NAMES):
            self.release.set()


def test_a_module_that_another_thread_imports(tmp_path: Path, monkeypatch: Any) -> None:
    """A function found before its module is complete waits for the import, and then finds the module's other names."""
    sink: Any = Sink()
    (tmp_path / "slow_declarations.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "sink_of_slow_declarations", sink)
    original = index.import_module
    results: dict[str, Any] = {}

    def arriving_import(module: str) -> Any:
        if module == "slow_declarations":
            sink.arrive()
        return original(module)

    def use(name: str) -> None:
        try:
            results[name] = getattr(cd, name)(cd.ones(2)).tolist()
        except Exception as error:
            results[name] = error
        sink.arrive()

    users = [threading.Thread(target=use, args=(name,), name=name) for name in NAMES]
    recording = journal.Recording()

    def declare() -> None:
        with recording:
            original("slow_declarations")

    importing = threading.Thread(target=declare)
    monkeypatch.setattr(index, "import_module", arriving_import)
    importing.start()
    assert sink.declared.wait(30)
    for thread in users:
        thread.start()
    for thread in (importing, *users):
        thread.join()
    recording.undo()
    sys.modules.pop("slow_declarations")
    assert results == {name: [2.0, 2.0] for name in NAMES}

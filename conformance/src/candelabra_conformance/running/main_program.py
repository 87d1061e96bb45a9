"""Execute the main program again in worker processes, up to its call of ``run()``.

A worker needs what a script has registered or defined: a backend without an entry point, a ``setup`` function. The
module ``multiprocessing`` would import the script from top to bottom for that, so a script without ``if __name__ ==
"__main__":`` would begin a whole run in each worker. Here the worker serves its cases inside the call that started it,
when everything before the call is defined and every ``with`` block around it is open.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final, TextIO

from candelabra_conformance.model import Run

NAME: Final = "__mp_main__"
"""The name of the main program in a worker, as in ``multiprocessing``: not ``"__main__"``."""


@dataclass(frozen=True)
class MainProgram:
    """A main program that workers can execute again: a module by its name (``python -m``), or the path of a script."""

    module: str
    path: str
    finished: tuple[Run, ...]
    """The runs before the current one. The program gets them again, without running any case."""

    def execute(self, serve: Callable[[], None]) -> None:
        """Execute the program in a worker, and call ``serve()`` once: in the program's next ``run()``, or at its end.

        What the program prints is discarded. Its exceptions propagate.
        """
        module = ModuleType(NAME)
        module.__file__ = self.path
        sys.modules["__main__"] = sys.modules[NAME] = module
        _serving.append(_Serving(list(self.finished), serve, sys.stdout))
        sys.stdout = io.StringIO()
        exec(self.code(), module.__dict__)  # noqa: S102 - the program that the user has started
        _serve()  # a command such as pytest calls run() only as the main program, and so got no finished run

    def code(self) -> CodeType:
        """Return the compiled program. Raises ``ImportError`` for a module without source."""
        if not self.module:
            return compile(Path(self.path).read_bytes(), self.path, "exec", dont_inherit=True)
        spec = importlib.util.find_spec(self.module)
        code = spec.loader.get_code(self.module) if spec is not None and spec.loader is not None else None  # type: ignore[attr-defined]
        if code is None:
            raise ImportError(f"the main program {self.module!r} has no source that a worker could execute")
        assert isinstance(code, CodeType)
        return code


@dataclass
class _Serving:
    finished: list[Run]
    serve: Callable[[], None]
    stdout: TextIO


_serving: Final[list[_Serving]] = []
"""In a worker whose main program is being executed, what its next ``run()`` does."""
_finished: Final[list[Run]] = []
"""The runs of this process, in order."""
_starting: Final = threading.Lock()
"""Held while the main program is hidden."""


def _of_this_process() -> MainProgram | None:
    """Return the main program, or None if it cannot be executed again: an interactive session, a package's command."""
    main = sys.modules["__main__"]
    name = getattr(main.__spec__, "name", "") or ""
    path = getattr(main, "__file__", None)
    if path is None or name.rpartition(".")[2] == "__main__" or not Path(path).is_file():
        return None
    return MainProgram(name, path, tuple(_finished))


def reached() -> Run | None:
    """Return None in an ordinary process. In a worker, return the next finished run, or serve cases and end the worker.

    ``run()`` calls this function first.
    """
    if not _serving:
        return None
    if _serving[0].finished:
        return _serving[0].finished.pop(0)
    _serve()
    return None


def _serve() -> None:
    """Serve the cases of a worker, and end it."""
    here = _serving.pop()
    sys.stdout = here.stdout
    here.serve()
    raise SystemExit(0)


def remember(run: Run) -> Run:
    """Add a finished run of this process, and return it."""
    _finished.append(run)
    return run


@contextmanager
def hidden() -> Iterator[MainProgram | None]:
    """Hide the main program for a ``with`` block that starts a process, so that ``multiprocessing`` does not import it.

    The block gets the program, or None if it cannot be executed again. One thread at a time is in such a block.
    """
    with _starting:
        main, program = sys.modules["__main__"], _of_this_process()
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield program
        finally:
            sys.modules["__main__"] = main


@contextmanager
def visible() -> Iterator[None]:
    """Keep other threads from hiding the main program for a ``with`` block, which may pickle functions of it."""
    with _starting:
        yield

"""Programs that call ``run()``: scripts with a backend of their own, with and without worker processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from candelabra_conformance.running import Options, main_program, run

DEFINITIONS = """
    from candelabra.library import plugins
    from candelabra_conformance.fake import FakeAccelerator
    from candelabra_conformance.running import Options, run

    class Scripted(FakeAccelerator):
        def __init__(self):
            super().__init__("scripted")

    def setup():
        plugins.add_backend(Scripted())

    FEW = ("device/copy/float32", "device/item/float32", "tanh/value/float32/contiguous")
    def shown(done):
        print(done.green, len(done.results), done.subject.backend)
"""
SCRIPT = """
    print("begins")
    shown(run("fake", Options(patterns=FEW[:1])))
    remove = plugins.add_backend(Scripted())
    try:
        shown(run("scripted:0", Options(patterns=FEW, jobs=2)))
    finally:
        remove()
    print("ends")
"""
GUARDED = """
    if __name__ == "__main__":
        shown(run("scripted:0", Options(patterns=FEW, isolate=True), setup=setup))
"""


def python(*arguments: str, cwd: Path, program: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with a program on its standard input."""
    return subprocess.run(
        [sys.executable, *arguments], input=program, capture_output=True, text=True, check=False, cwd=cwd
    )


@pytest.mark.thorough
def test_a_script_without_a_guard_may_use_workers(tmp_path: Path) -> None:
    """Its class is known to each worker, which neither runs the script twice nor prints what the script prints."""
    (tmp_path / "script.py").write_text(dedent(DEFINITIONS) + dedent(SCRIPT))
    done = python("script.py", cwd=tmp_path)
    assert done.stderr == ""
    fake, own = "candelabra_conformance.fake.backend", "script.py"
    assert done.stdout.splitlines() == ["begins", f"True 1 {fake}", f"True 3 {own}", "ends"]


def test_the_main_program_is_hidden_from_a_process_that_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The block gets the program and the runs before it; afterwards ``__main__`` is what it was."""
    script = ModuleType("__main__")
    script.__file__ = str(tmp_path / "script.py")
    monkeypatch.setitem(sys.modules, "__main__", script)
    with main_program.hidden() as program:
        assert program is None  # the file is gone, or was never one
        assert not hasattr(sys.modules["__main__"], "__file__")
    (tmp_path / "script.py").touch()
    done = run("fake", Options(patterns=("device/copy/float32",)))
    with main_program.hidden() as program:
        assert program is not None
        assert (program.module, program.path, program.finished[-1]) == ("", script.__file__, done)
    assert sys.modules["__main__"] is script


def test_a_command_serves_at_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command such as pytest's calls ``run()`` only as the main program, so a worker serves after executing it, also
    if the process has finished runs before."""
    script = tmp_path / "command.py"
    script.write_text("if __name__ == '__main__': raise RuntimeError")
    done = run("fake", Options(patterns=("device/copy/float32",)))
    served: list[str] = []
    for name in ("__main__", main_program.NAME):
        monkeypatch.setitem(sys.modules, name, sys.modules["__main__"])
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with pytest.raises(SystemExit):
        main_program.MainProgram("", str(script), (done,)).execute(lambda: served.append("once"))
    assert served == ["once"]
    assert main_program.reached() is None


def test_a_module_without_source_cannot_be_executed_again() -> None:
    """The error names the module."""
    program = main_program.MainProgram("sys", "sys.py", ())
    with pytest.raises(ImportError, match="the main program 'sys' has no source that a worker could execute"):
        program.code()


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [["guarded.py"], ["-m", "guarded"]])
def test_a_script_with_a_guard_may_give_its_own_setup(tmp_path: Path, arguments: list[str]) -> None:
    """A function of the script registers the backend in each worker, whichever way the script is started."""
    (tmp_path / "guarded.py").write_text(dedent(DEFINITIONS) + dedent(GUARDED))
    done = python(*arguments, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("True 3 guarded.py\n", "")


@pytest.mark.thorough
def test_the_error_for_a_program_without_a_file_says_what_to_do(tmp_path: Path) -> None:
    """Workers cannot know what was typed in; the error says so, and one process needs no file."""
    typed = dedent(DEFINITIONS) + "setup()\nshown(run('scripted:0', Options(patterns=FEW{})))\n"
    done = python("-", cwd=tmp_path, program=typed.format(", isolate=True"))
    assert "a worker could not open 'scripted:0': exit status 1; its own error stands above. No entry" in done.stderr
    assert "put the program into a file, which registers it outside of `if __name__ == '__main__':`" in done.stderr
    done = python("-", cwd=tmp_path, program=typed.format(""))
    assert (done.stdout, done.stderr) == ("True 3 <stdin>\n", "")


@pytest.mark.thorough
def test_workers_skip_what_a_guard_protects(tmp_path: Path) -> None:
    """A backend that is registered below the guard is missing in workers; the error says where to register it."""
    guarded = GUARDED.replace("shown(", "setup(); shown(").replace(", setup=setup", "")
    (tmp_path / "guarded.py").write_text(dedent(DEFINITIONS) + dedent(guarded))
    done = python("guarded.py", cwd=tmp_path)
    assert "registers it outside of `if __name__ == '__main__':`, or pass setup=, a function of the file" in done.stderr


@pytest.mark.thorough
def test_a_program_that_cannot_be_executed_again_ends_the_run(tmp_path: Path) -> None:
    """The worker's own error, here of a file that exists already, is on the error stream."""
    begin = "from pathlib import Path\nPath('made').mkdir()\n"
    (tmp_path / "script.py").write_text(begin + dedent(DEFINITIONS) + dedent(SCRIPT))
    done = python("script.py", cwd=tmp_path)
    assert "FileExistsError: [Errno 17] File exists: 'made'" in done.stderr
    assert "a worker could not open 'scripted:0': exit status 1" in done.stderr

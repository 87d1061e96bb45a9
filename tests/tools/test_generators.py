"""The check that no random number generator outlives a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import generators


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nRNG = np.random.default_rng(3)\n",
        "import numpy as np\nclass Samples:\n    draw = np.random.Generator(np.random.Philox(1)).normal\n",
        "import numpy as np\ndef values(rng=np.random.default_rng(3)): ...\n",
        "import numpy as np\n@mark(np.random.default_rng(0).normal(size=3))\ndef test() -> None: ...\n",
        "from random import Random\nif True:\n    choose = Random(5)\n",
        "import candelabra as cd\nGENERATOR = cd.Generator()\n",
    ],
)
def test_generators_that_are_made_at_import_are_faults(source: str) -> None:
    """Modules, classes, default arguments and decorators are checked."""
    ((line, text),) = generators.faults(source)
    assert line > 0
    assert text.endswith("is called at import: use the fixture rng, or make the generator in the test")


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\ndef test() -> None:\n    np.random.normal()\n",
        "import random\nx = lambda: random.choice([1])\n",
    ],
)
def test_global_generators_are_faults_everywhere(source: str) -> None:
    """NumPy's and Python's global generators are faults, also in the body of a test."""
    ((_, text),) = generators.faults(source)
    assert text.endswith("draws from a generator of the process: use the fixture rng")


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\ndef test() -> None:\n    np.random.default_rng(3).normal()\n",
        "import numpy as np\nmake = lambda: np.random.default_rng(3)\n",
        "import random\ndef test() -> None:\n    random.Random(1).shuffle([])\n",
        "from candelabra_clike.kernels import random\ndef test() -> None:\n    random.draw()\n",
    ],
)
def test_generators_of_a_test_are_none(source: str) -> None:
    """A generator created in a function is new for each test; a module of ours may be called random."""
    assert not list(generators.faults(source))


def test_the_check_names_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command fails with them, and says so if there is no fault."""
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(generators, "FOLDER", tmp_path / "tests")
    assert generators.main() == 0
    assert capsys.readouterr().out == "no generator outlives a test\n"
    (tmp_path / "tests" / "test_it.py").write_text("from numpy.random import default_rng\n\nrng = default_rng(3)\n")
    assert generators.main() == 1
    assert capsys.readouterr().out.startswith("tests/test_it.py:3: default_rng() is called at import: ")

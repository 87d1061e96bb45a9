"""The cost and side effects of ``import candelabra``, and the lookup of public names."""

import subprocess
import sys

import candelabra as cd
import pytest
from candelabra._namespace import index
from candelabra._namespace.exports import EXPORTS, exported

ARRAYS = "numpy", "scipy", "ml_dtypes", "candelabra_cpu", "candelabra_arrayapi"
HEAVY = (*ARRAYS, "inspect", "importlib.metadata", "pluggy", "typing", "re")
PROGRAM = f"""
import sys
before = set(sys.modules)
import candelabra
brought = set(sys.modules) - before
print(*[name for name in {HEAVY!r} if name in brought])
"""


def test_import_loads_neither_arrays_nor_plugins() -> None:
    """In a new interpreter, the core imports no array library, no backend and no slow module of the standard
    library."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_import_of_nn_declares_no_operator() -> None:
    """Operators are declared at their first use, not by ``import candelabra.nn``."""
    program = "import sys, candelabra.nn; print(*[n for n in sys.modules if '._operators.' in n])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_import_of_nn_loads_neither_plugins_nor_generators_of_code() -> None:
    """``candelabra.library`` imports the machinery of dispatch and plugins at the first use of a name that needs it."""
    program = """
import sys, candelabra.nn
print(*[n for n in sys.modules if n.startswith(('candelabra._plugins.', 'candelabra._codegen.', 'pluggy'))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_deferred_import_runs_once() -> None:
    """The first use of a name stores it in the module; an unknown name is Python's usual error."""
    from candelabra import library

    vars(library).pop("explain", None)
    assert library.explain is cd.explain
    assert vars(library)["explain"] is cd.explain
    with pytest.raises(AttributeError, match=r"module 'candelabra.library' has no attribute 'explian'"):
        library.explian  # noqa: B018


def test_deferred_imports_missing_in_the_index_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command that generates the index."""
    from candelabra import library

    monkeypatch.delitem(index.DEFERRED_IMPORTS, "candelabra.library")
    monkeypatch.delitem(vars(library), "explain", raising=False)
    with pytest.raises(index.StaleIndex, match=r"it lists no deferred imports of candelabra.library.*run `make index`"):
        library.explain  # noqa: B018


def test_the_first_tensor_imports_few_operators() -> None:
    """A backend's table is built and checked with the index, so a call declares few operators, and none of
    nn. Random numbers import ``numpy.random`` at the first draw."""
    program = (
        "import sys, candelabra as cd; x = cd.ones(2); x + x; "
        "print(*[name for name in sys.modules if name.startswith(('candelabra._operators.', 'candelabra.nn'))], "
        "'numpy.random' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *declared, draws = done.stdout.split()
    assert not [name for name in declared if name.startswith("candelabra.nn")]
    assert len(declared) < len(set(index.OPERATORS_IN.values())) / 4
    assert draws == "False"


def test_function_tensor_takes_the_name_of_its_module() -> None:
    """``candelabra.tensor`` is the function, and ``from candelabra._tensor import Tensor`` works too."""
    program = """
import candelabra as cd
from candelabra._tensor import Tensor
assert cd.tensor.__name__ == 'tensor'
print(Tensor is cd.Tensor)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_every_exported_name_is_there(name: str) -> None:
    """Each row of the table leads to an object, which the package returns, and lists if the name is public."""
    assert getattr(cd, name) is exported(name)
    assert (name in dir(cd)) is (name[0] != "_" or name.startswith("__"))


def test_constants_are_pythons() -> None:
    """``inf``, ``nan``, ``pi``, ``e`` and ``newaxis`` equal Python's."""
    assert cd.inf == float("inf")
    assert cd.nan != cd.nan
    assert 3.14 < cd.pi < 3.15
    assert 2.71 < cd.e < 2.72
    assert cd.newaxis is None


def test_unknown_name_is_an_attribute_error() -> None:
    """The error is Python's usual one and names the package."""
    with pytest.raises(AttributeError, match=r"module 'candelabra' has no attribute 'tensr'"):
        cd.tensr  # noqa: B018


def test_size_behaves_as_a_tuple_that_stays_a_size() -> None:
    """Slices, sums and multiples of a Size are Sizes; ``numel`` is the product."""
    size = cd.ones(2, 3, 4).shape
    assert size == (2, 3, 4)
    assert size.numel() == 24
    assert repr(size[1:]) == "candelabra.Size([3, 4])"
    assert repr(size + cd.Size([5])) == "candelabra.Size([2, 3, 4, 5])"
    assert repr((5,) + size) == "candelabra.Size([5, 2, 3, 4])"  # noqa: RUF005 - that the sum is a Size is the point
    assert repr(cd.Size([2]) * 2) == "candelabra.Size([2, 2])"

"""``candelabra.distributed`` where candelabra-distributed is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from candelabra import _absent_distributed as absent

PROGRAM = """
import sys

sys.path[:] = [entry for entry in sys.path if "distributed" not in entry]
import candelabra as cd
import candelabra.distributed as dist

assert cd.distributed is dist
assert not dist.is_available() and not dist.is_initialized()
try:
    dist.init_process_group("mpi")
except ModuleNotFoundError as error:
    print(error)
"""


def test_programs_import_it_and_learn_that_it_is_not_available() -> None:
    """In an interpreter whose path lacks the distribution."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "candelabra.distributed.init_process_group(): candelabra-distributed is not installed: "
        'pip install "candelabra[distributed]"\n'
    )


def test_queries_answer_no() -> None:
    """What programs ask before they use several processes."""
    for name in ("available", "initialized", "nccl_available", "gloo_available", "mpi_available"):
        assert getattr(absent, f"is_{name}")() is False
    assert not absent.is_torchelastic_launched()
    assert not absent.is_backend_available("gloo")


def test_names_for_hints_and_defaults() -> None:
    """Reductions and groups exist; a group cannot be created. The reductions are those of the distribution."""
    from candelabra import distributed

    assert absent.ReduceOp is distributed.ReduceOp
    assert repr(distributed.ReduceOp.SUM) == "<ReduceOp.SUM: 0>"
    assert absent.GroupMember.WORLD is None
    with pytest.raises(ModuleNotFoundError, match=r'ProcessGroup\(\): .*pip install "candelabra\[distributed\]"'):
        absent.ProcessGroup()


@pytest.mark.parametrize("name", absent._NAMES.split())
def test_functions_name_the_extra(name: str) -> None:
    """Every function raises, whatever its arguments, and the distribution has the same names."""
    from candelabra import distributed

    with pytest.raises(
        ModuleNotFoundError, match=rf'distributed\.{name}\(\): .*pip install "candelabra\[distributed\]"'
    ):
        getattr(absent, name)(1, key=2)
    assert name in distributed.__all__


def test_other_names_do_not_exist() -> None:
    """As in any module."""
    assert dir(absent) == sorted(absent.__all__)
    with pytest.raises(AttributeError, match=r"module 'candelabra\.distributed' has no attribute 'nonsense'"):
        _ = absent.nonsense

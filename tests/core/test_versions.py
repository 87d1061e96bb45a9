"""What tells whether memory was written: versions, and tensors that share memory and count their writes apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra._versions import MOST_CELLS, join_versions, state


def seen(tensor: cd.Tensor) -> Any:
    """The state of a tensor's memory."""
    return state(tensor._counter)


def from_parameter(tensor: cd.Tensor) -> Callable[[], Any]:
    """Write through a parameter that wraps the tensor."""
    parameter = nn.Parameter(tensor)
    return lambda: parameter.detach().add_(1)


def through_set_data(tensor: cd.Tensor) -> Callable[[], Any]:
    """Write through a tensor that has got the memory."""
    other = cd.zeros(1)
    other.data = tensor
    return lambda: other.add_(1)


WRITES: dict[str, Callable[[cd.Tensor], Callable[[], Any]]] = {
    "itself": lambda t: lambda: t.add_(1),
    "a view": lambda t: lambda: t.view(-1).add_(1),
    "detach": lambda t: lambda: t.detach().add_(1),
    "data": lambda t: lambda: t.data.add_(1),
    "data from before": lambda t: t.data.zero_,
    "data of data": lambda t: t.data.data.zero_,
    "a parameter": from_parameter,
    "set_data": through_set_data,
    "a subclass": lambda t: cd.Tensor._make_subclass(cd.Tensor, t).zero_,
    "set_": lambda t: cd.zeros(1).set_(t).zero_,
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_seen(name: str) -> None:
    """Every way to write the memory by operators changes the state, each time."""
    tensor = cd.ones(3)
    write = WRITES[name](tensor)
    for _ in range(3):
        before = seen(tensor)
        assert before is not None
        assert seen(tensor) == before
        write()
        assert seen(tensor) != before


def test_a_parameter_sees_writes_to_what_it_wraps() -> None:
    """The other direction: the tensor is written, and the parameter's state changes."""
    tensor = cd.ones(3)
    parameter = nn.Parameter(tensor)
    before = seen(parameter)
    tensor.add_(1)
    assert seen(parameter) != before
    assert parameter._version == 0


def test_data_keeps_a_version_of_its_own() -> None:
    """Autograd does not see writes through ``.data``."""
    x = cd.ones(3, requires_grad=True)
    y = x * x
    x.data.mul_(2)
    y.sum().backward()
    assert x._version == 0
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4, 4]


def exported(tensor: cd.Tensor) -> Any:
    """Export the memory by DLPack."""
    return tensor.__dlpack__()


@pytest.mark.parametrize(
    "share",
    [cd.Tensor.numpy, exported, np.asarray, cd.Tensor.share_memory_, cd.Tensor.data_ptr],
    ids=lambda f: f.__name__,
)
def test_memory_of_others_is_unseen(share: Callable[[cd.Tensor], Any]) -> None:
    """NumPy, DLPack, other processes and pointers write without a version."""
    tensor = cd.ones(3)
    assert seen(tensor) is not None
    share(tensor)
    assert seen(tensor) is None
    assert seen(tensor.view(-1)) is None
    assert seen(tensor.data) is None


def test_memory_from_others_is_unseen() -> None:
    """So do those who made the memory."""
    assert seen(cd.from_numpy(np.ones(3))) is None
    assert seen(cd.from_dlpack(np.ones(3))) is None
    assert seen(cd.frombuffer(bytearray(8), dtype=cd.int64)) is None
    assert seen(cd.from_numpy(np.ones(3)).clone()) == 0


def test_cells_of_one_memory_are_bounded() -> None:
    """A tensor that gets other memory again and again does not keep what it knew of all of them."""
    tensor = cd.ones(3)
    for _ in range(MOST_CELLS + 5):
        tensor.data = cd.ones(3)
    assert seen(tensor) is None
    join_versions(tensor._counter, tensor._counter)
    assert len(tensor._counter) == 2

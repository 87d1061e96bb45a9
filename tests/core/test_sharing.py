"""Memory that processes share: share_memory_ and is_shared."""

from __future__ import annotations

import copy
import multiprocessing
import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


def write(tensor: Any, model: Any, value: float) -> None:
    """Write into a tensor and the parameters of a model, in another process."""
    tensor.fill_(value)
    with cd.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*use of fork.. may lead to deadlocks:DeprecationWarning")
def test_processes_see_each_others_writes(method: Any) -> None:
    """A process that was forked, or that got the tensors through a pipe, writes into the same memory."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"the operating system has no start method {method}")
    context: Any = multiprocessing.get_context(method)
    x = cd.zeros(2, 3).share_memory_()
    model = nn.Linear(2, 1).share_memory()
    process = context.Process(target=write, args=(x[1], model, 7.0))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert x.tolist() == [[0, 0, 0], [7, 7, 7]]
    assert model.weight.tolist() == [[7, 7]]
    assert model.bias.tolist() == [7]


def test_a_shared_tensor_keeps_its_values_and_identity() -> None:
    """The method is in place; views that are made later are shared too, copies are not."""
    x = cd.arange(6.0).reshape(2, 3).t().clone()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x.share_memory_() is x
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x[1:].is_shared()
    assert not x.clone().is_shared()
    assert not copy.deepcopy(x).is_shared()
    p = nn.Parameter(cd.ones(2))
    p.share_memory_()
    (p * 3).sum().backward()
    assert p.grad is not None
    assert p.grad.tolist() == [3, 3]
    assert p.is_shared()


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float16", "complex64"])
def test_every_dtype_can_be_shared(dtype: str) -> None:
    """The elements do not change."""
    d = getattr(cd, dtype)
    x = cd.tensor([0, 1, 1]).to(d)
    before = x.tolist()
    assert x.share_memory_().tolist() == before
    assert x.dtype is d


def test_empty_tensors_have_nothing_to_share() -> None:
    """An empty tensor is returned as it is."""
    x = cd.empty(0)
    assert x.share_memory_() is x
    assert not x.is_shared()


def test_the_memory_is_freed_with_its_last_tensor() -> None:
    """Without tensors over it, a mapping is closed."""
    from candelabra._interchange.sharing import _mappings

    x = cd.ones(4).share_memory_()
    count = len(_mappings)
    view = x[1:]
    del x
    assert len(_mappings) == count
    del view
    assert len(_mappings) == count - 1


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: cd.ones(3)[1:], "share_memory_(): the tensor is a view; share its base, or a clone()"),
        (
            lambda: cd.ones(3, device="lantern:0"),
            "share_memory_(): the memory of lantern:0 cannot be shared with other processes; move the tensor to a",
        ),
    ],
)
def test_views_and_memory_of_accelerators_are_refused(make: Any, text: str) -> None:
    """The error says what to do."""
    with pytest.raises(RuntimeError, match=re.escape(text)):
        make().share_memory_()

"""Printing: equal to PyTorch's output (the literals below are its output, with our names of dtypes)."""

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._device import open_device
from candelabra._printing import get_printoptions, printoptions, set_printoptions, tensor_repr
from candelabra._tensor import wrap
from candelabra.dtypes import BY_NAME
from candelabra_cpu.backend import TO_NUMPY

inf, nan = math.inf, math.nan


def tensor(values: Any, dtype: str) -> Any:
    """Return a tensor of these values."""
    return wrap(np.array(values, TO_NUMPY[BY_NAME[dtype]]), open_device().keys_for(BY_NAME[dtype]))


CASES: list[tuple[Any, str, dict[str, Any], str]] = [
    ([1, 20, -3], "int64", {}, "tensor([ 1, 20, -3])"),
    ([True, False], "bool", {}, "tensor([ True, False])"),
    ([1., 2.], "float32", {}, "tensor([1., 2.])"),
    ([[1.5, -2.25], [3., 100.]], "float32", {}, "tensor([[  1.5000,  -2.2500],\n        [  3.0000, 100.0000]])"),
    ([1e-5, 1.], "float32", {}, "tensor([1.0000e-05, 1.0000e+00])"),
    ([1., 2000.], "float32", {}, "tensor([1.0000e+00, 2.0000e+03])"),
    ([1., 1000.], "float32", {}, "tensor([   1., 1000.])"),
    ([1e9, 1.], "float32", {}, "tensor([1.0000e+09, 1.0000e+00])"),
    ([2e8], "float32", {}, "tensor([2.0000e+08])"),
    ([nan, inf, -inf, 1.], "float32", {}, "tensor([nan, inf, -inf, 1.])"),
    ([nan, inf, -1.5], "float32", {}, "tensor([    nan,     inf, -1.5000])"),
    ([0., -0., nan], "float32", {}, "tensor([0., -0., nan])"),
    ([1., 2.], "float64", {}, "tensor([1., 2.], dtype=candelabra.float64)"),
    ([0.1, 65504.], "float16", {}, "tensor([9.9976e-02, 6.5504e+04], dtype=candelabra.float16)"),
    ([0.1, 3.], "bfloat16", {}, "tensor([0.1001, 3.0000], dtype=candelabra.bfloat16)"),
    ([1, 255], "uint8", {}, "tensor([  1, 255], dtype=candelabra.uint8)"),
    ([18446744073709551615], "uint64", {}, "tensor([18446744073709551615], dtype=candelabra.uint64)"),
    ([1+2j, -0.5-1.25j], "complex64", {}, "tensor([ 1.0000+2.0000j, -0.5000-1.2500j])"),
    ([1+2j, 3-4j], "complex128", {}, "tensor([1.+2.j, 3.-4.j], dtype=candelabra.complex128)"),
    (2.5, "float32", {}, "tensor(2.5000)"),
    (7, "int64", {}, "tensor(7)"),
    (1-1j, "complex64", {}, "tensor(1.-1.j)"),
    (nan, "float32", {}, "tensor(nan)"),
    ([], "float32", {}, "tensor([])"),
    ([], "int64", {}, "tensor([], dtype=candelabra.int64)"),
    ([[], []], "float32", {}, "tensor([], size=(2, 0))"),
    (
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "int64", {},
        "tensor([[[1, 2],\n"
        "         [3, 4]],\n"
        "\n"
        "        [[5, 6],\n"
        "         [7, 8]]])",
    ),
    (
        list(range(30)), "int64", {},
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (
        [i / 7 for i in range(20)], "float32", {},
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
        "        2.5714, 2.7143])",
    ),
    (list(range(1001)), "int64", {}, "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        [[i * 100 + j for j in range(100)] for i in range(100)], "int64", {},
        "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
        "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
        "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
        "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])",
    ),
    (
        [[[i, j] for j in range(300)] for i in range(2)], "float32", {},
        "tensor([[[  0.,   0.],\n"
        "         [  0.,   1.],\n"
        "         [  0.,   2.],\n"
        "         ...,\n"
        "         [  0., 297.],\n"
        "         [  0., 298.],\n"
        "         [  0., 299.]],\n"
        "\n"
        "        [[  1.,   0.],\n"
        "         [  1.,   1.],\n"
        "         [  1.,   2.],\n"
        "         ...,\n"
        "         [  1., 297.],\n"
        "         [  1., 298.],\n"
        "         [  1., 299.]]])",
    ),
    ([1.23456789], "float64", {"precision": 8}, "tensor([1.23456789], dtype=candelabra.float64)"),
    ([1., 2.], "float32", {"sci_mode": True}, "tensor([1.0000e+00, 2.0000e+00])"),
    ([1e-9, 1e9], "float32", {"sci_mode": False}, "tensor([         0.0000, 1000000000.0000])"),
    (list(range(10)), "int64", {"threshold": 5, "edgeitems": 2}, "tensor([0, 1,  ..., 8, 9])"),
    (list(range(10)), "int64", {"threshold": 5, "edgeitems": 0}, "tensor([...], size=(10,))"),
    (
        list(range(20)), "int64", {"linewidth": 30},
        "tensor([ 0,  1,  2,  3,  4,\n"
        "         5,  6,  7,  8,  9,\n"
        "        10, 11, 12, 13, 14,\n"
        "        15, 16, 17, 18, 19])",
    ),
    (
        [[0.125] * 9] * 2, "float32", {"profile": "short"},
        "tensor([[0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12],\n"
        "        [0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12]])",
    ),
    (list(range(1010))[:9], "float32", {"profile": "full", "threshold": 3}, "tensor([0., 1., 2.,  ..., 6., 7., 8.])"),
    ([1e-40, 1.], "float32", {}, "tensor([9.9999e-41, 1.0000e+00])"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "dtype", "options", "text"), CASES, ids=range(len(CASES)))
def test_the_format_is_that_of_pytorch(values: Any, dtype: str, options: dict[str, Any], text: str) -> None:
    """Numbers, widths, scientific notation, summaries, brackets, line breaks and suffixes are PyTorch's."""
    with printoptions(**options):
        assert repr(tensor(values, dtype)) == text


def test_suffixes_of_the_graph() -> None:
    """A leaf shows requires_grad, a result its node; printing is not recorded."""
    x = cd.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward>)"
    assert repr((x * 2)[0].detach()) == "tensor(2.)"
    y = cd.zeros(3)
    node, version = y._node, y._version
    repr(y)
    assert (y._node, y._version) == (node, version)


def test_a_view_is_printed_as_it_is_now() -> None:
    """A view shows later writes to its base, according to its strides."""
    base = cd.zeros(2, 3)
    view = base.t()
    base[0].add_(1)
    assert repr(view) == "tensor([[1., 0.],\n        [1., 0.],\n        [1., 0.]])"


def test_a_suffix_that_does_not_fit_goes_to_the_next_line() -> None:
    """The width of a line is an option."""
    with printoptions(linewidth=30):
        assert repr(tensor([1, 2, 3], "int16")) == "tensor([1, 2, 3],\n       dtype=candelabra.int16)"


def test_only_the_edges_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the elements that are shown are copied to the host."""
    x = cd.zeros(1000, 1000)
    backend = x._instance.backend
    read: list[int] = []
    to_host = backend.to_host
    monkeypatch.setattr(backend, "to_host", lambda payload: read.append(payload.size) or to_host(payload))
    repr(x)
    assert sum(read) == 36


def test_without_a_place_in_memory() -> None:
    """An uninitialised tensor has a representation instead of an error."""
    assert tensor_repr(object.__new__(cd.Tensor)) == "tensor(<not initialised>)"


def test_what_cannot_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a device that fails to read is part of the text."""
    x = cd.zeros(2)

    def broken(payload: Any) -> Any:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(x._instance.backend, "to_host", broken)
    assert repr(x) == "tensor(<not readable: RuntimeError: the device is gone>, size=(2,))"


def test_subclasses_print_under_their_name() -> None:
    """A user's subclass has its own name."""

    class Masked(cd.Tensor):
        pass

    assert repr(cd.ones(2).as_subclass(Masked)) == "Masked([1., 1.])"


def test_the_default_dtype_goes_without_saying() -> None:
    """The default dtype is omitted."""
    cd.set_default_dtype(cd.float64)
    try:
        assert repr(tensor([1], "float64")) == "tensor([1.])"
        assert repr(tensor([1], "float32")) == "tensor([1.], dtype=candelabra.float32)"
    finally:
        cd.set_default_dtype(cd.float32)


def test_options_are_restored() -> None:
    """The context manager restores the previous options, also after an error; every call resets ``sci_mode``."""
    before = get_printoptions()
    with printoptions(precision=2, sci_mode=True):
        assert get_printoptions()["precision"] == 2
    assert get_printoptions() == before
    with pytest.raises(KeyError, match="x"), printoptions(precision=2):
        {}["x"]
    assert get_printoptions() == before
    set_printoptions(sci_mode=True)
    set_printoptions(profile="default")
    assert get_printoptions() == before


def test_unknown_profiles() -> None:
    """The error names an unknown profile, and nothing changes."""
    before = get_printoptions()
    with pytest.raises(ValueError, match='profile must be "default", "short" or "full", got \'long\''):
        set_printoptions(precision=1, profile="long")
    assert get_printoptions() == before

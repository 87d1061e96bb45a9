"""Conversion of tensors to and from bytes, NumPy, DLPack, deep copies and pickles."""

import copy
import pickle  # noqa: TID251 - what is unpickled here was pickled here
import sys
from typing import Any

import candelabra as cd
import ml_dtypes
import numpy as np
import pytest
from candelabra._interchange.copying import rebuilt
from candelabra._interchange.host import tensor_from_bytes, tensor_to_bytes
from candelabra.dtypes import ALL

NUMPY = {d: np.dtype(ml_dtypes.bfloat16 if d.name == "bfloat16" else d.name) for d in ALL}
LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[:, ::2],
    "inner": lambda a: a[1:, 1:],
    "expanded": lambda a: a[:1, :1],
    "0-d": lambda a: a[0, 1],
    "empty": lambda a: a[:0],
}


def array(d: cd.dtype) -> Any:
    """Return twelve different numbers (two for bool)."""
    return np.arange(12).reshape(3, 4).astype(NUMPY[d])


# -- bytes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_are_in_c_order_whatever_the_layout(d: cd.dtype, layout: str) -> None:
    """A tensor's bytes are those of NumPy's C-ordered copy, and restore the same tensor."""
    want = np.asarray(LAYOUTS[layout](array(d)))
    data = tensor_to_bytes(LAYOUTS[layout](cd.from_numpy(array(d))))
    assert data == want.tobytes()
    assert tensor_from_bytes(data, d.name, want.shape).tolist() == want.tolist()


def test_bytes_must_fit() -> None:
    """The errors of too few bytes and unknown dtypes say what was expected."""
    with pytest.raises(ValueError, match=r"a tensor of shape \[2\] and candelabra\.float32 takes 8 bytes, got 4"):
        tensor_from_bytes(b"1234", "float32", (2,))
    with pytest.raises(ValueError, match="dtype 'float7' is not one of bool, uint8"):
        tensor_from_bytes(b"", "float7", (0,))


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("device", ["lantern:1", "ember:0"])
def test_bytes_of_other_devices(device: str) -> None:
    """Views on any device give their own elements, also after a write to their base."""
    x = cd.arange(6, dtype=cd.int32, device=device).view(2, 3)
    column = x[:, 1]
    x[0, 1] = 9
    assert tensor_to_bytes(column) == np.array([9, 4], "i4").tobytes()
    assert str(tensor_from_bytes(b"\1\2", "uint8", (2,), device).device) == device


# -- NumPy ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_numpy_shares_memory(d: cd.dtype, layout: str) -> None:
    """The tensor has the array's shape, strides and dtype, and both see each other's writes."""
    whole = array(d)
    part = LAYOUTS[layout](whole)
    part = whole[0, 1:2].reshape(()) if layout == "0-d" else part
    restored = cd.from_numpy(part)
    assert restored.dtype is d
    assert restored.shape == part.shape
    assert restored.tolist() == part.tolist()
    if restored.numel():
        restored.fill_(1)
        assert (np.asarray(part, dtype="c16") == 1).all()
        part[...] = 0
        assert not restored.any().item()


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_shares_memory(d: cd.dtype, layout: str) -> None:
    """``x.numpy()`` has the same strides over the tensor's memory; bfloat16 is that of ``ml_dtypes``."""
    x = LAYOUTS[layout](cd.tensor(array(d)))
    restored = x.numpy()
    assert isinstance(restored, np.ndarray)
    assert restored.dtype == NUMPY[d]
    assert restored.shape == tuple(x.shape)
    if x.numel():
        restored[...] = 1
        assert (np.asarray(x.tolist()) == 1).all()
        assert x.data_ptr() == restored.__array_interface__["data"][0]


def test_fortran_order_is_kept_and_viewed_rightly() -> None:
    """An array in Fortran order keeps its strides; offsets of its views start at its own first element."""
    memory = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    x = cd.from_numpy(memory)
    assert x.stride() == (1, 2)
    assert x[1].tolist() == [3.0, 4.0, 5.0]
    assert x.t().contiguous().tolist() == memory.T.tolist()
    assert x[:, 1:][1:].tolist() == [[4.0, 5.0]]


def test_parts_of_foreign_complex_memory_are_views() -> None:
    """Views of the real and imaginary parts are real numbers if the memory belongs to no array and has gaps."""
    memory = bytearray(np.arange(24, dtype="float32").tobytes())
    x = cd.from_numpy(np.ndarray((3, 2), "complex64", memory, 0, (32, 16)))
    parts = cd.view_as_real(x).as_strided((2,), (8,), 1)
    assert (parts.dtype, parts.tolist()) == (cd.float32, [1.0, 9.0])
    parts.fill_(-1)
    assert x.imag[:2, 0].tolist() == [-1.0, -1.0]


def test_numpys_functions_take_tensors() -> None:
    """``numpy.asarray`` shares memory, and converts if a dtype is passed; mixed expressions give tensors."""
    x = cd.tensor([1.0, 2.0])
    shared = np.asarray(x)
    shared[0] = 7
    assert x[0].item() == 7.0
    assert np.asarray(x, dtype="f8").dtype == np.float64
    assert np.array(x).sum() == 9.0
    assert np.asarray(x.bfloat16()).dtype == ml_dtypes.bfloat16
    assert x.__array__(copy=True) is not shared
    assert x.__array_interface__["shape"] == (2,)
    with pytest.raises(AttributeError, match="only tensors on the host, without grad, of a dtype of NumPy's have"):
        _ = x.bfloat16().__array_interface__
    with pytest.raises(ValueError, match="Unable to avoid copy while creating an array as requested: float32 to int32"):
        x.__array__(np.dtype("i4"), copy=False)


def test_numpy_refuses_a_tensor_that_requires_grad() -> None:
    """The gradient would be lost silently; ``force=True`` requests it explicitly."""
    x = cd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad\. Use"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.asarray(x)
    assert not hasattr(x, "__array_interface__")
    assert x.numpy(force=True).tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("lantern")
def test_numpy_of_another_device_must_be_forced() -> None:
    """Device memory is copied to the host only on request."""
    x = cd.arange(4, device="lantern").view(2, 2).t()
    with pytest.raises(TypeError, match=r"can't convert lantern:0 device type tensor to numpy"):
        x.numpy()
    forced = x.numpy(force=True)
    assert forced.tolist() == [[0, 2], [1, 3]]
    forced[0, 0] = 5
    assert x.tolist() == [[0, 2], [1, 3]]
    assert not hasattr(x, "__array_interface__")


def test_read_only_array_is_copied_with_a_warning() -> None:
    """A tensor is always writable, so a read-only array is copied."""
    constant = np.broadcast_to(np.arange(3), (2, 3))
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        x = cd.from_numpy(constant)
    x[0, 0] = 9
    assert constant.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert cd.as_tensor(constant).tolist() == constant.tolist()


@pytest.mark.parametrize(
    ("restored", "error", "words"),
    [
        (lambda: [1], TypeError, r"expected np.ndarray \(got list\)"),
        (lambda: np.float32(1), TypeError, r"expected np.ndarray \(got numpy.float32\)"),
        (lambda: np.array(["a"]), TypeError, r"can't convert np.ndarray of type numpy.str_. The only supported types"),
        (lambda: np.array([object()]), TypeError, r"can't convert np.ndarray of type numpy.object_"),
        (lambda: np.arange(3)[::-1], ValueError, r"At least one stride in the given numpy array is negative"),
        (lambda: np.arange(3).astype(">i4"), ValueError, r"given numpy array has byte order different"),
        (
            lambda: np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")])["b"],
            ValueError,
            r"given numpy array strides not a multiple of the element byte size",
        ),
    ],
    ids=["list", "scalar", "strings", "objects", "negative", "foreign", "unaligned"],
)
def test_from_numpy_refuses_what_cannot_be_shared(restored: Any, error: type[Exception], words: str) -> None:
    """Lists, scalars, strings, unsupported strides and foreign byte order raise PyTorch's errors."""
    with pytest.raises(error, match=words):
        cd.from_numpy(restored())


def test_copies_of_arrays_in_any_layout() -> None:
    """``tensor(array)`` copies, so it supports negative strides and read-only memory."""
    assert cd.tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0]
    assert cd.tensor(np.broadcast_to(np.int8(1), (2,))).tolist() == [1, 1]
    assert cd.tensor(np.array(2.5)).shape == ()
    assert cd.tensor(np.zeros((2, 0))).shape == (2, 0)
    assert cd.tensor(array(cd.bfloat16)).dtype is cd.bfloat16


def test_array_outlives_its_tensor_and_tensor_its_array() -> None:
    """The remaining object keeps the memory alive."""
    restored = cd.arange(1000).numpy()
    assert restored.sum() == 499500
    assert cd.from_numpy(np.arange(1000))[::2].sum().item() == 249500


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes have a buffer from 3.12 on (PEP 688)")
def test_buffer_protocol() -> None:
    """``memoryview(x)`` exposes the tensor's memory."""
    x = cd.arange(6, dtype=cd.int32).view(2, 3)
    memoryview(x)[0, 1] = 9
    assert x.tolist() == [[0, 9, 2], [3, 4, 5]]


def test_buffer_of_python_311() -> None:
    """The method behind ``memoryview(x)`` in Python 3.12 exists in all versions."""
    x = cd.arange(3, dtype=cd.int32)
    x.__buffer__(0)[0] = 9
    assert x.tolist() == [9, 1, 2]


# -- DLPack -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", [d for d in ALL if d.name != "bfloat16"], ids=lambda d: d.name)
def test_dlpack_shares_memory_with_numpy(d: cd.dtype) -> None:
    """``numpy.from_dlpack(x)`` and ``from_dlpack(array)`` do not copy, whatever the layout."""
    x = cd.tensor(array(d)).t()[1:]
    there = np.from_dlpack(x)
    x.fill_(1)
    assert (there == 1).all()
    assert there.strides == x.numpy().strides
    memory = array(d)
    here = cd.from_dlpack(memory.T)
    memory[...] = 1
    assert (np.asarray(here.tolist()) == 1).all()
    assert x.__dlpack_device__() == (1, 0)


class Exporter:
    """An object of another library that implements only the protocol."""

    def __init__(self, tensor: cd.Tensor, device: tuple[int, int] = (1, 0)) -> None:
        self.tensor = tensor
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)], ids=str)
def test_dlpack_shares_memory_with_strangers(d: cd.dtype, shape: tuple[int, ...]) -> None:
    """Any object with the protocol is imported without a copy, also in bfloat16, and kept alive."""
    x = cd.zeros(shape, dtype=d)
    y = cd.from_dlpack(Exporter(x))
    assert y.dtype is d
    assert y.shape == shape
    x.fill_(1)
    del x
    assert y.equal(cd.ones(shape, dtype=d))
    copied = cd.from_dlpack(Exporter(y), copy=True)
    y.fill_(0)
    assert copied.equal(cd.ones(shape, dtype=d))


def test_dlpack_refuses_gradients_and_strangers() -> None:
    """Tensors that require grad, and memory of an unknown device, are refused."""
    with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach\(\)"):
        cd.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="no installed backend takes memory of DLPack device type 99, id 0"):
        cd.from_dlpack(Exporter(cd.ones(2), (99, 0)))
    with pytest.raises(TypeError, match=r"from_dlpack\(\) takes an object with __dlpack__"):
        cd.from_dlpack(3)


def test_read_only_memory_is_copied() -> None:
    """Read-only memory is copied, or is an error if copies are forbidden."""

    class Constant:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **options: Any) -> Any:
            constant = np.arange(3)
            constant.flags.writeable = False
            return constant.__dlpack__(max_version=(1, 0))

    x = cd.from_dlpack(Constant())
    x[0] = 9
    assert x.tolist() == [9, 1, 2]
    with pytest.raises(BufferError, match="the source is read-only and copy=False does not allow a copy"):
        cd.from_dlpack(Constant(), copy=False)


@pytest.mark.usefixtures("lantern")
def test_dlpack_onto_another_device() -> None:
    """``device=`` transfers the shared data, and ``copy=False`` forbids that; a device without DLPack is an error."""
    moved = cd.from_dlpack(np.arange(3), device="lantern")
    assert str(moved.device) == "lantern:0"
    with pytest.raises(ValueError, match=r"from_dlpack\(\): moving from .* to lantern:0 requires a copy"):
        cd.from_dlpack(np.arange(3), device="lantern", copy=False)
    with pytest.raises(BufferError, match="device 'lantern' does not export DLPack"):
        moved.__dlpack__()


# -- copies and pickles -----------------------------------------------------------------------------------------------
def test_deepcopy_is_a_leaf_with_memory_of_its_own() -> None:
    """Values, ``requires_grad``, ``grad`` and attributes are copied."""
    x = cd.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    x.note = ["kept"]  # type: ignore[attr-defined]
    y = copy.deepcopy(x)
    assert y.is_leaf
    assert y.requires_grad
    assert y.grad is not None
    assert y.grad is not x.grad
    assert y.grad.tolist() == [3.0, 3.0]
    assert y.note == ["kept"]
    assert y.note is not x.note  # type: ignore[attr-defined]
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("device", [None, "lantern:1", "ember:0"])
def test_deepcopy_keeps_who_shares_with_whom(device: str | None) -> None:
    """Tensors that share memory share it in the copy too; the original does not change."""
    base = cd.zeros(2, 3, device=device)
    copied = copy.deepcopy([base, base[0], base, base.t()])
    copied[0][0, 1] = 5
    assert copied[0] is copied[2]
    assert copied[1].tolist() == [0.0, 5.0, 0.0]
    assert copied[3].tolist() == [[0.0, 0.0], [5.0, 0.0], [0.0, 0.0]]
    assert base.tolist() == [[0.0] * 3] * 2


def test_deepcopy_of_a_leaf_and_its_detached_twin() -> None:
    """A leaf and a detached view of it share memory in the copy, and only the leaf requires grad."""
    leaf = cd.ones(2, requires_grad=True)
    first, second = copy.deepcopy([leaf, leaf.detach()])
    assert first.requires_grad
    assert not second.requires_grad
    assert second.data_ptr() == first.data_ptr()


def test_deepcopy_refuses_computed_tensors() -> None:
    """A tensor with a history is not a leaf and cannot be deep-copied."""
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(cd.ones(2, requires_grad=True) * 2)


def test_shallow_copy_shares_memory() -> None:
    """``copy.copy`` returns a second tensor with the same memory."""
    x = cd.ones(2, requires_grad=True)
    y = copy.copy(x)
    assert y is not x
    assert y.requires_grad
    assert y.data_ptr() == x.data_ptr()


class Named(cd.Tensor):
    """A subclass at module level, where pickle finds it."""


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_pickle_brings_back_values_class_and_attributes(d: cd.dtype) -> None:
    """A view is pickled with its own elements only; a subclass is restored as such."""
    x = cd.tensor(array(d)).t()[1:].as_subclass(Named)
    x.note = "kept"
    y = pickle.loads(pickle.dumps(x))  # noqa: S301
    assert type(y) is Named
    assert y.note == "kept"
    assert y.dtype is d
    assert y.is_contiguous()
    assert y.tolist() == x.tolist()


def test_pickle_is_as_small_as_the_view() -> None:
    """The pickle of one row does not contain the whole tensor; ``requires_grad`` is kept."""
    row = cd.zeros(1000, 10)[3].requires_grad_()
    data = pickle.dumps(row)
    assert len(data) < 500
    assert pickle.loads(data).requires_grad  # noqa: S301


@pytest.mark.usefixtures("lantern")
def test_pickle_remembers_the_device() -> None:
    """A tensor is restored on its device."""
    x = cd.arange(3, device="lantern:1")
    y = pickle.loads(pickle.dumps(x))  # noqa: S301
    assert y.device == x.device
    assert y.tolist() == [0, 1, 2]


def test_pickle_makes_nothing_but_tensors() -> None:
    """The function that pickles call refuses other classes than tensors."""
    with pytest.raises(TypeError, match="a pickled tensor names the class dict, which is no Tensor"):
        rebuilt(dict, b"", "float32", (0,), "x", False, {})


def test_storages_describe_the_memory_of_a_tensor_and_its_views() -> None:
    """Views share a storage, whose size is that of the whole memory, in bytes or in elements."""
    x = cd.arange(6.0).reshape(2, 3)
    view, other = x.t()[1:], x.clone()
    assert view.untyped_storage() == x.untyped_storage() != other.untyped_storage()
    assert view.untyped_storage() != x.storage()
    assert len({view.storage(), x.storage(), other.storage()}) == 2
    assert view.untyped_storage().data_ptr() == x.data_ptr() != view.data_ptr()
    assert view.untyped_storage().nbytes() == view.untyped_storage().size() == 24
    assert (view.storage().size(), len(view.storage()), view.storage().dtype) == (6, 6, cd.float32)
    assert view.storage().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert view.storage().untyped() == x.untyped_storage()
    assert view.storage().device == x.device
    assert repr(x.untyped_storage()) == "<UntypedStorage of 24 bytes on cpu>"
    assert (cd.ones(0).untyped_storage().nbytes(), cd.ones(0).untyped_storage().data_ptr()) == (0, 0)
    assert cd.ones(1).expand(4).storage().size() == 1

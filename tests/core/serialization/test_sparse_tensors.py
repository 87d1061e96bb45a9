"""Sparse tensors in files of both formats."""

from __future__ import annotations

import io
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._sparse.construction import loaded
from candelabra.serialization import FileFormatError


def back(obj: object, format: str, **options: Any) -> Any:
    """Return what is loaded from a file with ``obj``."""
    file = io.BytesIO()
    cd.save(obj, file, format=format)
    file.seek(0)
    return cd.load(file, **options)


def example() -> Any:
    """Return a sparse tensor with one dense dim, of which one position occurs twice."""
    return cd.sparse_coo_tensor([[2, 0, 2], [1, 1, 1]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 4, 2))


@pytest.mark.parametrize("format", ["safetensors", "pt"])
@pytest.mark.parametrize("is_coalesced", [False, True])
def test_a_sparse_tensor_comes_back(format: str, is_coalesced: bool) -> None:
    """Its indices, values, shape and whether it is coalesced, alone and in containers with dense tensors."""
    tensor = example().coalesce() if is_coalesced else example()
    for found in (back(tensor, format), back({"a": [tensor, cd.ones(2)]}, format)["a"][0]):
        assert found.is_sparse
        assert found.is_coalesced() is is_coalesced
        assert found.shape == (3, 4, 2)
        np.testing.assert_array_equal(np.asarray(found._indices()), np.asarray(tensor._indices()))
        np.testing.assert_array_equal(np.asarray(found._values()), np.asarray(tensor._values()))


@pytest.mark.parametrize("format", ["safetensors", "pt"])
def test_sparse_tensors_without_elements_or_sparse_dims_come_back(format: str) -> None:
    """An empty one, and the sparse form of a scalar."""
    assert back(cd.sparse_coo_tensor((3, 4)), format)._nnz() == 0
    assert back(cd.tensor(2.0).to_sparse(), format).to_dense().item() == 2


def test_names_select_sparse_tensors_of_a_pytorch_file() -> None:
    """A sparse tensor has the name of its path, as dense ones."""
    found = back({"a": example(), "b": cd.ones(2)}, "pt", names=["a"])
    assert list(found) == ["a"]
    assert found["a"].is_sparse


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1, cd.ones(1), [2], True), "without indices, values or shape"),
        ((cd.zeros(1, 1), cd.ones(1), [2], True), "of another kind"),
        ((cd.tensor([[5]]), cd.ones(1), [2], True), "size is inconsistent with indices"),
        ((cd.tensor([[1, 0]]), cd.ones(2), [2], True), "not sorted, or not distinct"),
    ],
)
def test_indices_and_values_that_do_not_fit_are_refused(arguments: tuple[Any, ...], text: str) -> None:
    """Indices of a file are compared with the shape before any operator uses them."""
    with pytest.raises(ValueError, match=text):
        loaded(*arguments)


def damaged(before: bytes, after: bytes) -> io.BytesIO:
    """Return a file with a sparse tensor and other bytes in its pickle."""
    import zipfile

    from candelabra._serialization.torch_file import ZIP_START

    file, out = io.BytesIO(), io.BytesIO()
    cd.save(example(), file, format="pt")
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(out, "w") as changed:
        for info in archive.infolist():
            changed.writestr(info.filename, archive.read(info.filename).replace(before, after))
    assert out.getvalue().startswith(ZIP_START)
    out.seek(0)
    return out


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (b"torch.sparse_coo", b"torch.sparse_csr", "the layout 'torch.sparse_csr', which candelabra lacks"),
        (b"torch.sparse_coo", b"torch.strided\x00\x00\x00", "which candelabra lacks"),
        ((3).to_bytes(4, "little") + b"J" + (4).to_bytes(4, "little"),
         (1).to_bytes(4, "little") + b"J" + (4).to_bytes(4, "little"), "indices and values that fit"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(before: bytes, after: bytes, text: str) -> None:
    """Other layouts, and shapes that do not contain the indices."""
    with pytest.raises(FileFormatError, match=text):
        cd.load(damaged(before, after))

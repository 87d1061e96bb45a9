"""A strided view of a block of bytes, described by untrusted numbers from a file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from candelabra._serialization.stored import (
    ITEM_SIZE,
    MAX_EXPANDED_BYTES,
    StoredTensor,
    contiguous_strides,
    stored_tensor,
    swap_bytes,
)
from candelabra.errors import FileFormatError
from hypothesis import given
from hypothesis import strategies as st

_WORD = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex64", "complex128"])
@given(
    shape=st.lists(st.integers(0, 4), max_size=4),
    data=st.data(),
)
def test_gather_agrees_with_numpy(dtype: str, shape: list[int], data: st.DataObject) -> None:
    """The bytes equal NumPy's copy for any strides and offset."""
    strides = data.draw(st.lists(st.integers(0, 7), min_size=len(shape), max_size=len(shape)))
    offset = data.draw(st.integers(0, 5))
    size = ITEM_SIZE[dtype]
    storage = bytes(np.arange((offset + sum(4 * s for s in strides) + 1) * size, dtype="uint32").astype("uint8"))
    elements = np.frombuffer(storage, _WORD[size])[offset:]
    expected = np.lib.stride_tricks.as_strided(elements, shape, [s * size for s in strides])
    stored = StoredTensor(dtype, tuple(shape), tuple(strides), offset, storage)
    assert stored.contiguous_bytes() == expected.tobytes()
    assert stored.nbytes == expected.nbytes


def test_a_long_dimension_is_copied_at_once() -> None:
    """A column-major matrix with a million rows is copied without a loop over its rows."""
    matrix = np.arange(2_000_000, dtype="float32").reshape(2, 1_000_000)
    stored = StoredTensor("float32", (1_000_000, 2), (1, 1_000_000), 0, matrix.tobytes())
    assert stored.contiguous_bytes() == matrix.T.tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "complex128"])
def test_many_dims_that_overlap_agree_with_numpy(dtype: str) -> None:
    """Overlapping, repeated and merged dims come together, in more copies than are prepared at once."""
    shape, strides = (2,) * 17 + (3, 2, 2), (1, 5, 0, 2, 6, 3, 1, 0, 12, 6, 3, 1, 2, 0, 9, 4, 2, 7, 1, 0)
    size = ITEM_SIZE[dtype]
    storage = np.arange(100 * size, dtype="uint8")
    elements = np.frombuffer(storage.tobytes(), _WORD[size])[1:]
    expected = np.lib.stride_tricks.as_strided(elements, shape, [s * size for s in strides])
    stored = StoredTensor(dtype, shape, strides, 1, storage.tobytes())
    assert 4096 < stored.copies <= 65536
    assert stored.contiguous_bytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(3, 5), (1000, 2), (2, 1000), (500, 2, 3)])
def test_repeated_elements_and_blocks_agree_with_numpy(shape: tuple[int, ...]) -> None:
    """A few long blocks and many short ones are repeated in different ways."""
    strides = (2, 0, 1)[: len(shape)]
    storage = bytes(np.arange(2002, dtype="uint16").astype("uint8"))
    expected = np.lib.stride_tricks.as_strided(np.frombuffer(storage, "uint8"), shape, strides)
    assert StoredTensor("uint8", shape, strides, 0, storage).contiguous_bytes() == expected.tobytes()


def test_a_storage_that_ends_within_an_element_is_read_up_to_it() -> None:
    """Bytes after the last complete element are ignored."""
    assert StoredTensor("int16", (1,), (3,), 1, b"abcde").contiguous_bytes() == b"cd"
    assert StoredTensor("int16", (2, 1), (0, 1), 1, b"abcde").contiguous_bytes() == b"cdcd"


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (StoredTensor("float8", (1,), (1,), 0, b"ab"), "dtype 'float8' is not one of bool, uint8, int8"),
        (StoredTensor("int8", (1,) * 65, (1,) * 65, 0, b"ab"), "65 dimensions are more than 64"),
        (StoredTensor("int8", (1, 1), (1,), 0, b"ab"), "shape (1, 1) and strides (1,) differ in length"),
        (StoredTensor("int8", (-1,), (1,), 0, b"ab"), "shape (-1,), strides (1,) and offset 0 must not be negative"),
        (StoredTensor("int8", (2,), (-1,), 1, b"ab"), "shape (2,), strides (-1,) and offset 1 must not be negative"),
        (StoredTensor("int8", (1,), (1,), -1, b"ab"), "shape (1,), strides (1,) and offset -1 must not be negative"),
        (StoredTensor("int8", (3,), (1,), 0, b"ab"), "reach element 2 of a storage of 2"),
        (StoredTensor("int16", (2,), (1,), 0, b"abc"), "reach element 1 of a storage of 1"),
        (StoredTensor("int8", (1,), (1,), 2, b"ab"), "reach element 2 of a storage of 2"),
        (StoredTensor("int8", (2, 2**61), (1, 2**61), 0, b"ab"), "of a storage of 2"),
        (
            StoredTensor("int8", (2**31, 2**31), (0, 0), 0, b"ab"),
            f"takes {2**62} bytes, expanded from a storage of 2; the limit for that is {MAX_EXPANDED_BYTES}",
        ),
        (StoredTensor("int8", (2**62, 2), (0, 0), 0, b"ab"), f"shape ({2**62}, 2) of int8 takes 2**63 bytes or more"),
        (StoredTensor("int32", (2**61, 0), (0, 0), 0, b""), f"shape ({2**61}, 0) of int32 takes 2**63 bytes or more"),
        (
            StoredTensor("int8", (2,) * 18, (1,) * 18, 0, b"a" * 100),
            "overlap in 131072 pieces of a storage of 100; the limit for that is 65536",
        ),
        (
            StoredTensor("int8", (1,), (1,), 0, b"a", True),
            "requires_grad is for floating and complex numbers, not int8",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_a_byte_is_copied(stored: StoredTensor, message: str) -> None:
    """Each number in a file has a limit, and the error names it."""
    with pytest.raises(ValueError, match=re.escape(message)):
        stored.contiguous_bytes()


def test_a_bool_is_0_or_1() -> None:
    """Any other byte would be a bool that is neither True nor False on its device."""
    assert StoredTensor("bool", (2,), (1,), 0, b"\0\1").contiguous_bytes() == b"\0\1"
    with pytest.raises(ValueError, match="a bool must be stored as 0 or 1"):
        StoredTensor("bool", (2,), (1,), 0, b"\0\2").contiguous_bytes()


def test_a_reader_s_tensor_names_the_file_when_it_does_not_fit() -> None:
    """The limits are the same, and the error names the file."""
    with pytest.raises(
        FileFormatError, match=r"cannot read x\.pt: expected a tensor inside its storage, got shape"
    ) as e:
        stored_tensor("x.pt", "int8", (3,), (1,), 0, b"ab")
    assert (e.value.file, e.value.expected, e.value.hint) == ("x.pt", "a tensor inside its storage", "")


def test_strides_of_c_order() -> None:
    """The last dimension has stride 1."""
    assert contiguous_strides(()) == ()
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
    assert contiguous_strides((2, 0, 4)) == (4, 4, 1)


@pytest.mark.parametrize(
    ("dtype", "swapped"),
    [("int8", b"abcdefgh"), ("int16", b"badcfehg"), ("float64", b"hgfedcba"), ("complex64", b"dcbahgfe")],
)
def test_bytes_are_swapped_within_a_number(dtype: str, swapped: bytes) -> None:
    """A complex number consists of two numbers, which keep their order."""
    assert swap_bytes(b"abcdefgh", dtype) == swapped


def test_bytes_after_the_last_number_stay() -> None:
    """A storage of bytes may have tensors of wider numbers."""
    assert swap_bytes(b"abcde", "int16") == b"badce"
    assert swap_bytes(b"a", "float64") == b"a"

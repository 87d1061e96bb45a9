"""Conjugate transposes."""

from __future__ import annotations

import candelabra as cd
import pytest


def test_the_conjugate_transpose_of_matrices_and_numbers() -> None:
    """Other ranks are refused, and the error suggests a function for batches."""
    z = cd.tensor([[1 + 2j, 3j]])
    assert z.H.tolist() == [[1 - 2j], [-3j]]
    assert cd.tensor(1 + 2j).H.item() == 1 - 2j
    with pytest.raises(RuntimeError, match=r"\(2-D tensors\). Got 3-D tensor. For batches of matrices, consider"):
        cd.ones(1, 2, 3).H  # noqa: B018
    with pytest.raises(RuntimeError, match=r"Got 1-D tensor\.$"):
        cd.ones(1).H  # noqa: B018

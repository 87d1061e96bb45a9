"""Creation of arrays on OpenCL devices."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def full(*shape: int, device: cd.device) -> cd.Tensor:
    """Return a tensor of twos."""
    return cd.full(shape, 2.0, device=device)


@pytest.mark.parametrize("make", [cd.zeros, cd.ones, cd.empty, full])
def test_negative_sizes_are_refused(device: cd.device, make: Any) -> None:
    """Also two of them, whose product is positive."""
    for shape in ((-2, -3), (-2, 3)):
        with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -2: \[-2, -?3\]"):
            make(*shape, device=device)
    with pytest.raises(RuntimeError, match="negative dimension -2"):
        cd.ones(2, device=device).new_zeros(-2, -3)


@pytest.mark.parametrize("form", ["device", "lanes"])
@pytest.mark.parametrize("offset", [-9, -2, 0, 3, 9])
def test_the_indices_of_triangles_are_numpys(request: pytest.FixtureRequest, form: str, offset: int) -> None:
    """Rows may be empty or complete, at the beginning and at the end, in matrices of all proportions."""
    device = request.getfixturevalue(form)
    for row, col in ((3, 3), (2, 7), (7, 2), (1, 1), (0, 2), (2, 0)):
        for ours, numpys in ((cd.tril_indices, np.tril_indices), (cd.triu_indices, np.triu_indices)):
            actual = ours(row, col, offset, device=device)
            np.testing.assert_array_equal(actual.numpy(force=True), np.array(numpys(row, offset, col)).reshape(2, -1))

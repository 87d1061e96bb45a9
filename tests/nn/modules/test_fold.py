"""Fold and Unfold as modules."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn

from tests.nn.network_samples import array, normal, tensor


def test_unfold_extracts_windows_and_fold_adds_them() -> None:
    """A column is a window, flattened; folding adds each element as often as windows contain it."""
    x = normal(2, 3, 5, 6)
    unfold, fold = nn.Unfold((2, 3), stride=(2, 1), padding=(1, 0)), nn.Fold((5, 6), (2, 3), 1, (1, 0), (2, 1))
    columns = array(unfold(tensor(x)))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)])
    windows = [padded[:, :, i : i + 2, j : j + 3].reshape(2, -1) for i in (0, 2, 4) for j in range(4)]
    assert columns.tolist() == np.stack(windows, -1).tolist()
    counts = array(fold(unfold(tensor(np.ones_like(x)))))
    np.testing.assert_allclose(array(fold(tensor(columns))), x * counts, rtol=1e-12)
    assert unfold(tensor(x[1])).tolist() == columns[1].tolist()
    assert fold(tensor(columns[:0])).shape == (0, 3, 5, 6)


def test_printed_forms() -> None:
    """The printed form has all arguments, as PyTorch's."""
    assert repr(nn.Unfold(2)) == "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)"
    assert repr(nn.Fold((4, 5), 2, stride=(2, 1))) == (
        "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=(2, 1))"
    )
    assert dict(nn.Fold(4, 2).state_dict()) == {}


def test_sizes_that_do_not_fit_are_refused() -> None:
    """Columns whose number does not match the windows raise RuntimeError."""
    with pytest.raises(RuntimeError, match="expected size of input's dimension 2 to match the calculated number"):
        nn.Fold((4, 4), 2)(cd.ones(1, 4, 5))

"""Complex numbers: the angle, the parts."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest


def test_the_angle_of_real_numbers() -> None:
    """0 or pi, at the infinities too, and NaN of NaN."""
    got = cd.angle(cd.tensor([np.inf, -np.inf, 1.0, -2.0, np.nan])).tolist()
    assert got[:4] == pytest.approx([0.0, np.pi, 0.0, np.pi])
    assert np.isnan(got[4])


def test_parts_of_complex_numbers_are_functions() -> None:
    """``real`` and ``imag``, views as the attributes are."""
    z = cd.tensor([1 + 2j])
    cd.real(z).fill_(5)
    assert z.tolist() == [5 + 2j]
    assert cd.imag(z).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        cd.imag(cd.ones(1))

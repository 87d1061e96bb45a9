"""Complex numbers: the angle, the real and the imaginary part."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest


def test_the_angle_of_real_numbers() -> None:
    """The angle is 0 or pi, also of infinities, and NaN for NaN."""
    got = cd.angle(cd.tensor([np.inf, -np.inf, 1.0, -2.0, np.nan])).tolist()
    assert got[:4] == pytest.approx([0.0, np.pi, 0.0, np.pi])
    assert np.isnan(got[4])


def test_parts_of_complex_numbers_are_functions() -> None:
    """``real`` and ``imag`` return views, as the attributes do."""
    z = cd.tensor([1 + 2j])
    cd.real(z).fill_(5)
    assert z.tolist() == [5 + 2j]
    assert cd.imag(z).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        cd.imag(cd.ones(1))


def test_complex_numbers_of_parts_carry_gradients() -> None:
    """``complex`` and ``polar`` broadcast, and propagate gradients to both arguments."""
    real = cd.tensor([1.0, 2.0], requires_grad=True)
    imag = cd.tensor(3.0, requires_grad=True)
    made = cd.complex(real, imag)
    assert made.tolist() == [1 + 3j, 2 + 3j]
    made.imag.sum().backward()
    assert imag.grad is not None
    assert imag.grad.item() == 2.0
    turned = cd.polar(cd.tensor([2.0], dtype=cd.float64), cd.tensor([np.pi / 2], dtype=cd.float64))
    assert turned.dtype is cd.complex128
    assert abs(turned.item() - 2j) < 1e-15
    assert cd.complex(cd.ones(1, dtype=cd.float16), cd.ones(1, dtype=cd.float16)).dtype is cd.complex64
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Double"):
        cd.complex(cd.ones(2), cd.ones(2, dtype=cd.float64))
    with pytest.raises(RuntimeError, match="Expected both inputs to be Half, Float or Double tensors but got Int"):
        cd.polar(cd.ones(2, dtype=cd.int32), cd.ones(2, dtype=cd.int32))

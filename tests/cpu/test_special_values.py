"""Values at which kernels lost an answer or a sign, as PyTorch has them."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable

import candelabra as cd
import pytest
from candelabra.nn import functional as F

FLOATS = (cd.float16, cd.bfloat16, cd.float32, cd.float64)
ODD: dict[str, Callable[[cd.Tensor], cd.Tensor]] = {
    "erfinv": cd.erfinv,
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
}
LARGER: dict[str, Callable[[cd.Tensor], cd.Tensor]] = {
    "relu": cd.relu,
    "relu_": lambda x: x.clone().relu_(),
    "relu6": F.relu6,
    "clamp": lambda x: x.clamp(0, 6),
    "clamp_": lambda x: x.clone().clamp_(0, 6),
}


@pytest.mark.parametrize("d", FLOATS, ids=str)
@pytest.mark.parametrize("function", [*ODD, *LARGER])
def test_negative_zero_stays(function: str, d: cd.dtype) -> None:
    """Also next to the scalar 0, of which the larger may be either by IEEE 754; NumPy's choice depends on the
    processor."""
    if function in LARGER and platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("the maximum of two zeros is 0.0 on this processor")
    for count in (1, 1001):
        found = (ODD | LARGER)[function](cd.full((count,), -0.0, dtype=d))
        assert all(math.copysign(1, v) == -1 for v in found.tolist())
        assert not cd.signbit((ODD | LARGER)[function](cd.zeros(count, dtype=d))).any().item()


@pytest.mark.parametrize("d", [cd.float32, cd.bfloat16], ids=str)
@pytest.mark.parametrize("count", [1, 100_000])
def test_the_logarithm_of_distant_operands_is_the_small_term(d: cd.dtype, count: int) -> None:
    """The result next to 0 has all digits of the dtype."""
    for gap in (-8.0, -20.0, -30.0, -60.0, -80.0):
        zero, low = cd.zeros(count, dtype=d), cd.full((count,), gap, dtype=d)
        digits = 3e-7 if d is cd.float32 else 5e-3
        for found, base in ((zero.logaddexp(low), math.e), (low.logaddexp2(zero), 2.0)):
            want = math.log1p(base**gap) / math.log(base)
            assert found[0].item() == pytest.approx(want, rel=digits)
            assert (found == found[0]).all().item()


def test_hardswish_of_large_numbers_is_the_number() -> None:
    """The product with 6 exceeds float16, but not the result."""
    x = cd.tensor([20000.0, 65504.0, -20000.0], dtype=cd.float16)
    assert F.hardswish(x).tolist() == [20000.0, 65504.0, 0.0]


@pytest.mark.parametrize("shape", [(), (2,)])
def test_complex_numbers_are_replaced_by_parts(shape: tuple[int, ...]) -> None:
    """Each part that is not finite is replaced, also of a tensor without dims."""
    x = cd.full(shape, complex(math.nan, -math.inf), dtype=cd.complex64)
    found = x.nan_to_num(1.0, neginf=-2.0)
    assert found.shape == x.shape
    assert (found == 1 - 2j).all().item()

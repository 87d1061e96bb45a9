"""Comparisons and random inputs for the tests of users. As ``torch.testing``."""

from __future__ import annotations

from typing import Any

from candelabra.testing._making import make_tensor
from candelabra_conformance.closeness import Message
from candelabra_conformance.closeness import assert_close as _assert_close


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise ``AssertionError`` unless ``actual`` and ``expected`` are close. As ``torch.testing.assert_close``.

    It is ``candelabra_conformance.assert_close``, with PyTorch's default for NaN: NaN differs from everything unless
    ``equal_nan`` is set. ``allow_subclasses=False`` requires both inputs to have exactly the same type.
    """
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(
            f"assert_close(): with allow_subclasses=False both inputs must have the same type, got "
            f"{type(actual).__name__} and {type(expected).__name__}"
        )
    _assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
        msg=msg,
    )


__all__ = ["assert_close", "make_tensor"]


def __dir__() -> list[str]:
    return sorted(__all__)

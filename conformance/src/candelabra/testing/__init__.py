"""Comparisons and random inputs for the tests of users. As ``torch.testing``."""

from __future__ import annotations

import warnings
from typing import Any

from candelabra import Tensor, tensor
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


ALLCLOSE_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
"""The relative and absolute tolerances of :func:`assert_allclose`."""


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """As :func:`assert_close`, which replaces it, except that dtypes may differ, and NaN equals NaN.

    The default tolerances are those of the less accurate dtype: (1e-3, 1e-3) for float16, (1e-4, 1e-5) for float32,
    (1e-5, 1e-8) for float64, and 0 for other dtypes.
    """
    warnings.warn(
        "candelabra.testing.assert_allclose() is deprecated as in PyTorch; use assert_close() instead",
        FutureWarning,
        stacklevel=2,
    )
    first = actual if isinstance(actual, Tensor) else tensor(actual)
    second = expected if isinstance(expected, Tensor) else tensor(expected, dtype=first.dtype)
    if rtol is None and atol is None:
        pairs = [ALLCLOSE_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (first, second)]
        rtol, atol = (max(values) for values in zip(*pairs, strict=True))
    assert_close(first, second, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


__all__ = ["assert_allclose", "assert_close", "make_tensor"]


def __dir__() -> list[str]:
    return sorted(__all__)

"""``assert_close``: compare two results within tolerances. The error says where and by how much they differ.

The tolerances of each dtype and the rule ``|actual - expected| <= atol + rtol * |expected|`` are those that PyTorch
documents for ``torch.testing.assert_close``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra import Tensor
from candelabra.dtypes import BY_NAME, COMPLEX, FLOATING, dtype, promote_types
from candelabra.library import dtype_of_array

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.transport import to_host
from candelabra_conformance.ulp import ulp_error

Array = np.ndarray[Any, Any]
TOLERANCES: Final[dict[str, tuple[float, float]]] = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
"""(rtol, atol) by dtype; values of other dtypes must be equal."""
PYTHON: Final[dict[type, str]] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
Message = str | Callable[[str], str] | None


@dataclass(frozen=True)
class Terms:
    """The options of a call of ``assert_close``."""

    rtol: float | None
    atol: float | None
    ulp: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def of(self, *dtypes: dtype) -> tuple[float, float]:
        """Return the (rtol, atol) for a comparison of these dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        if self.ulp is not None:
            return 0.0, 0.0
        pairs = [TOLERANCES.get(d.name, (0.0, 0.0)) for d in dtypes]
        return max(r for r, _ in pairs), max(a for _, a in pairs)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: float | None = None,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise ``AssertionError`` unless ``actual`` and ``expected`` are close, element by element.

    Both are tensors, NumPy arrays or Python numbers, or nested sequences and mappings of them; strings and None must be
    equal. An element is close if ``|actual - expected| <= atol + rtol * |expected|``, by default with the tolerances of
    its dtype. With ``ulp`` it is close if its error is at most that number of units in the last place (or within the
    tolerances, if they are given too). Bools and integers must be equal. ``equal_nan``: NaN equals NaN.

    Device, dtype and shape must be equal, and with ``check_stride`` the strides; an array has no device. ``msg`` is the
    error's text, or a function of the default text. Raises ``ValueError`` if only one of ``rtol`` and ``atol`` is
    given, ``TypeError`` for values that cannot be compared.
    """
    if (rtol is None) != (atol is None):
        missing, given = ("atol", "rtol") if atol is None else ("rtol", "atol")
        raise ValueError(f"assert_close(): {given} was given without {missing}: give both, or neither")
    negative = [(name, v) for name, v in (("rtol", rtol), ("atol", atol), ("ulp", ulp)) if v is not None and not v >= 0]
    if negative:
        raise ValueError(f"assert_close(): {negative[0][0]} must not be negative, got {negative[0][1]}")
    terms = Terms(rtol, atol, ulp, equal_nan, check_device, check_dtype, check_layout, check_stride)
    text = _difference(actual, expected, terms, "")
    if text is not None:
        raise AssertionError(text if msg is None else msg if isinstance(msg, str) else msg(text))


# -- the tree ---------------------------------------------------------------------------------------------------------
def _difference(actual: Any, expected: Any, terms: Terms, path: str) -> str | None:
    """Return a description of the first difference, or None if there is none."""
    if _is_sequence(actual) and _is_sequence(expected):
        return _of_sequences(actual, expected, terms, path)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return _of_mappings(actual, expected, terms, path)
    if _is_number(actual) and _is_number(expected):
        return _of_numbers(actual, expected, terms, path)
    if _is_tensor_like(actual) and _is_tensor_like(expected):
        return _of_tensors(actual, expected, terms, path)
    if all(v is None or isinstance(v, str) for v in (actual, expected)):
        return None if actual == expected else f"expected {expected!r}{_at(path)}, got {actual!r}"
    raise TypeError(
        f"assert_close(){_at(path)}: cannot compare {type(actual).__name__} with {type(expected).__name__}; it takes "
        "tensors, NumPy arrays, numbers, and sequences and mappings of them"
    )


def _of_sequences(actual: Sequence[Any], expected: Sequence[Any], terms: Terms, path: str) -> str | None:
    if len(actual) != len(expected):
        return f"the lengths of the sequences differ{_at(path)}: expected {len(expected)}, got {len(actual)}"
    texts = (_difference(a, e, terms, f"{path}[{i}]") for i, (a, e) in enumerate(zip(actual, expected, strict=True)))
    return next((text for text in texts if text is not None), None)


def _of_mappings(actual: Mapping[Any, Any], expected: Mapping[Any, Any], terms: Terms, path: str) -> str | None:
    missing = [k for k in expected if k not in actual]
    added = [k for k in actual if k not in expected]
    if missing or added:
        return f"the keys of the mappings differ{_at(path)}: missing {missing!r}, not expected {added!r}"
    texts = (_difference(actual[k], expected[k], terms, f"{path}[{k!r}]") for k in expected)
    return next((text for text in texts if text is not None), None)


def _of_numbers(actual: Any, expected: Any, terms: Terms, path: str) -> str | None:
    if terms.check_dtype and type(actual) is not type(expected):
        return f"the types of the numbers differ{_at(path)}: expected {type(expected).__name__} {expected!r}, got " + (
            f"{type(actual).__name__} {actual!r}"
        )
    exact = isinstance(actual, int) and isinstance(expected, int)
    if exact and terms.rtol is None:  # integers of any size
        return None if actual == expected else f"expected {expected}{_at(path)}, got {actual}"
    dtypes = [BY_NAME[PYTHON[type(v)]] for v in (actual, expected)]
    compared = BY_NAME["complex128" if complex in (type(actual), type(expected)) else "float64"]
    return _compared(np.asarray(actual), np.asarray(expected), compared, terms.of(*dtypes), terms, path)


# -- tensors ----------------------------------------------------------------------------------------------------------
def _of_tensors(actual: Any, expected: Any, terms: Terms, path: str) -> str | None:
    text = _of_attributes(actual, expected, terms)
    if text is not None:
        return f"the {text}" if not path else f"the {text} (found{_at(path)})"
    got, want = _host(actual), _host(expected)
    dtypes = [dtype_of_array(got), dtype_of_array(want)]
    try:
        compared = promote_types(*dtypes)
    except TypeError:  # uint64 with a signed integer: compare their values without promotion
        compared = dtypes[0]
    return _compared(got, want, compared, terms.of(*dtypes), terms, path)


def _of_attributes(actual: Any, expected: Any, terms: Terms) -> str | None:
    shapes = [tuple(np.shape(v)) if not isinstance(v, Tensor) else tuple(v.shape) for v in (actual, expected)]
    if shapes[0] != shapes[1]:
        return f"shapes differ: expected {shapes[1]}, got {shapes[0]}"
    if terms.check_dtype:
        dtypes = [_dtype(v) for v in (actual, expected)]
        if dtypes[0] is not dtypes[1]:
            return f"dtypes differ: expected {dtypes[1]}, got {dtypes[0]}"
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        if terms.check_device and actual.device != expected.device:
            return f"devices differ: expected {expected.device}, got {actual.device}"
        if terms.check_layout and actual.layout is not expected.layout:
            return f"layouts differ: expected {expected.layout}, got {actual.layout}"
        if terms.check_stride and tuple(actual.stride()) != tuple(expected.stride()):
            return f"strides differ: expected {tuple(expected.stride())}, got {tuple(actual.stride())}"
    return None


def _compared(got: Array, want: Array, d: dtype, tolerance: tuple[float, float], terms: Terms, path: str) -> str | None:
    """Compare element by element in the widest dtype of the category."""
    rtol, atol = tolerance
    wide = np.complex128 if d.category == COMPLEX else np.float64 if d.category == FLOATING else None
    a, e = (got, want) if wide is None else (got.astype(wide), want.astype(wide))
    with np.errstate(all="ignore"):
        absolute = ulp_error(a, e, d) if wide is None else np.abs(a - e)
        close = (a == e) | (np.isfinite(absolute) & (absolute <= atol + rtol * np.abs(e.astype(wide or np.float64))))
        units = ulp_error(a, e, d)
    if terms.ulp is not None:
        close |= units <= terms.ulp
    both = np.zeros(a.shape, bool) if wide is None else np.isnan(a) & np.isnan(e)
    close = (close & ~both) | (both & terms.equal_nan)
    return None if close.all() else _error_text(got, want, close, absolute, units, tolerance, terms.ulp, path)


def _error_text(
    got: Array, want: Array, close: Array, absolute: Array, units: Array, tolerance: tuple[float, float],
    ulp: float | None, path: str,
) -> str:  # fmt: skip
    """Return the error's text: the number of differences, and the largest of each measure with index and values."""
    rtol, atol = tolerance
    exact = rtol == atol == 0 and ulp is None
    bad, size = int((~close).sum()), close.size
    with np.errstate(all="ignore"):
        relative = absolute / np.abs(want.astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    head = f"the values are not {'equal' if exact else 'close'}{_at(path)}"
    lines = [head, f"  different: {bad} of {size} ({100 * bad / size:.1f} %)"]
    allowed = {"absolute": f"{atol:g} allowed", "relative": f"{rtol:g} allowed"}
    rows: list[tuple[str, Array]] = [("absolute", absolute), ("relative", relative), ("in ULP", units)]
    for name, errors in rows:
        worst = np.unravel_index(int(np.argmax(_ranked(errors, close))), close.shape)
        index = tuple(int(i) for i in worst)
        limit = allowed.get(name, "" if ulp is None else f"{ulp:g} allowed")
        where = f" at {index}" if index else ""
        shown = f"expected {want[index].item()!r}, got {got[index].item()!r}"
        lines.append(
            f"  greatest difference, {name}: {float(errors[index]):g}{where}{f' ({limit})' if limit else ''}: {shown}"
        )
    return "\n".join(lines)


def _ranked(errors: Array, close: Array) -> Array:
    """Return the errors for sorting: NaN is largest, elements that are close are smallest."""
    return np.where(close, -1.0, np.where(np.isnan(errors), np.inf, errors))


def _host(value: Any) -> Array:
    if isinstance(value, Tensor):
        return to_host(value)
    if type(value) in PYTHON:
        return np.asarray(value, host_dtype(_dtype(value)))
    return np.asarray(value)


def _dtype(value: Any) -> dtype:
    if isinstance(value, Tensor):
        return value.dtype
    if type(value) in PYTHON:  # the dtype of a tensor with this value
        from candelabra.dtypes import category_of_scalar, default_for_category

        return default_for_category(category_of_scalar(value))
    converted: dtype = dtype_of_array(np.asarray(value))
    return converted


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, np.generic)) or _is_number(value)


def _is_number(value: Any) -> bool:
    return type(value) in PYTHON


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _at(path: str) -> str:
    return f" at {path}" if path else ""

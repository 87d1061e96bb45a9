"""Tensors as text, in PyTorch's format.

Only the shown elements are read: for a large tensor, its corners. Printing does not use autograd, the layers of
plugins, or an array library; the numbers are decoded from the device's bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import get_default_device
from candelabra._geometry import one_slice
from candelabra._interchange.values import nested_list
from candelabra._keys import AUTOGRAD, LAYER_MASK, NO_GRAD, PACK, VIEW, mode
from candelabra._records.registry import OPERATORS
from candelabra._tensor import wrap
from candelabra.dtypes import COMPLEX, FLOATING, bool_, dtype, get_default_dtype, int64
from candelabra.errors import BackendError

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


# -- options ----------------------------------------------------------------------------------------------------------
@dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


_PROFILES: Final[dict[str, dict[str, Any]]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options: Final = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed in this process. None keeps an option, except ``sci_mode``, for which it is a value.

    ``precision``: digits after the point (4). ``threshold``: a tensor with more elements is summarised (1000).
    ``edgeitems``: the number of elements at each end of a dim of a summarised tensor (3). ``linewidth``: the maximum
    length of a line (80). ``sci_mode``: scientific notation always, never, or depending on the numbers (None).
    ``profile``: ``"default"``, ``"short"`` or ``"full"``; the other arguments override its options. Raises
    ``ValueError`` for another profile.
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f'set_printoptions: profile must be "default", "short" or "full", got {profile!r}')
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = {**_PROFILES.get(profile or "", {}), **{name: value for name, value in given.items() if value is not None}}
    for name, value in chosen.items():
        setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the options as a dict, which ``set_printoptions(**options)`` restores."""
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set the options of :func:`set_printoptions` inside a ``with`` block."""
    before = get_printoptions()
    try:
        set_printoptions(**options)
        yield
    finally:
        set_printoptions(**before)


# -- tensors ----------------------------------------------------------------------------------------------------------
def tensor_repr(tensor: Tensor) -> str:
    """Return ``tensor([[1., 2.]], dtype=…, device=…, requires_grad=True)``.

    It never raises: if the elements cannot be read, the text contains the error. A subclass is printed with its own
    name, except the library's own subclasses.
    """
    kind = type(tensor)
    opening = ("tensor" if kind.__module__.partition(".")[0] == "candelabra" else kind.__name__) + "("
    if not hasattr(tensor, "_payload"):
        return f"{opening}<not initialised>)"
    shape = tuple(tensor._payload.shape)
    suffixes = _suffixes(tensor, shape)
    if tensor._instance.depth:
        return tensor._instance.backend.describe(tensor)  # type: ignore[attr-defined, no-any-return]
    if not tensor._instance.capabilities.data:
        return _joined(opening + "...", [suffixes[0], f"size={shape}", *suffixes[1:]], len(opening))
    try:
        text = _content(tensor, shape, len(opening))
    except Exception as error:
        # A repr that raises would hide the tensor in a debugger.
        text = f"<not readable: {type(error).__name__}: {error}>"
        suffixes.insert(0, f"size={shape}")
    return _joined(opening + text, suffixes, len(opening))


def _suffixes(tensor: Tensor, shape: tuple[int, ...]) -> list[str]:
    d = tensor.dtype
    default = get_default_dtype()
    found = [] if _on_default_device(tensor) else [f"device='{tensor.device}'"]
    empty = 0 in shape
    if (empty and len(shape) != 1) or not (empty or _options.edgeitems):
        found.append(f"size={shape}")
    # The elements of an empty tensor do not show its dtype, so it is omitted only if it is the default.
    plain = (default,) if empty else (default, default.to_complex(), int64, bool_)
    if d not in plain:
        found.append(f"dtype={d}")
    try:
        node = tensor.grad_fn
        if node is not None:
            found.append(f"grad_fn=<{node.name()}>")
        elif tensor.requires_grad:
            found.append("requires_grad=True")
    except RuntimeError:  # a view that cannot be refreshed any more
        found.append("grad_fn=<Invalid>")
    return found


def _on_default_device(tensor: Tensor) -> bool:
    try:
        return tensor.device == get_default_device()
    except BackendError:
        return False


def _joined(text: str, suffixes: Sequence[str], indent: int) -> str:
    """Append the suffixes to the content, each on a new line if it does not fit."""
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def _content(tensor: Tensor, shape: tuple[int, ...], indent: int) -> str:
    if 0 in shape:
        return "[]"
    edge = _options.edgeitems
    cut = math.prod(shape) > _options.threshold
    ends = [edge if cut and size > 2 * edge else None for size in shape]
    d = tensor.dtype
    if cut and not edge:
        return _nested([], shape, ends, indent, NumberFormat([], d))
    with mode(include=NO_GRAD, exclude=LAYER_MASK | PACK):
        values = _shown(_plain(tensor), ends, 0)
    return _nested(values, shape, ends, indent, NumberFormat(list(_flat(values, len(shape))), d))


# -- reading ----------------------------------------------------------------------------------------------------------
def _plain(tensor: Tensor) -> Tensor:
    return wrap(tensor._fresh()._payload, tensor._keys & ~(AUTOGRAD | VIEW))


def _shown(tensor: Tensor, ends: Sequence[int | None], dim: int) -> Any:
    """Return the shown elements as nested lists. For a summarised dim, both ends are read separately."""
    shape = tuple(tensor._payload.shape)
    if dim == len(shape):
        return nested_list(tensor)
    end = ends[dim]
    if end is None:
        return _shown(tensor, ends, dim + 1)
    first = _shown(_slice(tensor, dim, 0, end), ends, dim + 1)
    last = _shown(_slice(tensor, dim, shape[dim] - end, shape[dim]), ends, dim + 1)
    return _chained(first, last, dim)


def _slice(tensor: Tensor, dim: int, start: int, stop: int) -> Tensor:
    out: Tensor = OPERATORS["basic_index"].function(tensor, one_slice(tuple(tensor._payload.shape), dim, start, stop))
    return out


def _chained(a: list[Any], b: list[Any], depth: int) -> list[Any]:
    return a + b if depth == 0 else [_chained(x, y, depth - 1) for x, y in zip(a, b, strict=True)]


def _flat(values: Any, depth: int) -> Iterator[Any]:
    if depth == 0:
        yield values
    else:
        for value in values:
            yield from _flat(value, depth - 1)


# -- numbers ----------------------------------------------------------------------------------------------------------
class NumberFormat:
    """The format of the numbers of one tensor. Finite numbers other than 0 determine the common width."""

    def __init__(self, values: list[Any], d: dtype) -> None:
        self.parts: tuple[_Column, ...]
        if d.category == COMPLEX:
            self.parts = (_Column([v.real for v in values]), _Column([v.imag for v in values]))
        elif d.category == FLOATING:
            self.parts = (_Column(values),)
        else:
            self.parts = (_Words(values),)
        # A complex number is one character longer, the j: the sign in the middle belongs to the imaginary part.
        self.width = sum(part.width for part in self.parts) + (len(self.parts) == 2)

    def write(self, value: Any) -> str:
        """Return one element, right-aligned."""
        if len(self.parts) == 1:
            return self.parts[0].write(value)
        real, imaginary = self.parts[0].write(value.real), self.parts[1].write(value.imag).lstrip()
        return f"{real}{'' if imaginary[0] in '+-' else '+'}{imaginary}j"


class _Column:
    """The format of floating numbers: integers with a point, ``precision`` digits, or scientific notation."""

    def __init__(self, values: list[Any]) -> None:
        self.width = 1
        self.style, self.point = ".0f", "."
        telling = [v for v in values if v and math.isfinite(v)]
        if not telling:
            return
        largest, smallest = max(map(abs, telling)), min(map(abs, telling))
        whole = all(v.is_integer() for v in telling)
        scientific = _options.sci_mode
        if scientific is None:
            scientific = largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4)
        if scientific:
            self.style, self.point = f".{_options.precision}e", ""
        elif not whole:
            self.style, self.point = f".{_options.precision}f", ""
        self.width = max(len(format(v, self.style)) for v in telling) + len(self.point)

    def write(self, value: float) -> str:
        point = self.point if math.isfinite(value) else ""
        return (format(value, self.style) + point).rjust(self.width)


class _Words(_Column):
    """The format of integers and bools, which is Python's."""

    def __init__(self, values: list[Any]) -> None:
        self.width = max((len(str(v)) for v in values), default=1)

    def write(self, value: object) -> str:
        return str(value).rjust(self.width)


# -- brackets ---------------------------------------------------------------------------------------------------------
def _nested(values: Any, shape: Sequence[int], ends: Sequence[int | None], indent: int, numbers: NumberFormat) -> str:
    """Return nested brackets. Each outer dim adds a blank line between its items."""
    if not shape:
        return numbers.write(values)
    end = ends[0]
    if len(shape) == 1:
        words = [numbers.write(v) for v in values]
        if end is not None:
            words[end : len(words) - end] = [" ..." if end else "..."]
        return _wrapped(words, indent, numbers.width + 2)
    rows = [_nested(v, shape[1:], ends[1:], indent + 1, numbers) for v in values]
    if end is not None:
        rows[end : len(rows) - end] = ["..."]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(rows) + "]"


def _wrapped(words: list[str], indent: int, width: int) -> str:
    """Return one row, broken into lines of the maximum number of elements."""
    room = (_options.linewidth - indent) / width
    per_line = max(1, math.floor(room)) if math.isfinite(room) else len(words)
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

"""How each dtype is kept in memory and computed in, in the words that every dialect's preamble defines.

Half types are kept as their 16 bits and computed in float32, on every device alike: no kernel argument is ever ``half``
(OpenCL allows none) and a sum of a thousand ones is a thousand. Bools are bytes of 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

from candelabra.dtypes import ALL, dtype


class CType(NamedTuple):
    """``memory`` is the type of an element in a buffer, ``value`` that of a variable in a kernel.

    The names of library functions on values end in it (``exp_f32``). :meth:`load` and :meth:`store` turn one into the
    other.
    """

    memory: str
    value: str
    converts: str = ""
    """``f16`` where the library's ``load_f16`` and ``store_f16`` stand between memory and value."""

    def load(self, element: str) -> str:
        """The expression of a value that is read from ``element``."""
        return f"load_{self.converts}({element})" if self.converts else element

    def store(self, value: str) -> str:
        """The expression that is written to memory for ``value``."""
        return f"store_{self.converts}({value})" if self.converts else f"({self.memory})({value})"


def _ctype(d: dtype) -> CType:
    if d.name in ("float16", "bfloat16"):
        return CType("u16", "f32", "f16" if d.name == "float16" else "bf16")
    if d.name == "bool":
        return CType("u8", "u8", "bool")
    kind = "c" if d.is_complex else "f" if d.is_floating_point else "i" if d.is_signed else "u"
    return CType(f"{kind}{d.itemsize * 8}", f"{kind}{d.itemsize * 8}")


CTYPES: dict[dtype, CType] = {d: _ctype(d) for d in ALL}
"""Every dtype of the core."""

WIDE: dict[str, str] = {"f32": "f64", "i32": "i64", "u32": "u64"}
"""The value type twice as wide."""

"""The C types of each dtype in memory and in computations.

Half types are stored as their 16 bits and computed in float32 on every device. No kernel argument is a ``half``, which
OpenCL does not allow, and sums of half types are accurate. Bools are bytes of 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

from candelabra.dtypes import ALL, dtype


class CType(NamedTuple):
    """``memory`` is the type of an element in a buffer, ``value`` that of a variable in a kernel.

    The names of library functions end in the value type (``exp_f32``). :meth:`load` and :meth:`store` convert between
    the two types.
    """

    memory: str
    value: str
    converts: str = ""
    """``f16`` if the library functions ``load_f16`` and ``store_f16`` convert between memory and value."""

    def load(self, element: str) -> str:
        """Return the expression of the value of ``element``."""
        return f"load_{self.converts}({element})" if self.converts else element

    def store(self, value: str) -> str:
        """Return the expression that is stored in memory for ``value``."""
        return f"store_{self.converts}({value})" if self.converts else f"({self.memory})({value})"


def _ctype(d: dtype) -> CType:
    if d.is_half:
        return CType("u16", "f32", "f16" if d.name == "float16" else "bf16")
    if d.name == "bool":
        return CType("u8", "u8", "bool")
    kind = "c" if d.is_complex else "f" if d.is_floating_point else "i" if d.is_signed else "u"
    return CType(f"{kind}{d.itemsize * 8}", f"{kind}{d.itemsize * 8}")


CTYPES: dict[dtype, CType] = {d: _ctype(d) for d in ALL}
"""The C types of every dtype."""

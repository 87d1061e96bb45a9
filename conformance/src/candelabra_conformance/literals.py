"""Write values as Python source that is exact to the bit, short, and needs only ``import candelabra as cd``.

The ``repr`` of a Python float is the shortest decimal that reads back as the same number, and float64 represents every
number of the narrower dtypes, so decimals are exact. NaN keeps its sign and loses its payload.
"""

from __future__ import annotations

import math
import struct
import zlib
from base64 import b85encode
from typing import Any, Final

import numpy as np
from candelabra import device as Device
from candelabra.dtypes import dtype
from candelabra.library import Instance

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.samples.sample import HERE, Fresh, HostArray

Array = np.ndarray[Any, Any]
LIMIT: Final = 96
"""Arrays with more elements are written packed: as compressed bytes in base 85."""
IMPORTS: Final[dict[str, str]] = {
    "inf": "from math import inf", "nan": "from math import nan", "unpack": "from struct import unpack",
    "decompress": "from zlib import decompress", "b85decode": "from base64 import b85decode",
    "OPERATORS": "from candelabra.library import OPERATORS", "np": "import numpy as np",
    "ml_dtypes": "import ml_dtypes", "ThreadPoolExecutor": "from concurrent.futures import ThreadPoolExecutor",
}  # fmt: skip
"""The names that the texts of this module use, and the import statement for each."""
CODES: Final[dict[str, str]] = {"bool": "?", "float16": "e", "bfloat16": "f", "float32": "f", "float64": "d"}
"""The format character of ``struct`` for each dtype; bfloat16 is packed as float32, which represents its values."""


def number(value: Any) -> str:
    """Return the source of a Python number."""
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float):
        return repr(value) if not math.isnan(value) else "-nan" if math.copysign(1, value) < 0 else "nan"
    return repr(int(value))


def host_list(array: Array) -> Any:
    """Return the elements as nested lists of Python numbers."""
    return (array.astype(np.float64) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array).tolist()


def nested(value: Any) -> str:
    """Return the source of nested lists of numbers."""
    return f"[{', '.join(nested(v) for v in value)}]" if isinstance(value, list) else number(value)


def flat_list(array: Array) -> str:
    """Return the source of the elements in C order: a list, a repetition, or packed bytes."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size > 1 and (flat.view(f"V{flat.itemsize}") == flat[:1].view(f"V{flat.itemsize}")).all():
        return f"[{number(host_list(flat[:1])[0])}] * {flat.size}"
    return nested(host_list(flat)) if flat.size <= LIMIT else packed(flat)


def packed(flat: Array) -> str:
    """Return an expression that unpacks a flat array."""
    if flat.dtype.kind == "c":
        parts = packed(flat.view(flat.real.dtype))
        return f"[complex(*pair) for pair in zip(*[iter({parts})] * 2)]"
    name = device_dtype(flat.dtype).name
    code = CODES.get(name) or {1: "b", 2: "h", 4: "i", 8: "q"}[flat.itemsize]
    code = code.upper() if flat.dtype.kind == "u" else code
    held = flat.astype(np.float32) if name == "bfloat16" else flat
    data = b85encode(zlib.compress(struct.pack(f"<{flat.size}{code}", *held.tolist()), 9)).decode()
    return f'unpack("<{flat.size}{code}", decompress(b85decode("{data}")))'


def tensor(array: Array) -> str:
    """Return an expression for a contiguous tensor on ``device``, a variable of the program."""
    placed = f"dtype=cd.{device_dtype(array.dtype).name}, device=device)"
    uniform = array.size > 8 and array.ndim and flat_list(array).endswith(f"] * {array.size}")
    if array.size <= LIMIT and not uniform and (array.size or array.ndim < 2):
        return f"cd.tensor({nested(host_list(array))}, {placed}"
    text = f"cd.tensor({flat_list(array)}, {placed}"
    return text if array.ndim == 1 else f"{text}.reshape({tuple(array.shape)})"


def host_array(array: Array) -> str:
    """Return an expression for a NumPy array."""
    name = device_dtype(array.dtype).name
    dtype = "ml_dtypes.bfloat16" if name == "bfloat16" else repr(name)
    return f"np.array({nested(host_list(array))}, dtype={dtype}).reshape({tuple(array.shape)})"


def plain(value: Any) -> str:
    """Return the text of an argument other than an array."""
    if value is HERE or isinstance(value, Instance):
        return "device"
    if isinstance(value, Fresh):
        return value.source
    if isinstance(value, HostArray):
        return host_array(value.array)
    if isinstance(value, dtype):
        return f"cd.{value.name}"
    if isinstance(value, Device):
        return f"cd.device({str(value)!r})"
    if isinstance(value, (bool, int, float, complex)):
        return number(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(plain, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {plain(v)}' for k, v in value.items())}}}"
    if isinstance(value, slice):
        return f"slice({plain(value.start)}, {plain(value.stop)}, {plain(value.step)})"
    if value is None or value is Ellipsis or isinstance(value, str):
        return "..." if value is Ellipsis else repr(value)
    raise TypeError(f"reproducer(): a {type(value).__name__} cannot be written as Python source: {value!r}")


def imports(text: str) -> list[str]:
    """Return the import statements for the names that a program's text uses."""
    import io
    import tokenize

    names = {t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.NAME}
    lines = sorted({line for name, line in IMPORTS.items() if name in names})
    merged = "from math import inf, nan"
    if {"inf", "nan"} <= names:
        lines = sorted([line for line in lines if not line.startswith("from math")] + [merged])
    return lines

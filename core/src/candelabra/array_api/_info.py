"""The inspection functions of the standard, ``__array_namespace_info__()``."""

from __future__ import annotations

from candelabra import dtypes as types
from candelabra._annotations import Any, Final
from candelabra._device import device as device_type
from candelabra._device import get_default_device, open_device
from candelabra.array_api._data_types import isdtype
from candelabra.dtypes import default_for_category, dtype

STANDARD: Final[tuple[str, ...]] = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
"""The dtypes of the standard. candelabra also has bfloat16 and float16."""


class Info:
    """The inspection functions of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and shapes that depend on data work; a shape may have as many dims as the device takes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> device_type:
        """Where new arrays go."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """The dtypes of arrays that were made without one."""
        return {
            "real floating": default_for_category(types.FLOATING),
            "complex floating": default_for_category(types.COMPLEX),
            "integral": default_for_category(types.INTEGER),
            "indexing": types.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, dtype]:
        """The standard's dtypes that ``device`` holds, of the given kind (see ``isdtype``), by name."""
        held = open_device(device).keys
        found = {name: types.BY_NAME[name] for name in STANDARD if types.BY_NAME[name] in held}
        if kind is None or kind == ():
            return found if kind is None else {}
        return {name: d for name, d in found.items() if isdtype(d, kind)}

    def devices(self) -> tuple[device_type, ...]:
        """The devices that arrays may be made on."""
        from candelabra._device_modules import devices

        return tuple(devices())


def __array_namespace_info__() -> Info:
    """The inspection functions: ``capabilities``, ``default_device``, ``default_dtypes``, ``dtypes``, ``devices``."""
    return Info()

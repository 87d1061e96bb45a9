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
        """Return the capabilities: boolean indexing, data-dependent shapes, and any number of dims that the device
        supports.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> device_type:
        """Return the device of new arrays."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """Return the dtypes of arrays that are created without a dtype."""
        return {
            "real floating": default_for_category(types.FLOATING),
            "complex floating": default_for_category(types.COMPLEX),
            "integral": default_for_category(types.INTEGER),
            "indexing": types.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, dtype]:
        """Return the standard's dtypes that ``device`` supports, of the given kind (see ``isdtype``), by name."""
        supported = open_device(device).keys
        matches = {name: types.BY_NAME[name] for name in STANDARD if types.BY_NAME[name] in supported}
        if kind is None or kind == ():
            return matches if kind is None else {}
        return {name: d for name, d in matches.items() if isdtype(d, kind)}

    def devices(self) -> tuple[device_type, ...]:
        """Return the devices on which arrays can be created."""
        from candelabra._device_modules import devices

        return tuple(devices())


def __array_namespace_info__() -> Info:
    """Return the inspection functions: ``capabilities``, ``default_device``, ``default_dtypes``, ``dtypes``,
    ``devices``.
    """
    return Info()

"""DLPack between fake devices, whose memory belongs to the reference device."""

from __future__ import annotations

from typing import Any, Final

DLPackDevice = tuple[int, int]
"""DLPack's device type and id."""


def export_options(options: dict[str, Any], own: DLPackDevice, name: str) -> dict[str, Any]:
    """Return the options of ``__dlpack__`` for the reference device.

    ``stream`` is dropped, since the exporter has waited. Raises ``BufferError`` if ``dl_device`` is another device: the
    memory does not leave this device through DLPack.
    """
    wanted = options.pop("dl_device", None)
    options.pop("stream", None)
    if wanted is not None and (int(wanted[0]), int(wanted[1])) != own:
        raise BufferError(
            f"device {name!r} exports only its own memory, DLPack device {own}, but the request is for "
            f"{(int(wanted[0]), int(wanted[1]))}"
        )
    return options


class Borrowed:
    """An exporter of fake memory that the reference accepts as one of its own."""

    def __init__(self, source: Any, device: DLPackDevice) -> None:
        self._source: Final = source
        self._device: Final = device

    def __dlpack_device__(self) -> DLPackDevice:
        return self._device

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("dl_device", None)
        return self._source.__dlpack__(**options)

"""DLPack between fake devices, whose memory is the reference's in secret."""

from __future__ import annotations

from typing import Any, Final

Place = tuple[int, int]
"""DLPack's device type and id."""


def export_options(options: dict[str, Any], own: Place, name: str) -> dict[str, Any]:
    """The options of ``__dlpack__`` as the reference takes them.

    ``stream`` is dropped, since the exporter has waited. ``BufferError`` for ``dl_device`` of another device: what is
    on this one does not leave it through DLPack.
    """
    wanted = options.pop("dl_device", None)
    options.pop("stream", None)
    if wanted is not None and (int(wanted[0]), int(wanted[1])) != own:
        raise BufferError(
            f"device {name!r} exports its own memory only, DLPack device {own}, and was asked for "
            f"{(int(wanted[0]), int(wanted[1]))}"
        )
    return options


class Borrowed:
    """An exporter of fake memory, shown to the reference as one of its own."""

    def __init__(self, source: Any, place: Place) -> None:
        self._source: Final = source
        self._place: Final = place

    def __dlpack_device__(self) -> Place:
        return self._place

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("dl_device", None)
        return self._source.__dlpack__(**options)

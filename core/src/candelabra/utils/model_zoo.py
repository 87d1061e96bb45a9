"""``load_url``, an older name of :func:`candelabra.hub.load_state_dict_from_url`, which raises."""

from __future__ import annotations

from candelabra.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __dir__() -> list[str]:
    return sorted(__all__)

"""What ``get_device_properties`` returns."""

from __future__ import annotations

from collections.abc import Mapping

from candelabra._annotations import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.backend import DeviceInfo, Fact


class DeviceProperties:
    """The properties of one device: ``name``, and the facts of its backend as attributes and in ``facts``.

    Facts that PyTorch has under other names can be read by these too: ``total_memory``, ``major`` and ``minor``.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.name = info.name
        self.facts: Mapping[str, Fact] = dict(info.facts)
        for key, value in self.facts.items():
            if key.isidentifier() and not hasattr(self, key):
                setattr(self, key, value)
        if "memory" in self.facts:
            self.total_memory = self.facts["memory"]
        compute = self.facts.get("compute")
        if isinstance(compute, tuple):
            self.major, self.minor = compute[:2]

    def __repr__(self) -> str:
        facts = "".join(f", {key}={value!r}" for key, value in self.facts.items())
        return f"DeviceProperties(name={self.name!r}{facts})"

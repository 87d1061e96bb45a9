"""Judge many bad calls, and count those that are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from candelabra.library import Instance

from candelabra_conformance.bad_calls.calls import bad_calls
from candelabra_conformance.bad_calls.judging import LEAKED, RETURNED, UNENDING, judge, works
from candelabra_conformance.bad_calls.verdicts import Verdicts
from candelabra_conformance.bad_calls.wider import Wider, reason_for

HUGE = "GHJj"
"""The codes of huge integers, which can take seconds each."""


@dataclass
class Survey:
    """The judged calls. The lists have a line for each wrong call: its id, and what happened."""

    calls: int = 0
    compared: int = 0
    """The calls that PyTorch refuses."""
    listed: int = 0
    """Those of them that return here, for a reason that is listed."""
    silent: list[str] = field(default_factory=list)
    leaking: list[str] = field(default_factory=list)
    changing: list[str] = field(default_factory=list)
    unending: list[str] = field(default_factory=list)

    def add(self, other: Survey) -> None:
        """Add the counts and lines of another survey."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def counts(self) -> dict[str, int]:
        """Return the counts that may only fall."""
        return {
            "return although PyTorch raises, without a listed reason": len(self.silent),
            "raise an error that shows internals": len(self.leaking),
            "raise, and change a tensor, a generator or a default": len(self.changing),
            "do not end": len(self.unending),
        }


def surveyed(
    names: Iterable[str], instance: Instance, verdicts: Verdicts, reasons: list[Wider], huge: bool = True
) -> Survey:
    """Judge every bad call of some functions on a device. ``verdicts`` are PyTorch's; see ``verdicts.py``."""
    found = Survey()
    for name in names:
        working: dict[int, bool] = {}
        for call in bad_calls(name):
            base = id(call.base[0])
            if base not in working:
                working[base] = works(call, instance)
            if not working[base] or (call.code in HUGE and not huge):
                continue
            found.calls += 1
            peer = verdicts.get(call.id, "-")
            found.compared += peer not in ".-X"
            outcome = judge(call, instance)
            if outcome.changed:
                found.changing.append(f"{call.id}: {outcome.changed}, {outcome.error!r}")
            if outcome.verdict == UNENDING:
                found.unending.append(call.id)
            elif outcome.verdict == LEAKED:
                found.leaking.append(f"{call.id}: {outcome.why}, {outcome.error!r}")
            elif outcome.verdict == RETURNED and peer not in ".-X":
                if reason_for(call.id, reasons):
                    found.listed += 1
                else:
                    found.silent.append(f"{call.id}: PyTorch raises ({peer})")
    return found

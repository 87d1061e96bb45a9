"""Bad calls: calls of every public function with one argument spoilt, and the judgement of what happens.

``spoiling.py`` lists the values, ``calls.py`` combines them with the samples, and ``judging.py`` runs a call and says
whether it returned, raised a clear error, leaked an internal error, or changed the state although it
raised. ``verdicts.py`` reads and writes PyTorch's verdicts, ``wider.py`` the list of those that return on purpose, and
``survey.py`` counts.
"""

from candelabra_conformance.bad_calls.calls import BadCall, bad_calls, names_called
from candelabra_conformance.bad_calls.judging import LEAKED, RAISED, RETURNED, UNENDING, Outcome, judge
from candelabra_conformance.bad_calls.survey import Survey, surveyed
from candelabra_conformance.bad_calls.verdicts import PEER, Verdicts, read, written
from candelabra_conformance.bad_calls.wider import Wider, read_reasons, reason_for

__all__ = [
    "LEAKED", "PEER", "RAISED", "RETURNED", "UNENDING", "BadCall", "Outcome", "Survey", "Verdicts", "Wider",
    "bad_calls", "judge", "names_called", "read", "read_reasons", "reason_for", "surveyed", "written",
]  # fmt: skip

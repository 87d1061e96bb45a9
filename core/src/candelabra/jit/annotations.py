"""The hints of Python's ``typing`` under the name from which TorchScript programs import them."""

from __future__ import annotations

from typing import Any as Any
from typing import Dict as Dict  # noqa: UP035 - the name that programs import
from typing import List as List  # noqa: UP035 - the name that programs import
from typing import Optional as Optional
from typing import Tuple as Tuple  # noqa: UP035 - the name that programs import
from typing import Union as Union

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List  # noqa: UP006 - as above
"""One number, or a list of 1, 2 or 3 numbers, as a hint of an argument."""

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Any",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
]


def __dir__() -> list[str]:
    return sorted(__all__)

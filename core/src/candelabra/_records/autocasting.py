"""The lists of ``autocast``: the dtype in which an operator runs while it is on. A record names its list.

``"lower"``: the lower precision of the context, for operators whose time is that of a matrix product. ``"float32"``:
for sums and functions that need the range. ``"widest"``: the widest dtype among the floating arguments, for operators
that refuse several dtypes. ``"preserved"``: as without autocast, and the first result in the dtype of the first
argument. ``"refused"``: an error. Most operators are in no list and run in the dtype of their arguments.

PyTorch has a list for each kind of device, so a record may name two.
"""

from __future__ import annotations

from candelabra._annotations import Final, NamedTuple

LISTS: Final = ("lower", "float32", "widest", "preserved", "refused")


class Autocast(NamedTuple):
    """The list of an operator on accelerators, and on devices that compute in the host's memory."""

    accelerator: str | None = None
    host: str | None = None


def lists_of(name: str, declared: Autocast | str | None) -> Autocast | None:
    """Return the lists that a record names; one name stands for both. Raise ValueError for an unknown list."""
    lists = Autocast(declared, declared) if isinstance(declared, str) else declared
    unknown = [] if lists is None else [word for word in lists if word is not None and word not in LISTS]
    if unknown:
        raise ValueError(f"operator {name}: unknown list of autocast {unknown[0]!r}; there are {', '.join(LISTS)}")
    return lists

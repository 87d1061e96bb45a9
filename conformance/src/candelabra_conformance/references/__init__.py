"""What the reference device itself is held against: functions of NumPy and SciPy, or a formula, that share no code with
a backend. A module per family, found by looking into this folder.

A reference takes what the operator's record declares, by position, with NumPy arrays where tensors stand and plain
values where plain values do, and returns an array, or a tuple of them for several outputs. The reference of a public
callable (``"stack"``, ``"Tensor.to"``) is called as its samples call the callable, by position and by keyword, and
returns what that returns, with arrays for tensors.
"""

from candelabra_conformance.references.registry import EXTENDED, REFERENCES, Reference, load, reference, references

__all__ = ["EXTENDED", "REFERENCES", "Reference", "load", "reference", "references"]

"""The oracle of the reference device: functions of NumPy and SciPy, or formulas, that share no code with a backend.

There is one module per family; the modules of this folder are imported automatically. A reference gets the arguments
that the operator's record declares, by position, with NumPy arrays for tensors and plain values unchanged. It returns
an array, or a tuple of arrays for several outputs. The reference of a public callable (``"stack"``, ``"Tensor.to"``) is
called as its samples call the callable, by position and by keyword, and returns the same result with arrays for
tensors.
"""

from candelabra_conformance.references.registry import EXTENDED, REFERENCES, Reference, load, reference, references

__all__ = ["EXTENDED", "REFERENCES", "Reference", "load", "reference", "references"]

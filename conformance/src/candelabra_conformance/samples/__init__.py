"""What operators are tried on: a module per family, found by looking into this folder. ``docs/samples.md`` of nothing
more than this: an author writes at most three small generators per operator, the harness multiplies them by device,
dtype, layout and property.

``@inputs("softmax", "log_softmax")`` marks a generator of ordinary calls, ``@mistakes(...)`` one of calls that must be
refused, ``@special(...)`` one of calls on non-finite and extreme values. Each takes a :class:`Maker` and yields
:func:`sample`. Operators that are plainly pointwise need none: theirs follow from the record.
"""

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import domain, inputs, mistakes, special
from candelabra_conformance.samples.sample import HERE, Sample, sample

__all__ = ["HERE", "Maker", "Sample", "domain", "inputs", "mistakes", "sample", "special"]

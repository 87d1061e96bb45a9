"""What operators and public callables are tried on: a module per family, found by looking into this folder.

An author writes at most three small generators per operator; the harness multiplies them by device, dtype, layout and
property.

``@inputs("softmax", "log_softmax")`` marks a generator of ordinary calls, ``@mistakes(...)`` one of calls that must be
refused, ``@special(...)`` one of calls on non-finite and extreme values. Each takes a :class:`Maker` and yields
:func:`sample`. Operators that are plainly pointwise need none: theirs follow from the record. Overload sets have none:
theirs are their members'. A public callable is tried in the dtypes in which its generators yield anything.
"""

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import domain, draws, inputs, mistakes, special
from candelabra_conformance.samples.sample import HERE, Fresh, HostArray, Sample, sample

__all__ = [
    "HERE", "Fresh", "HostArray", "Maker", "Sample", "domain", "draws", "inputs", "mistakes", "sample", "special",
]  # fmt: skip

"""The sample arguments of operators and public callables: a module per family, imported automatically.

An author writes at most three small generators per operator; the harness multiplies them by device, dtype, layout and
property.

``@inputs("softmax", "log_softmax")`` marks a generator of ordinary calls, ``@mistakes(...)`` one of calls that must
raise an error, ``@special(...)`` one of calls on non-finite and extreme values. Each takes a :class:`Maker` and yields
:func:`sample`. Pointwise operators need none: their samples follow from the record. Overload sets need none: they have
the samples of their members. A public callable is tested in the dtypes for which its generators yield samples.
"""

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import domain, draws, inputs, mistakes, special
from candelabra_conformance.samples.sample import HERE, Fresh, HostArray, Sample, sample

__all__ = [
    "HERE", "Fresh", "HostArray", "Maker", "Sample", "domain", "draws", "inputs", "mistakes", "sample", "special",
]  # fmt: skip

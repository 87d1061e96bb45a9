"""The error that sums of products, and additions to elements, may have: that of a sequential sum.

A matrix product with n products per element, computed in any order, has an error of at most ``n u |A| |B|``, where u is
the unit roundoff (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 3.1 and 3.5). A plain loop attains
a good part of it if all products have one sign, so no device has to be better. Half types are added in float32: their
sums are held to its unit roundoff, and their results are rounded again.

The operators that add terms to the elements that an index selects have the error ``n u sum(abs(terms))`` likewise.

Both |A| |B| and n are computed by the operator itself, on magnitudes and on ones. Indices stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra.dtypes import BY_NAME, dtype
from candelabra.library import Instance, own_kernels

from candelabra_conformance.calling import called, split
from candelabra_conformance.perturbation import with_arrays
from candelabra_conformance.records import Record
from candelabra_conformance.samples.sample import Sample, mapped
from candelabra_conformance.tolerance import eps
from candelabra_conformance.transport import Array, to_device

INNER_PRODUCTS: Final = frozenset({
    "matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "tensordot", "linalg_vecdot", "addmm", "addmv", "addbmm",
    "baddbmm", "conv", "conv_input", "conv_weight",
})  # fmt: skip
"""The operators whose results are sums of products of two arguments, and perhaps of a term that is added to each."""
ADDITIONS: Final = frozenset({"scatter_add", "index_add", "index_put"})
"""The operators that add terms to elements, in their order."""
COMPLEX: Final = 3.0
"""The factor of the error for complex numbers, whose components are sums of 2n products: ``2 sqrt(2)``, rounded up."""


@own_kernels()
def sequential_error(op: Record, sample: Sample, d: dtype, reference: Instance) -> Array:
    """Return the largest error of a sequential sum for each element of a result in dtype ``d``."""
    terms = _values(op, _with_numbers(_with_operands(sample, np.ones_like), lambda _: 1), reference)
    size = _values(op, _with_numbers(_with_operands(sample, np.abs), abs), reference)
    unit = eps(BY_NAME["float32"] if d.name in ("float16", "bfloat16") else d) / 2
    with np.errstate(all="ignore"):
        error: Array = np.nan_to_num(terms * unit * size * (COMPLEX if d.is_complex else 1.0), nan=0.0)
    return error


def _with_operands(sample: Sample, function: Any) -> Sample:
    """Return the sample with ``function`` applied to its arrays, but not to indices."""
    return with_arrays(sample, lambda array: array if array.dtype.kind in "biu" else function(array))


def _with_numbers(sample: Sample, function: Any) -> Sample:
    """Return the sample with ``function`` applied to its factors ``alpha`` and ``beta``."""
    factors = {name: function(value) for name, value in sample.kwargs.items() if name in ("alpha", "beta")}
    return replace(sample, kwargs={**sample.kwargs, **factors})


def _values(op: Record, sample: Sample, reference: Instance) -> Array:
    """Return the reference's values in float64."""

    def placed(array: Array) -> Any:
        indices = array.dtype.kind in "biu"
        return to_device(array if indices else np.asarray(array.real, np.float64), reference)

    args, kwargs = mapped((sample.args, dict(sample.kwargs)), placed)
    return split(sample, called(op, args, kwargs, reference), reference)[0][0]

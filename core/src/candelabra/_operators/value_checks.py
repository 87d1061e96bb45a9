"""The operator with which operators' bodies and derivatives raise an error that depends on values.

Whether a matrix is singular depends on its values. The check is an operator, so that a function that raises the error
(``linalg.inv``) is a composite like any other: a tensor without data passes the check, and a transform defines a rule
for this operator only.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._dispatch.tracing import tracer_here
from candelabra._records.promotion import boolean, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(by(lambda codes, *_: ()), promote=unpromoted, result=boolean, data_dependent=True, out=False, public=False)
def raise_if_nonzero(codes: Tensor, text: str, error: type[Exception]) -> Tensor:
    """Return False as a 0-d tensor. Raises ``error`` with ``text`` if a code is not 0.

    In the text, ``{code}`` is replaced by the first code that is not 0, and ``{element}`` by its index in a batch of
    codes.
    """
    tracer = tracer_here()
    if tracer is not None:
        return tracer.check(raise_if_nonzero, codes, text, error)
    failed = codes.any()
    if bool(failed):
        values = codes.reshape((codes.numel(),)).tolist()
        index = next(i for i, code in enumerate(values) if code)
        element = f"(Batch element {index}): " if codes.ndim else ""
        raise error(text.replace("{element}", element).replace("{code}", str(values[index])))
    return failed


raise_if_nonzero.no_gradient("a check has no derivative")

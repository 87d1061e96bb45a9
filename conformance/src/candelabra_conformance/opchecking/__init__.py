"""Check the operators of users: records, autograd Functions, and any function of tensors."""

from candelabra_conformance.opchecking.check import NOT_APPLICABLE, PASSED, OpCheckError, opcheck
from candelabra_conformance.opchecking.promises import TESTS

__all__ = ["NOT_APPLICABLE", "PASSED", "TESTS", "OpCheckError", "opcheck"]

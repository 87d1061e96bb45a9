"""Live checking of a program: every operator runs on the reference device as well."""

from candelabra_conformance.shadowing.divergence import Divergence, DivergenceError, DivergenceWarning
from candelabra_conformance.shadowing.layer import ShadowLog, shadow

__all__ = ["Divergence", "DivergenceError", "DivergenceWarning", "ShadowLog", "shadow"]

"""The former place of functions that stand elsewhere now: goes when nothing imports it any more."""

from candelabra._operators.elementwise.complex import complex as complex
from candelabra._operators.inquiry import result_type as result_type

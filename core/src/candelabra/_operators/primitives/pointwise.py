"""The former place of records that stand in ``_operators.elementwise``: goes when nothing imports it any more."""

from candelabra._operators.elementwise.complex import conj as conj
from candelabra._operators.elementwise.complex import conj_physical as conj_physical
from candelabra._operators.elementwise.exponential import exp as exp

"""The former place of records that stand in ``_operators.elementwise``: goes when nothing imports it any more."""

from candelabra._operators.elementwise.logical import bitwise_left_shift as bitwise_left_shift
from candelabra._operators.elementwise.logical import bitwise_or as bitwise_or
from candelabra._operators.elementwise.logical import bitwise_right_shift as bitwise_right_shift
from candelabra._operators.elementwise.logical import bitwise_xor as bitwise_xor

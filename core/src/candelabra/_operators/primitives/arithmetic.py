"""The former place of records that stand in ``_operators.elementwise``: goes when nothing imports it any more."""

from candelabra._operators.elementwise.arithmetic import add as add
from candelabra._operators.elementwise.arithmetic import lerp as lerp
from candelabra._operators.elementwise.arithmetic import mul as mul
from candelabra._operators.elementwise.arithmetic import sub as sub
from candelabra._operators.elementwise.comparison import clamp_max as clamp_max
from candelabra._operators.elementwise.comparison import clamp_min as clamp_min
from candelabra._operators.elementwise.comparison import maximum as maximum
from candelabra._operators.elementwise.comparison import minimum as minimum
from candelabra._operators.elementwise.division import div as div
from candelabra._operators.elementwise.powers import pow as pow
from candelabra._operators.elementwise.selection import masked_fill as masked_fill
from candelabra._operators.elementwise.selection import where as where

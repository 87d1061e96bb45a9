"""The language of kernels: typed expressions, which Python functions build by operators and calls.

An operator's value is a function of its operands::

    "add": {"float": lambda a, b: a + b}
    "relu": {"float": lambda a: select(a < 0, 0, a)}
    "tanh": {"float": lambda a: call("tanh", a)}

The function is called once per dtype with variables in place of elements, and returns the tree of operations on them.
Every node of the tree has a type. A wrong type, an unknown function of the library or an argument too many is
therefore an error where the expression is declared, with the operator and the line, and not one of a compiler at the
first use. :func:`~candelabra_clike.language.printing.text` prints a tree in the words of
:mod:`candelabra_clike.dialect`, which all dialects define.

The types are ``bool``, ``i8`` … ``u64``, ``INDEX``, ``f32``, ``f64``, ``c64`` and ``c128``; half types are computed as
``f32``. What expressions are computed, in which loops, and where they are stored is said by schedules, or statement by
statement by :class:`~candelabra_clike.language.kernels.KernelBuilder`.
Conversions are those of C between integers of one signedness; every other conversion is a :func:`cast`. A Python number
takes the type of the other operand.
"""

from candelabra_clike.language.declaring import ExpressionError, all_declared, declared, parameters_of
from candelabra_clike.language.functions import (
    and_then,
    bits,
    call,
    cast,
    constant,
    multiply_high,
    or_else,
    pair,
    rare,
    refuse,
    round_to,
    select,
    shuffle,
    sqrt,
)
from candelabra_clike.language.printing import FORMS, is_vectorizable, selected_by_lanes, text
from candelabra_clike.language.statements import assignments
from candelabra_clike.language.types import INDEX, highest, lowest, part_type, unsigned, value_type, wrapping
from candelabra_clike.language.values import Number, Value, Variable, reasons_in

__all__ = [
    "FORMS",
    "INDEX",
    "ExpressionError",
    "Number",
    "Value",
    "Variable",
    "all_declared",
    "and_then",
    "assignments",
    "bits",
    "call",
    "cast",
    "constant",
    "declared",
    "highest",
    "is_vectorizable",
    "lowest",
    "multiply_high",
    "or_else",
    "pair",
    "parameters_of",
    "part_type",
    "rare",
    "reasons_in",
    "refuse",
    "round_to",
    "select",
    "selected_by_lanes",
    "shuffle",
    "sqrt",
    "text",
    "unsigned",
    "value_type",
    "wrapping",
]

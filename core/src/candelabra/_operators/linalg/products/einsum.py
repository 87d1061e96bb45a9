"""Einstein's summation: a sum of products, written with one letter per dim.

It has three steps: ``einsum_notation`` parses the equation into labels, ``einsum_plan`` plans the products for the
shapes, and this module computes them. The results of the first two steps are cached.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.linalg.products.einsum_notation import Equation, read_equation, read_sublists
from candelabra._operators.linalg.products.einsum_plan import plan
from candelabra._operators.linalg.products.matmul import check_same_dtype
from candelabra._records.callables import public
from candelabra._records.registry import OPERATORS
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

NOTHING = "einsum(): must specify the equation string and at least one operand"
NO_SUBLIST = f"{NOTHING}, or at least one operand and its subscripts list"


@public(method=False)
def einsum(*args: str | Tensor | Sequence[Tensor] | Sequence[Any]) -> Tensor:
    """Return sums of products in Einstein's notation: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Letters a-z and A-Z name dims. Operands are multiplied along the dims whose letter they share, and summed over the
    letters that the output lacks; a letter that occurs twice in an operand selects the diagonal. ``...`` represents
    dims without a letter, which broadcast. Without ``->``, the output has the dims of ``...``, then the letters that
    occur once, in alphabetical order. The operands may be one list; ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` writes
    labels as integers below 52. Of three or more operands, the pair with the smallest product is contracted first.
    ``RuntimeError`` for an equation that cannot be read or does not fit the operands.
    """
    operands: Any
    if args and isinstance(args[0], str):
        operands = args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        if not operands:
            raise ValueError(NOTHING)
        equation = read_equation(args[0], tuple([_rank(t) for t in operands]))
    else:
        if not args or (hasattr(args[0], "_payload") and len(args) == 1):
            raise ValueError(NO_SUBLIST)
        operands = args[0 : len(args) - len(args) % 2 : 2]
        equation = read_sublists(args, [_rank(t) for t in operands])
    return contracted(operands, equation)


def _rank(operand: Any) -> int:
    if not hasattr(operand, "_payload"):
        raise TypeError(f"einsum(): expected Tensor operands, but got {type(operand).__name__}")
    return len(operand._payload.shape)


def contracted(operands: Sequence[Tensor], equation: Equation) -> Tensor:
    """Return the contraction of tensors of one dtype, computed as planned; never an operand itself."""
    steps = plan(equation, tuple([tuple(t._payload.shape) for t in operands]))
    for other in operands[1:]:
        check_same_dtype(operands[0], other)
    terms = list(operands)
    for how, number, argument in steps:
        if how in ("matmul", "mul"):
            pair = terms[number], terms[argument]
            if pair[0].dtype is not pair[1].dtype:  # one is a sum in int64, with which uint64 does not promote
                pair = pair[0].to(int64), pair[1].to(int64)
            terms.append(OPERATORS[how].function(*pair))
        elif how == "reshape":
            terms[number] = terms[number].reshape(argument)
        elif how == "diagonal":
            terms[number] = terms[number].diagonal(0, *argument)
        else:
            terms[number] = OPERATORS[how].function(terms[number], argument)
    result = terms[-1]
    return result if result is not operands[0] else result.view_as(result)

"""Kernels as typed statements: variables, loops, conditions, and the elements that are stored.

A :class:`KernelBuilder` has the parameters of a kernel and its statements, in the order of the calls that make them::

    @built("double")
    def double(d: dtype, wide: bool) -> Source:
        k = KernelBuilder(f"double_{d.name}", wide)
        out, x, n = k.writes("out", d), k.reads("x", d), k.number("n")
        with k.when(k.item < n):
            out[k.item] = x[k.item] * 2
        return k.source()

All expressions are those of :mod:`candelabra_clike.language`. An element is a value of its array's type, converted from
its type in memory; what is stored is converted to it. A variable is a :class:`~candelabra_clike.language.Variable`, and
an error outside of the block in which it is declared. :func:`built` adds the operator and the line to an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final, ParamSpec

from candelabra.dtypes import dtype

from candelabra_clike.language.declaring import ExpressionError, all_declared
from candelabra_clike.language.functions import select
from candelabra_clike.language.kernel_arrays import KernelArray, KernelVector
from candelabra_clike.language.kernel_text import KernelText
from candelabra_clike.language.lane_vectors import LaneVector
from candelabra_clike.language.printing import text, type_name
from candelabra_clike.language.simd import VectorCounter, VectorVariable, lanes_of, vector_type
from candelabra_clike.language.statements import shared_nodes
from candelabra_clike.language.types import INDEX, INTEGERS, holds, value_type
from candelabra_clike.language.values import Operand, Value, Variable, as_value, replaced
from candelabra_clike.source import KernelParameter, Source
from candelabra_clike.types import CTYPES

P = ParamSpec("P")
LANGUAGE: Final = Path(__file__).parent
"""The folder of the language: a mistake is never in its modules."""


def built(operator: str) -> Callable[[Callable[P, Source]], Callable[P, Source]]:
    """Return a decorator of functions that build kernels. A ``TypeError`` in one becomes an ``ExpressionError`` with
    the operator and the innermost line of the function, or of one that it calls outside of this package.
    """

    def decorate(function: Callable[P, Source]) -> Callable[P, Source]:
        @wraps(function)
        def build(*arguments: P.args, **named: P.kwargs) -> Source:
            try:
                return function(*arguments, **named)
            except ExpressionError:
                raise
            except TypeError as error:
                frames = [(Path(frame.f_code.co_filename), line) for frame, line in walk_tb(error.__traceback__)]
                own = Path(function.__code__.co_filename)
                places = [(f, line) for f, line in frames if f == own or LANGUAGE.parent in f.parents]
                places = [(f, line) for f, line in places if f.parent != LANGUAGE]
                if not places:  # a call with other arguments
                    raise
                file, line = places[-1]
                raise ExpressionError(repr(operator), f"{file.name}, line {line}", str(error)) from error

        return build

    return decorate


class KernelBuilder(KernelText):
    """The parameters and statements of a kernel. ``wide``: indices have 64 bits."""

    def __init__(self, name: str, wide: bool) -> None:
        super().__init__()
        self.name = name
        self.wide = wide
        self.parameters: list[KernelParameter] = []
        self.item = Variable(INDEX, "GLOBAL_ID")
        """The number of the work-item."""
        self.items = Variable(INDEX, "GLOBAL_SIZE")
        """The number of work-items."""
        self.group = Variable(INDEX, "GROUP_ID")
        """The number of the work-group."""
        self.lane = Variable("u32", "LOCAL_ID")
        """The number of the work-item in its group."""
        self._conditional_end = -1
        """The number of lines at the end of the last block made by :meth:`when`."""

    def source(self, group: int | None = None, contract: bool = False) -> Source:
        """Return the kernel. ``group`` and ``contract`` are those of :class:`~candelabra_clike.source.Source`."""
        return Source(self.name, tuple(self.parameters), "\n".join(self._lines), group, self.wide, contract)

    # -- parameters ---------------------------------------------------------------------------------------------------
    def reads(self, name: str, elements: dtype | str) -> KernelArray:
        """Add an array that is only read. ``elements`` is a dtype, or a type that is not converted."""
        return self._buffer(name, elements, written=False)

    def writes(self, name: str, elements: dtype | str) -> KernelArray:
        """Add an array that is written, and may also be read."""
        return self._buffer(name, elements, written=True)

    def _buffer(self, name: str, elements: dtype | str, written: bool) -> KernelArray:
        memory, type, converts = elements, elements, ""
        if isinstance(elements, dtype):
            (memory, _, converts), type = CTYPES[elements], value_type(elements)
        self.parameters.append(KernelParameter(self.new(name), str(memory), buffer=True, written=written))
        return KernelArray(
            self, name, str(type), str(memory), converts, qualifiers="GLOBAL" if written else "GLOBAL const"
        )

    def number(self, name: str, type: str = INDEX) -> Variable:
        """Add a number: an index, or a number of another type."""
        self.parameters.append(KernelParameter(self.new(name), type))
        return Variable(type, name)

    def numbers(self, *names: str) -> list[Variable]:
        """Add several indices."""
        return [self.number(name) for name in names]

    def per_dim(self, prefix: str, rank: int) -> list[Variable]:
        """Add an index for each dim, such as its size or stride: ``n0``, ``n1`` …"""
        return self.numbers(*[f"{prefix}{d}" for d in range(rank)])

    # -- variables ----------------------------------------------------------------------------------------------------
    def let(self, name: str, value: Value) -> Variable:
        """Declare a constant."""
        return self._declare("const ", name, value)

    def variable(self, name: str, value: Value, lanes: int = 1) -> Variable:
        """Declare a variable with its first value, or a vector of them. :meth:`assign` gives it another one."""
        return self._declare("", name, value, lanes)

    def _declare(self, qualifier: str, name: str, value: Value, lanes: int = 1) -> Variable:
        lanes = max(lanes, lanes_of(value))
        printed = self.printed(value, lanes)
        type = _register(value.type) if lanes == 1 else vector_type(value.type, lanes)
        self.line(f"{qualifier}{type} {self.new(name)} = {printed};")
        return Variable(value.type, name) if lanes == 1 else VectorVariable(value.type, name, lanes)

    def assign(self, variable: Variable, value: Operand) -> None:
        """Give a variable another value."""
        assigned = self._assigned(variable, value)
        target = self.printed(variable, lanes_of(variable))
        self.line(f"{target} = {self.printed(assigned, lanes_of(variable))};")

    def assign_all(self, variables: Sequence[Variable], values: Sequence[Operand]) -> None:
        """Give variables other values, as if at the same time. A node that several of them use is computed once."""
        assigned = [self._assigned(variable, value) for variable, value in zip(variables, values, strict=True)]
        with self.block():
            constants = self._shared(assigned)
            made = [self.let(self.unused("new"), replaced(value, constants)) for value in assigned]
            for variable, value in zip(variables, made, strict=True):
                self.assign(variable, value)

    def _assigned(self, variable: Variable, value: Operand) -> Value:
        assigned = as_value(value, variable.type, f"the variable {variable.name!r}")
        if not holds(variable.type, assigned.type):
            raise TypeError(f"the variable {variable.name!r}: expected type {variable.type}, got {assigned.type}")
        return assigned

    def _shared(self, values: Sequence[Value]) -> dict[Value, Value]:
        """Declare a constant for each node that several nodes of some values use."""
        constants: dict[Value, Value] = {}
        for node in shared_nodes(values):
            constants[node] = self.let(self.unused("c"), replaced(node, constants))
        return constants

    def compute(
        self, operator: str, function: Callable[..., Any], known: Mapping[str, Any],
        targets: Sequence[tuple[KernelArray, Value]],
    ) -> None:  # fmt: skip
        """Store the values that a function returns, see :func:`~candelabra_clike.language.declaring.all_declared`. A
        node that several of them use is computed once, in a constant.
        """
        values = all_declared(operator, function, known, [(array.type,) for array, _ in targets])
        constants = self._shared(values)
        for (array, at), value in zip(targets, values, strict=True):
            array[at] = replaced(value, constants)

    def array(self, name: str, type: str, *shape: int, shared: bool = False) -> KernelArray:
        """Declare an array of the work-item, or one that its group shares. Its elements have no values yet."""
        sizes = "".join(f"[{size}]" for size in shape)
        self.line(f"{'LOCAL ' * shared}{type_name(type)} {self.new(name)}{sizes};")
        return KernelArray(self, name, type, type_name(type), rank=len(shape), qualifiers=None)

    def pointer(self, name: str, array: KernelArray, at: Operand = 0) -> KernelArray:
        """Declare an array whose first element is element ``at`` of another one in the memory of the device."""
        if array.qualifiers is None:
            raise TypeError(f"the array {array.name!r} is not in the memory of the device")
        self.line(f"{array.qualifiers} {array.memory}* {self.new(name)} = {array.pointer_text(at)};")
        return KernelArray(self, name, array.type, array.memory, array.converts, qualifiers=array.qualifiers)

    def point(self, pointer: KernelArray, array: KernelArray, at: Operand = 0) -> None:
        """Give an array made by :meth:`pointer` another first element."""
        if (pointer.memory, pointer.qualifiers) != (array.memory, array.qualifiers):
            both = f"{pointer.name!r} of {pointer.memory} and {array.name!r} of {array.memory}"
            raise TypeError(f"the arrays {both} differ in elements, or in whether they are written")
        self.line(f"{pointer.name} = {array.pointer_text(at)};")

    def swap(self, first: KernelArray, second: KernelArray) -> None:
        """Exchange the elements that two arrays made by :meth:`pointer` refer to."""
        if (first.memory, first.qualifiers) != (second.memory, second.qualifiers):
            both = f"{first.name!r} of {first.memory} and {second.name!r} of {second.memory}"
            raise TypeError(f"the arrays {both} cannot be exchanged")
        held = f"{first.qualifiers} {first.memory}* held = {first.name};"
        self.line(f"{{ {held} {first.name} = {second.name}; {second.name} = held; }}")

    def vector(self, name: str, array: KernelArray, count: int) -> KernelVector:
        """Declare the vector of a lane, for elements of an array. Its elements have no values yet."""
        lanes = LaneVector(self.new(name), array.memory, count)
        self.line(lanes.declaration().rstrip())
        return KernelVector(self, lanes, array)

    def copy(self, to: KernelArray, at: Operand, source: KernelArray, index: Operand) -> None:
        """Copy an element as it is in memory."""
        if to.memory != source.memory:
            raise TypeError(f"an element of {source.name!r} of {source.memory} is none of {to.name!r} of {to.memory}")
        target, element = (self.printed(array.in_memory(i)) for array, i in ((to, at), (source, index)))
        self.line(f"{target} = {element};")

    def fill(
        self, array: KernelArray, count: Operand, number: int | float = 0, *, independent: bool = False
    ) -> KernelArray:
        """Give the first elements of an array a number, and return the array."""
        with self.loop("filled", 0, count, independent=independent) as filled:
            array[filled] = number
        return array

    # -- control ------------------------------------------------------------------------------------------------------
    @contextmanager
    def loop(
        self, name: str, start: Operand, stop: Operand, step: Operand = 1, *, independent: bool = False,
        few: bool = False, unrolled: bool = False,
    ) -> Iterator[Variable]:  # fmt: skip
        """A loop over the integers from ``start`` to below ``stop``, of the type of ``stop``, or else of ``start``.

        ``stop`` and ``step`` are computed before each iteration. ``independent`` and ``unrolled`` are the words
        INDEPENDENT and UNROLL of the dialect; with ``few`` iterations, the first one is INDEPENDENT_FEW.
        """
        type = next((x.type for x in (stop, start) if isinstance(x, Value)), "i32")
        first, last, steps = (as_value(x, type, "the bound of a loop") for x in (start, stop, step))
        if type not in INTEGERS or not holds(type, first.type) or not holds(type, steps.type):
            by = f" by {steps.type}" if isinstance(step, Value) else ""
            raise TypeError(f"a loop from {first.type} to {last.type}{by}: it needs integers of one type")
        self.printed(last)
        counter = Variable(type, name)
        each = f"{name} += {self.printed(steps)}" if isinstance(step, Value) or step != 1 else f"++{name}"
        words = f"INDEPENDENT{'_FEW' * few}\n" * independent + "UNROLL\n" * unrolled
        head = f"for ({type_name(type)} {name} = {self.printed(first)}; {text(counter < last)}; {each}) {{"
        with self._block(words + head, name):
            yield counter

    @contextmanager
    def vectors(self, name: str, start: Operand, stop: Value, lanes: int, together: int = 1) -> Iterator[VectorCounter]:
        """A loop over vectors of a processor, or several ``together``, see :mod:`candelabra_clike.language.simd`. It
        begins an iteration while the first lane is below ``stop``.
        """
        with self.loop(name, start, stop, lanes * together) as counter:
            yield VectorCounter(counter.type, name, lanes)

    @contextmanager
    def share(self, name: str, total: Value, each: Value) -> Iterator[Variable]:
        """A loop of the work-item over its share of ``total`` iterations, which has ``each`` of them at most."""
        begin = self.let("begin", self.item * each)
        with self.loop(name, begin, self.let("end", begin + least(total - begin, each))) as i:
            yield i

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """A block that runs if a condition holds."""
        with self._block(f"if ({self._condition(condition)}) {{"):
            yield
        self._conditional_end = len(self._lines)

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """A block that runs if the condition of the block before, made by :meth:`when`, does not hold."""
        if self._conditional_end != len(self._lines):
            raise TypeError("otherwise() stands after a block of when()")
        with self._block("else {"):
            yield

    @contextmanager
    def block(self) -> Iterator[None]:
        """A block of its own, at whose end its variables end."""
        with self._block("{"):
            yield

    @contextmanager
    def repeat(self, condition: Value) -> Iterator[None]:
        """A block that runs again and again while a condition holds."""
        with self._block(f"while ({self._condition(condition)}) {{"):
            yield

    def next(self) -> None:
        """Go on with the next iteration of the loop."""
        self.line("continue;")

    def leave(self) -> None:
        """End the innermost loop."""
        self.line("break;")

    def barrier(self) -> None:
        """Wait for the work-items of the group."""
        self.line("BARRIER;")

    def run(self, name: str, *arguments: Value | KernelArray) -> None:
        """Call a library function for its effect."""
        printed = [a.name if isinstance(a, KernelArray) else self.printed(a) for a in arguments]
        self.line(f"{name}({', '.join(printed)});")

    def expand(self, macro: str, *arguments: Value | str, declares: Sequence[Variable]) -> None:
        """Expand a macro of the library that declares variables. Arguments that are texts are names of functions."""
        printed = ", ".join(a if isinstance(a, str) else self.printed(a) for a in arguments)
        self.line(f"{macro}({printed})")
        for variable in declares:
            self.new(variable.name)

    def _condition(self, condition: Value) -> str:
        if condition.type not in INTEGERS:
            raise TypeError(f"a condition of type {condition.type}: compare it with a number")
        return self.printed(condition)


def statements(known: Iterable[str], write: Callable[[KernelBuilder], None]) -> str:
    """Return the statements that a function adds, for a text which declares these names."""
    k = KernelBuilder("", wide=False)
    for name in known:
        k.new(name)
    write(k)
    return "".join(f"{line}\n" for line in k._lines)


def least(first: Value, second: Operand) -> Value:
    """Return the smaller of two integers."""
    return select(first < second, first, second)


def _register(type: str) -> str:
    """Return the C type of a variable: bools are integers of 32 bits."""
    return "u32" if type == "bool" else type_name(type)

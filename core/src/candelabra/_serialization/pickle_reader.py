"""Read a pickle as data: build numbers, strings and containers, and never import or call an object of the pickle.

A pickle is a program for a small stack machine (the opcodes and their arguments: `pickletools` in the standard library;
the machine: PEP 3154, and the comments in `pickletools`). Unpickling runs it, and two of its instructions look up any
importable object and call it. Here these two instructions accept only the names in a table of the caller, which maps
them to functions of this package. Every other name raises an error.

Other attacks by a file:

- *Deep nesting*: no function recurses over the data.
- *Hashing*: a deep tuple overflows the C stack, and the hashes of tuples and long ints, unlike those of strings, can be
  chosen to collide. So keys are strings and numbers of 64 bits, and indices numbers of 32 bits.
- *Copies*: one instruction of two bytes may copy a list of a million items repeatedly. Copied items are deducted from a
  budget of the pickle's own size.
- *Cycles* and shared containers: containers keep their identity, and each is visited once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

from candelabra._annotations import Any, BinaryIO, NamedTuple
from candelabra._serialization.kinds import kind_of
from candelabra.errors import FileFormatError

__all__ = ["DICTS", "Builder", "PickleReader", "is_key"]

PLAIN = (str, int, float, complex, bytes, bytearray, set, frozenset, type(None))
DICTS = (dict, OrderedDict)
_CONTAINERS = (list, *DICTS, tuple)
_SIZED = (str, bytes, bytearray, list, tuple, *DICTS, set, frozenset)

_PUSHES_ARGUMENT = frozenset(
    [
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    ]
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_FROM_MARK: dict[str, type] = {"TUPLE": tuple, "LIST": list}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])
_GETS = frozenset(["GET", "BINGET", "LONG_BINGET"])
_IGNORED = frozenset(["PROTO", "FRAME"])


class Builder(NamedTuple):
    """The replacement of a class or function of the pickle: a function that gets the arguments as a tuple.

    It raises TypeError or ValueError for invalid arguments, does not recurse over them, takes time linear in their
    length, and returns a new object.
    """

    name: str
    build: Callable[[tuple[Any, ...]], object]


def is_key(value: object) -> bool:
    """Return whether a value may be a key of a dict or an item of a set: str, bytes, float, None, an int of 64 bits."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, str | bytes | float | None)


class PickleReader:
    """A reader of one pickle. Call `read`, then `finish`.

    Args:
        file: the name of the file in errors.
        names: the replacements of "module.name": a `Builder`, or a value.
        persistent: returns the object for a persistent id (an object that the pickle refers to and does not contain).
    """

    def __init__(
        self, file: str, names: Mapping[str, object], persistent: Callable[[object], object] | None = None
    ) -> None:
        self.file = file
        self.names = names
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.containers: list[Any] = []
        self.budget = 0

    def read(self, f: BinaryIO) -> object:
        """Read the pickle that begins at the position of ``f``, and leave ``f`` after its end.

        The result may contain objects that `Builder`s and ``persistent`` have created; `finish` replaces them.

        Raises:
            FileFormatError: truncated or damaged, or a name that is not in the table.
        """
        import pickletools

        start = f.tell()
        self.budget = f.seek(0, 2) - start
        f.seek(start)
        operations = pickletools.genops(f)
        while True:
            try:
                opcode, argument, _ = next(operations)
            except (ValueError, OverflowError, Warning) as error:  # Warning: for invalid escapes
                raise self._damaged("a pickle", f"{type(error).__name__}: {error}") from None
            if opcode.name == "STOP":
                return self._pop()
            self._step(opcode.name, argument)

    def finish(self, root: object, replace: Callable[[object], object]) -> object:
        """Return ``root`` after replacing each object other than plain values and containers by ``replace(value)``.

        Containers are recorded when they are created, a tuple after those in it, so this is a loop without recursion.
        """
        replaced: dict[int, object] = {}
        kept: list[object] = []  # an id is valid only while its object is alive

        def resolve(value: object) -> object:
            if isinstance(value, Builder):
                raise self._damaged("values", f"the class or function {value.name} as a value")
            if id(value) not in replaced:
                if isinstance(value, PLAIN) or type(value) in _CONTAINERS:
                    return value
                replaced[id(value)] = replace(value)
                kept.append(value)
            return replaced[id(value)]

        containers = self._within(root)
        for container in containers:
            if type(container) is tuple:
                replaced[id(container)] = tuple(map(resolve, container))
        for container in containers:
            if type(container) is list:
                container[:] = map(resolve, container)
            elif type(container) in DICTS:
                for key, value in container.items():
                    container[key] = resolve(value)
        return resolve(root)

    def _within(self, root: object) -> list[Any]:
        """Return the containers that are reachable from ``root``, oldest first. The others were only arguments."""
        found: dict[int, object] = {}
        ahead = [root]
        while ahead:
            value: Any = ahead.pop()
            if type(value) in _CONTAINERS and id(value) not in found:
                found[id(value)] = value
                ahead.extend(value.values() if type(value) in DICTS else value)
                if type(value) is OrderedDict:
                    ahead.extend(vars(value).values())
        return [found.pop(id(container)) for container in self.containers if id(container) in found]

    def _step(self, name: str, argument: Any) -> None:
        if name in _PUSHES_ARGUMENT:
            self.stack.append(argument)
        elif name in _PUTS:
            self.memo[self._index(argument)] = self._top()
        elif name in _GETS:
            self.stack.append(self._remembered(argument))
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            items = [self._pop() for _ in range(_TUPLES[name])]
            self._push_container(tuple(reversed(items)))
        elif name in _FROM_MARK:
            self._push_container(_FROM_MARK[name](self._pop_to_mark()))
        elif name not in _IGNORED:
            operation = _OPERATIONS.get(name)
            if operation is None:
                raise self._damaged("opcodes that build values", f"{name} {argument or ''}".strip())
            operation(self, argument)

    # The stack. A mark is the height at which it was set.

    def _pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise self._damaged("a value on the stack of the pickle", "none")
        return self.stack.pop()

    def _top(self) -> Any:
        value = self._pop()
        self.stack.append(value)
        return value

    def _pop_to_mark(self) -> list[Any]:
        if not self.marks:
            raise self._damaged("a mark on the stack of the pickle", "none")
        height = self.marks.pop()
        items = self.stack[height:]
        del self.stack[height:]
        return items

    def _push_container(self, container: Any) -> None:
        self.containers.append(container)
        self.stack.append(container)

    def _index(self, index: int) -> int:
        """Return the index of an object to store, which PUT has as text: the hashes of longer ints may collide."""
        if not 0 <= index < 2**32:
            raise self._damaged("an index of 32 bits", "another")
        return index

    def _remembered(self, index: int) -> Any:
        if index not in self.memo:
            raise self._damaged("an object that was stored", f"number {index}, which was not")
        return self.memo[index]

    # The opcodes that do more than push.

    def mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def pop(self, _: Any) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self._pop()

    def pop_mark(self, _: Any) -> None:
        self._pop_to_mark()

    def append(self, _: Any) -> None:
        self._extend([self._pop()])

    def append_many(self, _: Any) -> None:
        self._extend(self._pop_to_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise self._damaged("a list to append to", kind_of(target))
        target.extend(items)

    def set_item(self, _: Any) -> None:
        value = self._pop()
        self._update(self._top_below_one(), [self._pop(), value])

    def _top_below_one(self) -> Any:
        key = self._pop()
        target = self._top()
        self.stack.append(key)
        return target

    def set_many(self, _: Any) -> None:
        pairs = self._pop_to_mark()
        self._update(self._top(), pairs)

    def new_dict(self, _: Any) -> None:
        pairs = self._pop_to_mark()
        self._push_container({})
        self._update(self.stack[-1], pairs)

    def _update(self, target: Any, pairs: list[Any]) -> None:
        if type(target) not in DICTS or len(pairs) % 2:
            raise self._damaged("a dict, and pairs for it", f"{kind_of(target)} and {len(pairs)} values")
        for key, value in zip(pairs[::2], pairs[1::2]):
            target[self.key(key)] = value

    def add_many(self, _: Any) -> None:
        items = self._pop_to_mark()
        target = self._top()
        if type(target) is not set:
            raise self._damaged("a set to add to", kind_of(target))
        target.update(map(self.key, items))

    def frozen_set(self, _: Any) -> None:
        self.stack.append(frozenset(map(self.key, self._pop_to_mark())))

    def look_up(self, argument: str) -> None:
        name = argument.replace(" ", ".", 1)
        if name not in self.names:
            raise self._damaged(
                "numbers, strings, containers and tensors",
                name[:200],
                "candelabra imports and calls nothing that a file names; save the state_dict of a module, and plain "
                "numbers instead of NumPy's",
            )
        self.stack.append(self.names[name])

    def look_up_on_stack(self, _: Any) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise self._damaged("a name", f"{kind_of(module)} and {kind_of(name)}")
        self.look_up(f"{module} {name}")

    def call(self, _: Any) -> None:
        arguments, builder = self._pop(), self._pop()
        if type(arguments) is not tuple or not isinstance(builder, Builder):
            raise self._damaged(
                "a known class or function and its arguments",
                f"{kind_of(builder)} and {kind_of(arguments)}",
            )
        try:
            self.pay(sum(len(value) for value in arguments if isinstance(value, _SIZED)))
            result = builder.build(arguments)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise self._damaged(f"arguments of {builder.name}", f"{type(error).__name__}: {error}") from None
        if type(result) in _CONTAINERS:
            self.containers.append(result)
        self.stack.append(result)

    def set_state(self, _: Any) -> None:
        """Execute BUILD, which sets attributes. Only an OrderedDict or a dict may have any, and only the ``_metadata``
        of an OrderedDict, which is a dict, is kept: the others are dropped.
        """
        state = self._pop()
        target = self._top()
        if type(target) not in DICTS:
            raise self._damaged("an OrderedDict to set attributes of", kind_of(target))
        metadata = state.get("_metadata") if type(state) in DICTS else None
        if type(target) is OrderedDict and type(metadata) in DICTS:
            target._metadata = metadata  # type: ignore[attr-defined]

    def refer(self, argument: Any) -> None:
        if self.persistent is None:
            raise self._damaged("a pickle of its own", "a reference to an object outside it")
        self.stack.append(self.persistent(argument))

    def pay(self, items: int) -> None:
        """Deduct the copying of a number of items from the budget."""
        self.budget -= items
        if self.budget < 0:
            raise self._damaged("copies of as many items as the pickle has bytes", "more", "the file may be malicious")

    def key(self, key: Any) -> Any:
        """Return ``key`` if `is_key`, or raise FileFormatError."""
        if not is_key(key):
            raise self._damaged("plain values as keys", kind_of(key))
        return key

    def _damaged(self, expected: str, got: str, hint: str = "") -> FileFormatError:
        return FileFormatError(self.file, expected, got, hint)


_OPERATIONS: dict[str, Callable[[PickleReader, Any], None]] = {
    "MARK": PickleReader.mark,
    "POP": PickleReader.pop,
    "POP_MARK": PickleReader.pop_mark,
    "DUP": lambda reader, _: reader.stack.append(reader._top()),
    "MEMOIZE": lambda reader, _: reader.memo.__setitem__(len(reader.memo), reader._top()),
    "EMPTY_LIST": lambda reader, _: reader._push_container([]),
    "EMPTY_DICT": lambda reader, _: reader._push_container({}),
    "EMPTY_SET": lambda reader, _: reader.stack.append(set()),
    "APPEND": PickleReader.append,
    "APPENDS": PickleReader.append_many,
    "SETITEM": PickleReader.set_item,
    "SETITEMS": PickleReader.set_many,
    "DICT": PickleReader.new_dict,
    "ADDITEMS": PickleReader.add_many,
    "FROZENSET": PickleReader.frozen_set,
    "GLOBAL": PickleReader.look_up,
    "STACK_GLOBAL": PickleReader.look_up_on_stack,
    "REDUCE": PickleReader.call,
    "BUILD": PickleReader.set_state,
    "PERSID": PickleReader.refer,
    "BINPERSID": lambda reader, _: reader.refer(reader._pop()),
}

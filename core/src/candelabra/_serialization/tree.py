"""Encode nested Python containers as a JSON document that refers to tensors by name.

    {"epoch": 3, "model": {"weight": T}}  <->  {"epoch": 3, "model": {"weight": {"$tensor": "model.weight"}}}

None, bool, str, finite float, int, list, and dict with str keys are plain JSON. Other values are an object with one key
that begins with "$":

    $tensor    the name of a tensor            $tuple     [item, ...]
    $dict      [[key, value], ...]             $float     "nan", "inf" or "-inf"
    $int       "0x..." beyond 64 bits          $complex   [real, imaginary]
    $sparse    [indices, values, shape, whether coalesced]; the first two are tensors
    $state_dict [{...}, metadata] of an OrderedDict with the attribute _metadata, as state_dict() of a module returns
    $object    {"class": name, "state": {…}} or {"class": name, "arguments": [...]}; see `objects.py`

and in the state or the arguments of an object

    $ref       the number of an object, in the order in which they begin
    $set       [item, ...]                     $ordered   [[key, value], ...] of an OrderedDict
    $function  the name of a function          $dtype, $device  a name

A dict with other keys than str, or with a key that begins with "$", is a $dict. An OrderedDict without
``_metadata`` is decoded as a dict (both keep their order), a tuple subclass without named fields as a tuple, instances
of subclasses of str and of numbers as the plain type. A tensor object that occurs twice is stored once and decoded as
one object; containers are not shared. The names are for people and for other readers of the file: keys joined by ".",
made unique with "#2"; those of the tensors of a module are the keys of its state_dict.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from candelabra._annotations import Any, cast
from candelabra._serialization import objects
from candelabra._serialization.kinds import kind_of

__all__ = ["MAX_DEPTH", "decode", "encode"]

MAX_DEPTH = 100
"""The maximum depth of nested containers, far below Python's recursion limit, for encoding and decoding."""

Node = object
"""Any value that ``json.dumps`` accepts."""

_RESERVED = ("__metadata__", "")  # the first is reserved by safetensors, the second is invisible


def encode(obj: object, is_tensor: Callable[[object], bool]) -> tuple[Node, dict[str, object]]:
    """Return the JSON node of ``obj`` and its tensors by name, in the order of their first occurrence.

    Raises:
        TypeError: ``obj`` contains an unsupported type; the error names its path.
        ValueError: a container contains itself, or containers are nested more deeply than `MAX_DEPTH`.
    """
    encoder = _Encoder(is_tensor)
    return encoder.node(obj, "obj", ()), encoder.tensors


class _Encoder:
    def __init__(self, is_tensor: Callable[[object], bool]) -> None:
        self.is_tensor = is_tensor
        self.tensors: dict[str, object] = {}
        self.names: dict[int, str] = {}  # by id(tensor); `tensors` keeps them alive
        self.open: set[int] = set()  # ids of the containers around the present object
        self.objects: dict[int, tuple[int, object]] = {}  # by id: the number, and the object, which stays alive
        self.inside = 0  # the number of objects around the present one

    def node(self, obj: object, path: str, keys: tuple[object, ...]) -> Node:
        if id(obj) in self.objects:
            return {"$ref": self.objects[id(obj)][0]}
        if self.is_tensor(obj) and not (self.inside and objects.is_rebuilt_tensor(obj)):
            if getattr(obj, "is_sparse", False):
                return self.sparse(obj, path, keys)
            return {"$tensor": self.name(obj, keys)}
        if obj is None or isinstance(obj, bool):
            return obj
        if isinstance(obj, str):
            return str(obj)
        if isinstance(obj, int):
            return int(obj) if -(2**63) <= obj < 2**64 else {"$int": hex(obj)}
        if isinstance(obj, float):
            return float(obj) if math.isfinite(obj) else {"$float": repr(float(obj))}
        if isinstance(obj, complex):
            return {"$complex": [self.node(obj.real, path, keys), self.node(obj.imag, path, keys)]}
        if type(obj) is list or type(obj) is dict or type(obj) is OrderedDict or _is_tuple(obj):
            return self.container(obj, path, keys)
        if self.inside:
            found = self.in_object(obj, path, keys)
            if found is not None:
                return found
        reduced = objects.reduced(obj)
        if reduced is not None:
            return self.instance(obj, reduced, path, keys)
        raise TypeError(
            f"cannot save {path}: {kind_of(obj)}; "
            f"save writes dicts, lists, tuples, numbers, strings, None and tensors{_advice(obj)}"
        )

    def sparse(self, obj: Any, path: str, keys: tuple[object, ...]) -> Node:
        """Return the node of a sparse tensor, whose indices and values are stored as tensors."""
        indices = self.node(obj._indices(), path, (*keys, "indices"))
        values = self.node(obj._values(), path, (*keys, "values"))
        return {"$sparse": [indices, values, list(obj.shape), obj.is_coalesced()]}

    def instance(self, obj: object, reduced: objects.Reduced, path: str, keys: tuple[object, ...]) -> Node:
        """Return the node of an object that is written as data. ``None`` in ``keys`` is left out of names."""
        self.objects[id(obj)] = len(self.objects), obj
        self.inside += 1
        try:
            if reduced.arguments is not None:
                return {"$object": {"class": reduced.name, "arguments": [
                    self.node(item, path, (*keys, None)) for item in reduced.arguments
                ]}}  # fmt: skip
            if not isinstance(reduced.state, dict):
                raise TypeError(f"cannot save {path}: the state of {kind_of(obj)} is {kind_of(reduced.state)}")
            if len(keys) >= MAX_DEPTH:
                raise ValueError(f"cannot save {path}: containers are nested more than {MAX_DEPTH} deep")
            state = {}
            for key, value in reduced.state.items():
                hidden = None if key in objects.MEMBERS else key
                state[key] = self.node(value, f"{path}.{key}", (*keys, hidden))
            return {"$object": {"class": reduced.name, "state": state}}
        finally:
            self.inside -= 1

    def in_object(self, obj: Any, path: str, keys: tuple[object, ...]) -> Node:
        """Return the node of a value that only objects hold, or None."""
        if type(obj) is set:
            return {"$set": self.items(list(obj), path, keys)}
        name = objects.name_of_function(obj)
        if name is not None:
            return {"$function": name}
        if type(obj).__module__ == "candelabra.dtypes" and type(obj).__name__ == "dtype":
            return {"$dtype": obj.name}
        return {"$device": str(obj)} if type(obj).__module__ == "candelabra._device" else None

    def container(self, obj: object, path: str, keys: tuple[object, ...]) -> Node:
        if id(obj) in self.open:
            raise ValueError(f"cannot save {path}: it is one of the containers around it, so the nesting is infinite")
        if len(keys) >= MAX_DEPTH:
            raise ValueError(f"cannot save {path}: containers are nested more than {MAX_DEPTH} deep")
        self.open.add(id(obj))
        try:
            if isinstance(obj, dict):
                return self.mapping(obj, path, keys)
            if isinstance(obj, list):
                return self.items(obj, path, keys)
            return {"$tuple": self.items(cast("tuple[object, ...]", obj), path, keys)}
        finally:
            self.open.discard(id(obj))

    def items(self, items: list[object] | tuple[object, ...], path: str, keys: tuple[object, ...]) -> Node:
        nodes = []
        for i, item in enumerate(items):
            nodes.append(self.node(item, f"{path}[{i}]", (*keys, i)))
        return nodes

    def mapping(self, mapping: dict[object, object], path: str, keys: tuple[object, ...]) -> Node:
        nodes: list[tuple[object, Node]] = []
        for key, value in mapping.items():
            if not _is_key(key):
                raise TypeError(
                    f"cannot save {path}: its key {key!r} is {kind_of(key)}; keys must be str, or int of up to 64 bits"
                )
            nodes.append((key, self.node(value, f"{path}[{key!r}]", (*keys, key))))
        metadata = getattr(mapping, "_metadata", None)
        if metadata and type(mapping) is OrderedDict and all(type(key) is str and key[:1] != "$" for key in mapping):
            note = self.node(dict(metadata), f"{path}._metadata", (*keys, "_metadata"))
            return {"$state_dict": [{str(key): node for key, node in nodes}, note]}
        if self.inside and type(mapping) is OrderedDict:
            return {"$ordered": [[self.node(key, path, keys), node] for key, node in nodes]}
        if all(isinstance(key, str) and not key.startswith("$") for key, _ in nodes):
            return {str(key): node for key, node in nodes}  # of a subclass of str
        return {"$dict": [[self.node(key, path, keys), node] for key, node in nodes]}

    def name(self, tensor: object, keys: tuple[object, ...]) -> str:
        if id(tensor) in self.names:
            return self.names[id(tensor)]
        visible = [str(key) for key in keys if key is not None]
        plain = ".".join(visible) if visible else "tensor"
        plain = plain.encode("utf-8", "backslashreplace").decode()
        name, count = plain, 1
        while name in self.tensors or name in _RESERVED:
            count += 1
            name = f"{plain}#{count}"
        self.names[id(tensor)] = name
        self.tensors[name] = tensor
        return name


def decode(node: Node, tensor: Callable[[str], object]) -> object:
    """Return the object of a node, which may come from an untrusted file; ``tensor`` returns a tensor by its name.

    Raises:
        ValueError: the node has a form that `encode` does not produce, names a class that is not allowed, or is nested
            more deeply than `MAX_DEPTH`.
    """
    return _Decoder(tensor).node(node, 0)


class _Decoder:
    def __init__(self, tensor: Callable[[str], object]) -> None:
        self.tensor = tensor
        self.objects: list[object] = []

    def node(self, node: Node, depth: int) -> object:
        if node is None or isinstance(node, str | int | float):
            return node
        if depth > MAX_DEPTH:
            raise ValueError(f"containers are nested more than {MAX_DEPTH} deep")
        if isinstance(node, list):
            return self.items(node, depth)
        if not isinstance(node, dict):
            raise ValueError(f"{kind_of(node)} is not a JSON value")
        tag = next((key for key in node if key.startswith("$")), None)
        if tag is None:
            result = {}
            for key, value in node.items():
                result[key] = self.node(value, depth + 1)
            return result
        if len(node) != 1:
            raise ValueError(f"{tag} is combined with other keys")
        return self.tagged(tag, node[tag], depth)

    def tagged(self, tag: str, value: Any, depth: int) -> object:
        if tag == "$tensor" and isinstance(value, str):
            return self.tensor(value)
        if tag == "$tuple" and isinstance(value, list):
            return tuple(self.items(value, depth))
        if tag in ("$dict", "$ordered") and isinstance(value, list):
            pairs = self.pairs(value, depth, tag)
            return OrderedDict(pairs) if tag == "$ordered" else pairs
        if tag == "$state_dict" and isinstance(value, list) and len(value) == 2:
            return self.state_dict(value, depth)
        if tag == "$float" and value in ("nan", "inf", "-inf"):
            return float(value)
        if tag == "$int" and isinstance(value, str):
            return int(value, 16)
        if tag == "$complex" and isinstance(value, list) and len(value) == 2:
            real, imaginary = self.items(value, depth)
            if isinstance(real, float) and isinstance(imaginary, float):
                return complex(real, imaginary)
        if tag == "$sparse" and isinstance(value, list) and len(value) == 4:
            from candelabra._sparse.construction import loaded

            return loaded(*self.items(value, depth))
        if tag == "$object" and isinstance(value, dict):
            return self.instance(value, depth)
        if tag == "$ref" and type(value) is int and 0 <= value < len(self.objects):
            found = self.objects[value]
            if found is not None:
                return found
        if tag == "$set" and isinstance(value, list):
            items = self.items(value, depth)
            if all(map(_is_key, items)):
                return set(items)
        if tag in ("$function", "$dtype", "$device") and isinstance(value, str):
            return _named(tag, value)
        raise ValueError(f"{tag} with {kind_of(value)} is not known to this version")

    def state_dict(self, value: list[Node], depth: int) -> object:
        items, metadata = self.items(value, depth)
        if not isinstance(items, dict) or not isinstance(metadata, dict):
            raise ValueError("$state_dict has a dict of entries and one of metadata")
        found: Any = OrderedDict(items)
        found._metadata = OrderedDict(metadata)
        return found

    def instance(self, value: dict[str, Any], depth: int) -> object:
        name = value.get("class")
        if not isinstance(name, str) or len(value) != 2:
            raise ValueError("$object has a class, and a state or arguments")
        index = len(self.objects)
        self.objects.append(None)
        cls = objects.resolved(name)
        if isinstance(value.get("arguments"), list):
            self.objects[index] = found = objects.rebuilt(cls, self.items(value["arguments"], depth + 1))
            return found
        if not isinstance(cls, type) or "state" not in value:
            raise ValueError(f"$object of {name[:200]} has no arguments")
        self.objects[index] = found = objects.empty(cls)
        objects.set_state(found, self.node(value["state"], depth + 1))
        return found

    def items(self, nodes: list[Node], depth: int) -> list[object]:
        items = []
        for node in nodes:
            items.append(self.node(node, depth + 1))
        return items

    def pairs(self, nodes: list[Node], depth: int, tag: str) -> dict[object, object]:
        result: dict[object, object] = {}
        for pair in nodes:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError(f"{tag} contains items other than pairs")
            key = self.node(pair[0], depth + 1)
            if not _is_key(key) or key in result:
                raise ValueError(f"{tag} has a key that is {kind_of(key)}, too long, or a duplicate")
            result[key] = self.node(pair[1], depth + 1)
        return result


def _named(tag: str, name: str) -> object:
    """Return a function, dtype or device by its name."""
    from candelabra._device import device
    from candelabra.dtypes import BY_NAME

    if tag == "$function":
        return objects.function_named(name)
    if tag == "$dtype" and name in BY_NAME:
        return BY_NAME[name]
    if tag == "$device":
        try:
            return device(name)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ValueError(f"$device: {error}") from None
    raise ValueError(f"{tag} {name[:60]!r} is not known to this version")


def _is_key(key: object) -> bool:
    """Return whether a value may be a key. Long ints may not: their hashes can be chosen to collide."""
    return isinstance(key, str) or (isinstance(key, int) and -(2**63) <= key < 2**64)


def _is_tuple(obj: object) -> bool:
    """Return whether a value is a tuple without named fields, which would be lost."""
    return isinstance(obj, tuple) and not hasattr(obj, "_fields")


def _advice(obj: object) -> str:
    """Return advice for unsupported types that users frequently pass, or an empty text."""
    if hasattr(obj, "state_dict"):
        return " (save its state_dict())"
    if isinstance(obj, bytes | bytearray):
        return " (a uint8 tensor can hold bytes)"
    if isinstance(obj, dict):
        return " (convert it with dict(...))"
    if isinstance(obj, tuple):
        return " (convert it with tuple(...))"
    if hasattr(obj, "item") and getattr(obj, "shape", None) == ():
        return " (convert it with its item())"
    return ""

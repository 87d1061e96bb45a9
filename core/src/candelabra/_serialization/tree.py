"""Encode nested Python containers as a JSON document that refers to tensors by name.

    {"epoch": 3, "model": {"weight": T}}  <->  {"epoch": 3, "model": {"weight": {"$tensor": "model.weight"}}}

None, bool, str, finite float, int, list, and dict with str keys are plain JSON. Other values are an object with one key
that begins with "$":

    $tensor    the name of a tensor            $tuple     [item, ...]
    $dict      [[key, value], ...]             $float     "nan", "inf" or "-inf"
    $int       "0x..." beyond 64 bits          $complex   [real, imaginary]

A dict with other keys than str, or with a key that begins with "$", is a $dict. An OrderedDict is decoded as a dict
(both keep their order), a tuple subclass without named fields as a tuple, instances of subclasses of str and of numbers
as the plain type. A tensor object that occurs twice is stored once and decoded as one object; containers are not
shared. The names are for people and for other readers of the file: keys joined by ".", made unique with "#2".
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from candelabra._annotations import cast
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

    def node(self, obj: object, path: str, keys: tuple[object, ...]) -> Node:
        if self.is_tensor(obj):
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
        raise TypeError(
            f"cannot save {path}: {kind_of(obj)}; "
            f"save writes dicts, lists, tuples, numbers, strings, None and tensors{_advice(obj)}"
        )

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
        if all(isinstance(key, str) and not key.startswith("$") for key, _ in nodes):
            return {str(key): node for key, node in nodes}  # of a subclass of str
        return {"$dict": [[self.node(key, path, keys), node] for key, node in nodes]}

    def name(self, tensor: object, keys: tuple[object, ...]) -> str:
        if id(tensor) in self.names:
            return self.names[id(tensor)]
        plain = ".".join(map(str, keys)) if keys else "tensor"
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
        ValueError: the node has a form that `encode` does not produce, or is nested more deeply than `MAX_DEPTH`.
    """
    return _decode(node, tensor, 0)


def _decode(node: Node, tensor: Callable[[str], object], depth: int) -> object:
    if node is None or isinstance(node, str | int | float):
        return node
    if depth > MAX_DEPTH:
        raise ValueError(f"containers are nested more than {MAX_DEPTH} deep")
    if isinstance(node, list):
        return _decode_items(node, tensor, depth)
    if not isinstance(node, dict):
        raise ValueError(f"{kind_of(node)} is not a JSON value")
    tag = next((key for key in node if key.startswith("$")), None)
    if tag is None:
        result = {}
        for key, value in node.items():
            result[key] = _decode(value, tensor, depth + 1)
        return result
    if len(node) != 1:
        raise ValueError(f"{tag} is combined with other keys")
    value = node[tag]
    if tag == "$tensor" and isinstance(value, str):
        return tensor(value)
    if tag == "$tuple" and isinstance(value, list):
        return tuple(_decode_items(value, tensor, depth))
    if tag == "$dict" and isinstance(value, list):
        return _decode_pairs(value, tensor, depth)
    if tag == "$float" and value in ("nan", "inf", "-inf"):
        return float(value)
    if tag == "$int" and isinstance(value, str):
        return int(value, 16)
    if tag == "$complex" and isinstance(value, list) and len(value) == 2:
        real, imaginary = _decode_items(value, tensor, depth)
        if isinstance(real, float) and isinstance(imaginary, float):
            return complex(real, imaginary)
    raise ValueError(f"{tag} with {kind_of(value)} is not known to this version")


def _decode_items(nodes: list[Node], tensor: Callable[[str], object], depth: int) -> list[object]:
    items = []
    for node in nodes:
        items.append(_decode(node, tensor, depth + 1))
    return items


def _decode_pairs(nodes: list[Node], tensor: Callable[[str], object], depth: int) -> dict[object, object]:
    result: dict[object, object] = {}
    for pair in nodes:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError("$dict contains items other than pairs")
        key = _decode(pair[0], tensor, depth + 1)
        if not _is_key(key) or key in result:
            raise ValueError(f"$dict has a key that is {kind_of(key)}, too long, or a duplicate")
        result[key] = _decode(pair[1], tensor, depth + 1)
    return result


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

"""Nested containers as a list of leaves and a structure. As ``torch.utils._pytree``, after JAX's pytrees.

Containers are lists, tuples, named tuples, dicts, OrderedDicts, defaultdicts, deques, and the classes that
:func:`register_pytree_node` knows. Everything else is a leaf, None too. A subclass of a container is a leaf.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable

from candelabra._annotations import Any, Final, NamedTuple

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
Unflatten = Callable[[Iterable[Any], Any], Any]
Leaf = Callable[[Any], bool] | None


class _Kind(NamedTuple):
    """How to take the containers of one class apart (children and context), and how to build one again."""

    flatten: Flatten
    unflatten: Unflatten


class TreeSpec:
    """The structure of a tree: the class of the container, its context (such as keys), and the children's structures.

    ``type`` is None for a leaf. Equal structures compare equal.
    """

    __slots__ = ("children_specs", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type: Final = type
        self.context: Final = context
        self.children_specs: Final = children_specs
        self.num_leaves = 1 if type is None else 0
        for child in children_specs:
            self.num_leaves += child.num_leaves

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with these leaves."""
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self is other or (
            (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, len(self.children_specs)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context!r}, {self.children_specs!r})"


_leaf: Final = TreeSpec(None, None, [])


def LeafSpec() -> TreeSpec:
    """Return the structure of a leaf."""
    return _leaf


def _mapping(build: Callable[[Any, Any], Any], context: Callable[[Any], Any] = list) -> _Kind:
    return _Kind(lambda tree: (tree.values(), context(tree)), build)


_kinds: Final[dict[type, _Kind]] = {
    list: _Kind(lambda tree: (tree, None), lambda children, _: list(children)),
    tuple: _Kind(lambda tree: (tree, None), lambda children, _: tuple(children)),
    deque: _Kind(lambda tree: (tree, tree.maxlen), deque),
    dict: _mapping(lambda children, keys: dict(zip(keys, children, strict=True))),
    OrderedDict: _mapping(lambda children, keys: OrderedDict(zip(keys, children, strict=True))),
    defaultdict: _mapping(
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
        lambda tree: [tree.default_factory, list(tree)],
    ),
}
_named_tuple: Final = _Kind(lambda tree: (tree, type(tree)), lambda children, cls: cls(*children))


def register_pytree_node(cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **options: Any) -> None:
    """Make a class a container.

    ``flatten_fn(tree)`` returns the children and a context; ``unflatten_fn(children, context)`` builds the object.
    Options, which PyTorch uses to write structures to files, are ignored. Raises ``ValueError`` for a class that is a
    container already.
    """
    if cls in _kinds:
        raise ValueError(f"{cls} is already registered as pytree node")
    _kinds[cls] = _Kind(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _kind_of(tree: Any, is_leaf: Leaf) -> _Kind | None:
    """Return how to take a container apart, or None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    cls = type(tree)
    kind = _kinds.get(cls)
    if kind is None and issubclass(cls, tuple) and cls.__bases__ == (tuple,) and hasattr(cls, "_fields"):
        return _named_tuple
    return kind


def tree_flatten(tree: Any, is_leaf: Leaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree in order, and its structure. ``is_leaf`` may make containers leaves."""
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree, is_leaf)


def _flatten_into(leaves: list[Any], tree: Any, is_leaf: Leaf) -> TreeSpec:
    children: Iterable[Any]
    if is_leaf is None and type(tree) is tuple:  # by far the most frequent container
        kind, children, context = None, tree, None
    else:
        kind = _kind_of(tree, is_leaf)
        if kind is None:
            leaves.append(tree)
            return _leaf
        children, context = kind.flatten(tree)
    specs = []
    for child in children:
        if is_leaf is None and type(child) not in _kinds and not isinstance(child, tuple):
            leaves.append(child)
            specs.append(_leaf)
        else:
            specs.append(_flatten_into(leaves, child, is_leaf))
    return TreeSpec(namedtuple if kind is _named_tuple else type(tree), context, specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return the tree of a structure with these leaves. Raises ``ValueError`` if their number is another."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(): treespec must be a TreeSpec, not {type(treespec).__name__}")
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(): the structure has {treespec.num_leaves} leaves, but {len(leaves)} were given: "
            f"{treespec}"
        )
    return _build(iter(leaves), treespec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [next(leaves) if child.type is None else _build(leaves, child) for child in spec.children_specs]
    if spec.type is tuple:
        return tuple(children)
    kind = _named_tuple if spec.type is namedtuple else _kinds[spec.type]
    return kind.unflatten(children, spec.context)


def tree_iter(tree: Any, is_leaf: Leaf = None) -> Iterable[Any]:
    """Return an iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    """Return the leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Leaf = None) -> TreeSpec:
    """Return the structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: Leaf = None) -> bool:
    """Return whether a value is a leaf."""
    return _kind_of(tree, is_leaf) is None


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """Return the tree of the results of ``func`` on each leaf, and on the leaves at its place in ``rests``.

    Raises ``ValueError`` if a tree of ``rests`` has another structure.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *(_leaves_at(spec, other, is_leaf) for other in rests)), spec)


def _leaves_at(spec: TreeSpec, tree: Any, is_leaf: Leaf) -> list[Any]:
    """Return the subtrees of ``tree`` at the places of the structure's leaves."""
    if spec.type is None:
        return [tree]
    kind = _kind_of(tree, is_leaf)
    children, context = ((), None) if kind is None else kind.flatten(tree)
    children, expected = list(children), spec.context
    if isinstance(tree, dict) and type(tree) is spec.type:  # the order of keys does not matter
        keys = expected[1] if spec.type is defaultdict else expected
        children, context = [tree[k] for k in keys if k in tree], expected
    found = namedtuple if kind is _named_tuple else type(tree)
    if kind is None or (found, context, len(children)) != (spec.type, expected, spec.num_children):
        raise ValueError(f"tree_map(): the trees have different structures: expected {spec}, got {tree!r}")
    pairs = zip(spec.children_specs, children, strict=True)
    return [leaf for child, subtree in pairs for leaf in _leaves_at(child, subtree, is_leaf)]


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Leaf = None) -> Any:
    """Call ``func`` on each leaf for its effect, and return the tree. See :func:`tree_map`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(types: Any, func: Callable[[Any], Any]) -> Callable[[Any], Any]:
    chosen = types if callable(types) and not isinstance(types, type) else lambda x: isinstance(x, types)

    @functools.wraps(func)
    def apply(x: Any) -> Any:
        return func(x) if chosen(x) else x

    return apply


def tree_map_only(types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Leaf = None) -> Any:
    """Apply ``func`` to the leaves of a class, of one of several classes, or for which a function is true."""
    return tree_map(_only(types, func), tree, is_leaf=is_leaf)


def tree_map_only_(types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Leaf = None) -> Any:
    """Call ``func`` on such leaves for its effect, and return the tree. See :func:`tree_map_only`."""
    return tree_map_(_only(types, func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    """Return whether ``pred`` is true for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Leaf = None) -> bool:
    """Return whether ``pred`` is true for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


__all__ = [
    "LeafSpec", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_structure", "tree_unflatten",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

"""``utils._pytree``: nested containers as leaves and a structure."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import candelabra as cd
import pytest
from candelabra.utils._pytree import (
    LeafSpec,
    TreeSpec,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_structure,
    tree_unflatten,
)  # fmt: skip

Point = namedtuple("Point", "x y")
TREES: list[tuple[Any, list[Any]]] = [
    ([1, (2, None)], [1, 2, None]),
    ({"b": 1, "a": [2]}, [1, 2]),
    (Point(1, (2, 3)), [1, 2, 3]),
    (OrderedDict(b=1, a=2), [1, 2]),
    (defaultdict(list, {"k": 5}), [5]),
    (deque([1, 2], maxlen=3), [1, 2]),
    ((), []),
    (7, [7]),
]


@pytest.mark.parametrize(("tree", "leaves"), TREES, ids=lambda v: str(v)[:20])
def test_a_tree_comes_back_from_its_leaves_and_its_structure(tree: Any, leaves: list[Any]) -> None:
    """Flattening gives the leaves in order; unflattening gives an equal tree of the same classes."""
    found, spec = tree_flatten(tree)
    assert found == leaves == tree_leaves(tree) == list(tree_iter(tree))
    assert spec == tree_structure(tree)
    assert spec.num_leaves == len(leaves)
    back = spec.unflatten(found)
    assert back == tree
    assert type(back) is type(tree)
    if isinstance(tree, deque):
        assert back.maxlen == tree.maxlen
    if isinstance(tree, defaultdict):
        assert back.default_factory is list


def test_structures_print_and_compare() -> None:
    """Leaves are stars. Structures with other keys or classes differ."""
    spec = tree_structure({"a": [1, 2]})
    assert repr(spec) == "TreeSpec(dict, ['a'], [TreeSpec(list, None, [*, *])])"
    assert spec != tree_structure({"b": [1, 2]})
    assert spec != tree_structure({"a": (1, 2)})
    assert spec != "spec"
    assert hash(spec) == hash(tree_structure({"a": [3, 4]}))
    assert tree_structure(3) == LeafSpec()
    assert LeafSpec().is_leaf()
    assert not spec.is_leaf()
    assert isinstance(spec, TreeSpec)


def test_map_works_on_several_trees() -> None:
    """The function receives the leaves at the same place; subtrees of later trees may stand at leaves of the first."""
    assert tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {"a": (1, 4), "b": (2, 3)}
    assert tree_map(lambda a, b: [a, b], [1, 2], [3, (4, 5)]) == [[1, 3], [2, (4, 5)]]
    with pytest.raises(ValueError, match=r"different structures: expected TreeSpec\(list, None, \[\*\]\), got \(3,\)"):
        tree_map(max, [1], (3,))
    for other in ({"b": 1}, 5, {}):
        with pytest.raises(ValueError, match="the trees have different structures"):
            tree_map(max, {"a": 1}, other)


def test_map_only_chooses_leaves() -> None:
    """By a class, several classes or a function."""
    tree = [1, 2.0, "a"]
    assert tree_map_only(int, lambda x: x + 1, tree) == [2, 2.0, "a"]
    assert tree_map_only((int, str), lambda x: x * 2, tree) == [2, 2.0, "aa"]
    assert tree_map_only(lambda x: x == 1, str, tree) == ["1", 2.0, "a"]
    seen: list[Any] = []
    assert tree_map_(seen.append, tree) is tree
    assert tree_map_only_(int, seen.append, tree) is tree
    assert seen == [1, 2.0, "a", 1]


def test_leaves_may_be_chosen() -> None:
    """``is_leaf`` stops at containers. A subclass of a container is a leaf."""
    assert tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert tree_is_leaf(cd.Size([1, 2]))
    assert not tree_is_leaf([1])
    assert tree_all(lambda x: x > 0, [1, (2,)])
    assert tree_any(lambda x: x > 1, [1, (2,)])
    assert not tree_any(bool, [])


def test_classes_become_containers() -> None:
    """A registered class is flattened and built again; it can be registered once."""

    class Pair:
        def __init__(self, a: Any, b: Any, tag: str) -> None:
            self.a, self.b, self.tag = a, b, tag

    register_pytree_node(Pair, lambda p: ([p.a, p.b], p.tag), lambda c, tag: Pair(*c, tag))
    doubled = tree_map(lambda x: 2 * x, [Pair(1, cd.ones(2), "t")])[0]
    assert (doubled.a, doubled.b.tolist(), doubled.tag) == (2, [2, 2], "t")
    with pytest.raises(ValueError, match="already registered as pytree node"):
        register_pytree_node(Pair, lambda p: ([], None), lambda c, _: None)


def test_wrong_leaves_are_refused() -> None:
    """Another number of leaves, and a structure that is none."""
    with pytest.raises(ValueError, match="the structure has 2 leaves, but 1 were given"):
        tree_unflatten([1], tree_structure([1, 2]))
    with pytest.raises(TypeError, match="treespec must be a TreeSpec, not int"):
        tree_unflatten([1], 3)  # type: ignore[arg-type]
    assert cd.utils._pytree.tree_map is tree_map

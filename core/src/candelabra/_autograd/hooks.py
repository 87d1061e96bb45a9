"""Hooks on tensors and nodes, and handles that remove them."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra._autograd.node import Node
    from candelabra._tensor import Tensor


class RemovableHandle:
    """A handle that removes a hook: call ``handle.remove()`` or use it as a context manager."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], key: int) -> None:
        self._hooks = hooks
        self.id = key

    def remove(self) -> None:
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def add_hook(hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    """Append ``hook`` to an ordered dictionary of hooks."""
    if not callable(hook):
        raise TypeError(f"a hook must be callable, got {type(hook).__name__}")
    key = next(reversed(hooks), -1) + 1
    hooks[key] = hook
    return RemovableHandle(hooks, key)


class NodeHooks:
    """The hooks of one node: on its output's gradient, before the node runs, and after it."""

    __slots__ = ("after", "before", "post_accumulate", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}
        self.retain: Callable[[Any], None] | None = None
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.post_accumulate: dict[int, Callable[..., Any]] = {}

    def add(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(getattr(self, kind), hook)

    def functions(self) -> list[Callable[..., Any]]:
        """Return the hooks of all kinds."""
        retain = [] if self.retain is None else [self.retain]
        return [*self.tensor.values(), *retain, *self.before.values(), *self.after.values(),
                *self.post_accumulate.values()]  # fmt: skip

    def on_gradient(self, g: Tensor) -> Tensor:
        """Run the tensor hooks on the gradient of the node's (single) output, then retain it if requested."""
        for hook in list(self.tensor.values()):
            new = hook(g)
            if new is not None:
                g = _checked(new, g)
        if self.retain is not None:
            self.retain(g)
        return g

    def run_before(self, gs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.before.values()):
            new = hook(gs)
            if new is not None:
                gs = new if isinstance(new, tuple) else (new,)
        return gs

    def run_after(self, results: tuple[Any, ...], gs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self.after.values()):
            new = hook(results, gs)
            if new is not None:
                results = new if isinstance(new, tuple) else (new,)
        return results


def _checked(new: Any, g: Tensor) -> Tensor:
    if not hasattr(new, "_payload"):
        raise TypeError(f"a tensor hook must return None or a Tensor, got {type(new).__name__}")
    if new.shape != g.shape or new.dtype is not g.dtype:
        raise RuntimeError(
            f"hook has changed the gradient: expected shape {list(g.shape)} and {g.dtype}, got {list(new.shape)} and "
            f"{new.dtype}"
        )
    checked: Tensor = new
    return checked


def hooks_of(node: Node) -> NodeHooks:
    """Return the node's hooks, which are created at the first call."""
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


def retain_gradient(tensor: Tensor) -> None:
    """See ``Tensor.retain_grad``."""
    from weakref import ref

    node = tensor._fresh()._node
    if node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if node.is_leaf:
        return
    owner = ref(tensor)

    def keep(g: Tensor) -> None:
        alive = owner()
        if alive is not None:
            present = alive.grad
            alive._grad = g if present is None else present + g

    hooks_of(node).retain = keep

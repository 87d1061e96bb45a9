"""The tape of one derivative of a function: reverse mode on the graph of the innermost level.

The variables are tensors of that level, where the function runs. Derivatives inside the function use the same graph: an
inner one keeps its graph if an outer one, or the caller, records what it depends on.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import Any
from candelabra._autograd.api import gradients_of
from candelabra._autograd.filling import zeros_like
from candelabra._dispatch.levels import innermost
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, mode, state
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra._transforms.level import levelled, modes_of_level, without_ended_levels
from candelabra.utils._pytree import tree_map


class Tape:
    """The recording of one function call: the variables, and the way from its results to their gradients.

    Use it as a context manager around the call. Afterwards :meth:`gradients` may be called any number of times.
    """

    def __init__(self) -> None:
        self.level = innermost()
        self.depth: int = 0 if self.level is None else self.level.depth
        self.variables: list[Tensor] = []
        self.recorded_outside = False
        """Whether the caller records on the level of the variables, so that the gradients must have graphs, too."""
        self._bits = state.bits

    def __enter__(self) -> Tape:
        self._mode = mode(exclude=NO_GRAD)
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)

    def variable(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the tape's level that requires grad, with the content of ``tensor``.

        It stays connected to the graph that the caller records on the same level.
        """
        out: Tensor
        if self.level is not None and not tensor._keys & self.level.instance.bit:
            out = self.level.adopt(tensor)
        elif tensor._fresh()._node is not None and not self._bits & NO_GRAD:
            self.recorded_outside = True
            out = OPERATORS["alias"].canonical(tensor)
        else:
            out = wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))
            out._counter = tensor._counter
        if out._node is None:
            out.requires_grad_()
        self.variables.append(out)
        return out

    def gradients(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor | None] | None,
        keep: bool,
        release: bool = False,
    ) -> list[Tensor]:
        """Return the gradients of the variables: zeros for those that the outputs do not depend on.

        ``keep``: record the backward pass, for a derivative outside. ``release``: the graph is not needed any more.
        """
        reached = [i for i, out in enumerate(outputs) if out._fresh()._node is not None]
        found: list[Any] = [None] * len(self.variables)
        if reached and found:
            given = None if cotangents is None else [cotangents[i] for i in reached]
            # The pass may run on a level further inside, in vmap over cotangents: set the modes of this one, too.
            with modes_of_level(self.depth, *((0, NO_GRAD) if keep else (NO_GRAD, 0))):
                found = list(
                    gradients_of(
                        [outputs[i] for i in reached],
                        self.variables,
                        given,
                        retain_graph=keep or not release,
                        create_graph=keep,
                        allow_unused=True,
                    )
                )
        return [
            self.result(zeros_like(v) if g is None else g, keep) for v, g in zip(self.variables, found, strict=True)
        ]

    def keeps_graph(self, outputs: Sequence[Tensor]) -> bool:
        """Return whether the gradients must have graphs: the caller records, and a captured tensor requires grad."""
        if self._bits & NO_GRAD:
            return False
        return self.recorded_outside or _has_other_leaves(outputs, self.variables)

    def keeps_graph_for(self, cotangents: Sequence[Tensor], keep: bool) -> bool:
        """Return whether gradients must have graphs: the caller records them, by the variables or by the cotangents."""
        return not state.bits & NO_GRAD and (keep or any(map(self._is_recorded, cotangents)))

    def _is_recorded(self, tensor: Tensor) -> bool:
        """Return whether a tensor requires grad on this tape's level or on one inside it."""
        while tensor._fresh()._node is None and tensor._instance.depth > self.depth:
            tensor = tensor._payload.tensor
        return tensor._node is not None

    def result(self, value: Any, keep: bool) -> Any:
        """Return a tensor for the caller, without the graph of the tape unless it is kept. Other values are kept."""
        if not isinstance(value, Tensor):
            return value
        value = without_ended_levels(value)
        return value if keep or value._instance.depth != self.depth else levelled(value)

    def results(self, values: Any, keep: bool) -> Any:
        """Return every tensor of a nested container for the caller."""
        return tree_map(lambda value: self.result(value, keep), values)


def _has_other_leaves(outputs: Sequence[Tensor], variables: Sequence[Tensor]) -> bool:
    """Return whether the graph of the outputs has leaves besides the variables: captured tensors that require grad."""
    own = {id(v._node) for v in variables}
    seen: set[int] = set()
    stack: list[Any] = [out._fresh()._node for out in outputs]
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen or id(node) in own:
            continue
        if node.is_leaf:
            return True
        seen.add(id(node))
        stack += node.edges()
    return False

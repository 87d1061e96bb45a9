"""Optimizers as functions of lists of tensors, ``optim.adam.adam(params, grads, exp_avgs, …)``, as PyTorch's modules.

Such a function does one step of a group whose state the caller keeps. It is computed from the optimizer's class, and
autograd records it only with ``differentiable=True``, as the step of the class.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, Final

from candelabra import Tensor, set_grad_enabled
from candelabra.optim.optimizer import Optimizer

__all__ = ["functional_form"]

FLAGS: Final[dict[str, Any]] = {
    "foreach": None, "fused": None, "grad_scale": None, "found_inf": None, "maximize": False, "capturable": False,
    "differentiable": False, "has_complex": False, "has_sparse_grad": False, "decoupled_weight_decay": False,
}  # fmt: skip
"""The defaults of the flags that a function may have."""
PAIRS: Final = {
    "betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max"),
}  # fmt: skip
"""Options of the classes that the functions take as two."""


def functional_form(
    optimizer: type[Optimizer], lists: dict[str, str], flags: str, options: str, **fixed: Any
) -> Callable[..., None]:
    """Return the function of an optimizer.

    ``lists``: its parameters after the parameters' own list, with the key of the state that each contains ("grad" for
    the gradients); ``flags``: its parameters with a default, in order; ``options``: its keyword-only parameters;
    ``fixed``: options of the group that it does not take.
    """
    name = optimizer.__name__.lower()
    both = Parameter.POSITIONAL_OR_KEYWORD
    signature = Signature(
        [
            Parameter("params", both),
            *(Parameter(n, both) for n in lists),
            *(Parameter(n, both, default=FLAGS[n]) for n in flags.split()),
            *(Parameter(n, Parameter.KEYWORD_ONLY) for n in options.split()),
        ]
    )

    def step(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        params: list[Tensor] = given.pop("params")
        states = {key: given.pop(n) for n, key in lists.items()}
        for key, tensors in states.items():
            if tensors and len(tensors) != len(params):
                raise ValueError(f"{name}(): {len(params)} parameters, but {len(tensors)} tensors of {key!r}")
        for option, both_names in PAIRS.items():
            if both_names[0] in given:
                given[option] = tuple(given.pop(n) for n in both_names)
        _step(optimizer, params, states, {**fixed, **given})

    step.__name__ = step.__qualname__ = name
    step.__module__ = optimizer.__module__
    step.__doc__ = (
        f"Do one step of :class:`{optimizer.__name__}` in place, with these gradients and this state.\n\n"
        "The lists have one tensor for each parameter; the options are the class's. Raises ``ValueError`` for lists of "
        "different lengths."
    )
    step.__signature__ = signature  # type: ignore[attr-defined]
    return step


def _step(optimizer: type[Optimizer], params: list[Tensor], states: dict[str, Any], group: dict[str, Any]) -> None:
    """Let an optimizer without groups of its own do the step, and write what it replaced into the caller's tensors."""
    one = optimizer.__new__(optimizer)
    one.defaults = {"differentiable": group.get("differentiable", False)}
    one.state = defaultdict(dict)
    stand_ins, gradients = [], states.pop("grad")
    for number, (p, g) in enumerate(zip(params, gradients, strict=True)):
        stand_in = p if one.defaults["differentiable"] else p.detach()  # of the same memory, with a gradient of its own
        kept = {key: tensors[number] for key, tensors in states.items() if tensors and tensors[number] is not None}
        one.state[stand_in].update(kept)
        stand_ins.append((stand_in, stand_in.grad))
        stand_in.grad = g
    try:
        with set_grad_enabled(one.defaults["differentiable"]):
            one.update(group, [p for p, _ in stand_ins])
    finally:
        for p, before in stand_ins:
            p.grad = before
    for number, (p, _) in enumerate(stand_ins):
        for key, tensors in states.items():
            new = one.state[p].get(key)
            if tensors and tensors[number] is None:
                tensors[number] = new
            elif tensors and new is not None and new is not tensors[number]:
                tensors[number].copy_(new)


def __dir__() -> list[str]:
    return sorted(__all__)

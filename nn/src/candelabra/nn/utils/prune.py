"""Pruning: parameters with a mask of zeros.

After a function such as ``l1_unstructured(layer, "weight", 0.3)``, the parameter is ``weight_orig``, the mask is the
buffer ``weight_mask``, and ``layer.weight`` is their product, which a hook computes before each call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import candelabra as cd
from candelabra.nn.modules.module import Module
from candelabra.nn.utils.convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A method that computes masks, and the hook that applies one. Subclasses define :meth:`compute_mask`.

    ``PRUNING_TYPE`` says what a second method sees of a pruned tensor: ``"unstructured"`` the remaining elements,
    ``"structured"`` the remaining indices of its attribute ``dim``, ``"global"`` all.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str | None = None

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, str(self._tensor_name), self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask of a tensor of importances; ``default_mask`` is the mask so far."""

    def apply_mask(self, module: Any) -> Any:
        """Return the product of the original parameter and the mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune a parameter of a module, also one that is pruned already, and return the hook.

        ``importance_scores``: the importances of the elements, by default their values. Other arguments are those of
        the class.
        """
        method = _combined(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        default = cd.ones_like(original) if first else getattr(module, f"{name}_mask").detach().clone()
        try:
            module.register_buffer(f"{name}_mask", method.compute_mask(importance_scores, default_mask=default))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(f"{name}_orig"))
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return a tensor with zeros according to :meth:`compute_mask`, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default = cd.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor a parameter, without mask. The hook remains; see :func:`remove`."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(f"{self._tensor_name}_orig")
        original.data = weight.data
        del module._buffers[f"{self._tensor_name}_mask"]
        setattr(module, self._tensor_name, original)


def _combined(module: Module, name: str, method: BasePruningMethod) -> BasePruningMethod:
    """Return a method, together with those that prune the parameter already, whose hook is removed."""
    hooks: dict[int, Any] = module._forward_pre_hooks
    old = [n for n, hook in hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
    if len(old) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    method._tensor_name = name
    if not old:
        return method
    before = hooks.pop(old[0])
    container = before if isinstance(before, PruningContainer) else PruningContainer(before)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter. Each prunes what the earlier ones left."""

    def __init__(self, *methods: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(methods) == 1:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the default mask with what the last method prunes of the rest."""
        method = self._pruning_methods[-1]
        remaining = _remaining(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype).clone()
        part = method.compute_mask(t[remaining], default_mask=default_mask[remaining])
        mask[remaining] = part.to(dtype=mask.dtype)
        return mask


def _remaining(method: Any, t: Any, mask: Any) -> Any:
    """Return the index of the elements that a method sees."""
    whole: list[Any] = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError(
                'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
            )
        dim = method.dim + t.dim() if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
        whole[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    elif method.PRUNING_TYPE != "global":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    return tuple(whole)


# -- methods ----------------------------------------------------------------------------------------------------------
class Identity(BasePruningMethod):
    """Prunes nothing: only the mask and the names of the tensors are added."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """The common base of methods that prune single elements: those with the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def _scores(self, t: Any) -> Any:
        raise NotImplementedError("a subclass of _Unstructured must define _scores")

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _count_to_prune(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._scores(t).reshape(-1).topk(count, largest=False).indices] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random. ``amount``: their number, or as a float their fraction."""

    def _scores(self, t: Any) -> Any:
        return cd.rand_like(t)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest absolute values. ``amount``: their number, or as a float their fraction."""

    def _scores(self, t: Any) -> Any:
        return t.abs()

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, importance_scores: Any = None) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """The common base of methods that prune whole indices of a dim."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def _kept(self, t: Any, size: int, count: int) -> Any:
        """Return the index of the entries to keep if ``count`` of ``size`` are pruned."""
        raise NotImplementedError("a subclass of _Structured must define _kept")

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
                f"with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = _count_to_prune(self.amount, size)
        if not count:
            return default_mask
        index: list[Any] = [slice(None)] * t.dim()
        index[self.dim] = self._kept(t, size, count)
        mask: Any = cd.zeros_like(t)
        mask[tuple(index)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes indices of ``dim`` at random."""

    def _kept(self, t: Any, size: int, count: int) -> Any:
        scores: Any = cd.rand(size, device=t.device)
        return scores > scores.kthvalue(count).values

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, dim: int = -1) -> Any:  # type: ignore[override]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the indices of ``dim`` with the smallest norms of order ``n``."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Any, size: int, count: int) -> Any:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return cd.norm(t, p=self.n, dim=others).topk(size - count, largest=True).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]
        return super().apply(module, name, mask=mask)


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    value: Any = amount
    if value < 0 or (value > 1.0 and not isinstance(amount, Integral)):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count_to_prune(amount: Any, size: int) -> int:
    count = int(amount) if isinstance(amount, Integral) else round(amount * size)
    if count > size:
        raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
    return count


# -- functions --------------------------------------------------------------------------------------------------------
def identity(module: Module, name: str) -> Module:
    """Add a mask of ones to a parameter. Returns ``module``."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random. Returns ``module``."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Any = None) -> Module:
    """Prune the elements of a parameter with the smallest absolute values or importances. Returns ``module``."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune indices of one dim of a parameter at random. Returns ``module``."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None) -> Module:
    """Prune the indices of one dim of a parameter with the smallest norms of order ``n``. Returns ``module``."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Prune a parameter by a mask. Returns ``module``."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Callable[..., BasePruningMethod], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters, pairs of module and name, as if they were one vector.

    ``pruning_method``: a class such as :class:`L1Unstructured`, which gets the other arguments. ``importance_scores``:
    a dictionary with the pairs as keys.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    importances = parameters_to_vector([scores.get(pair, t) for pair, t in zip(pairs, tensors, strict=True)])
    masks = [getattr(module, f"{name}_mask", None) for module, name in pairs]
    before = parameters_to_vector([cd.ones_like(t) if m is None else m for t, m in zip(tensors, masks, strict=True)])
    method: Any = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    mask: Any = PruningContainer(method).compute_mask(importances, before)
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        custom_from_mask(module, name, mask=mask[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter a plain one with zeros, and remove the hook. Returns ``module``.

    Raises ``ValueError`` if the parameter is not pruned.
    """
    hooks: dict[int, Any] = module._forward_pre_hooks
    for number, hook in hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del hooks[number]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of a module or of one of its descendants is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for each in module.modules() for hook in each._forward_pre_hooks.values()
    )


def __dir__() -> list[str]:
    return sorted(__all__)

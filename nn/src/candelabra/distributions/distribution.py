"""The base class of distributions: shapes, validation, expansion, and the methods that they define."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import candelabra as cd
from candelabra import Size, Tensor
from candelabra.distributions import constraints
from candelabra.distributions.constraints import Constraint
from candelabra.distributions.utils import lazy_property

__all__ = ["Distribution"]

Self = TypeVar("Self", bound="Distribution")


class Distribution:
    """A probability distribution, or a batch of independent ones of one family.

    ``batch_shape`` is the shape of the batch, ``event_shape`` that of one drawn event. Unless validation is turned off
    (``python -O``, `set_default_validate_args`, ``validate_args=False``), parameters and values are checked.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn the validation of arguments on or off where ``validate_args`` is not given."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args() expects True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            found = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in found.items():
            computed = name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property)
            if computed or constraints.is_dependent(constraint):
                continue
            value = getattr(self, name)
            if not constraints.holds(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Return a distribution of the same family whose parameters are expanded to ``batch_shape``, as views.

        ``_instance`` is filled instead of a new object: a subclass with attributes of its own passes it.
        """
        raise self._missing("expand")

    def _expanded(
        self: Self, family: type[Distribution], batch_shape: Sequence[int], instance: Any, *names: str
    ) -> Self:
        """Implement `expand` for a family whose parameters are the attributes ``names``, as far as they are set."""
        new = self._get_checked_instance(family, instance)
        shape, batch_dims = Size(batch_shape), len(self._batch_shape)
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                setattr(new, name, value.expand(shape + value.shape[batch_dims:]))
        return self._finish(new, shape)

    def _finish(self: Self, new: Any, batch_shape: Sequence[int]) -> Self:
        """Set the shapes of an expanded distribution, whose parameters need no check."""
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return cast("Self", new)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc] # of the class, on purpose
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _missing(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self)} does not implement {name}")

    # -- shapes and sets ----------------------------------------------------------------------------------------------
    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters' batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """The constraint of each tensor among the arguments."""
        raise self._missing("arg_constraints")

    @property
    def support(self) -> Any:
        """The constraint that describes the events."""
        raise self._missing("support")

    # -- moments ------------------------------------------------------------------------------------------------------
    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable event."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    # -- numbers ------------------------------------------------------------------------------------------------------
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw events in the shape ``sample_shape + batch_shape + event_shape``, without a graph."""
        with cd.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw events as a differentiable function of the parameters, if the family has one (``has_rsample``)."""
        raise self._missing("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Draw ``n`` events. Deprecated: ``sample((n,))``."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or of the probability, of ``value``."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most ``value``."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile of a probability."""
        raise self._missing("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all events of a discrete distribution along dimension 0, before the batch's dimensions.

        The batch's dimensions have size 1 unless ``expand``.
        """
        raise self._missing("enumerate_support")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, in the shape of the batch."""
        raise self._missing("entropy")

    def perplexity(self) -> Tensor:
        """Return ``exp(entropy)``."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Return values along dimension 0, before the batch's dimensions."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Any) -> None:
        """Raise ``ValueError`` if a value has not the shape of events, or is outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape = value.shape
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(shape), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not constraints.holds(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        parameters = ", ".join(f"{name}: {v if v.numel() == 1 else v.size()}" for name, v in shown.items())
        return f"{type(self).__name__}({parameters})"


def __dir__() -> list[str]:
    return sorted(__all__)

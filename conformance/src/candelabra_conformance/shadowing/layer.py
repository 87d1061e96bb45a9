"""``shadow``: a dispatch layer under which every operator also runs on the reference device.

Each call is checked separately: the reference gets copies of the arguments of the device's operator, so errors do not
accumulate and the reported operator is the one that is wrong. The layer is also active for the operators that an
operator calls, so a composite is reported only if none of them is. The backward pass runs in the thread that called it,
and under its layers.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from candelabra import Tensor
from candelabra.errors import BackendError, OutOfMemoryError, UnsupportedDType
from candelabra.library import NO_GRAD, Layer, Operator, mode, open_device, plugins

from candelabra_conformance.calling import tensors
from candelabra_conformance.shadowing.answer import answer
from candelabra_conformance.shadowing.divergence import Divergence, DivergenceError, DivergenceWarning, user_line
from candelabra_conformance.shadowing.judging import Finding, judged
from candelabra_conformance.shadowing.showing import shown
from candelabra_conformance.shadowing.snapshot import Snapshot

OnDivergence = str | Callable[[Divergence], None]
REFUSALS: Final = (NotImplementedError, UnsupportedDType, BackendError, OutOfMemoryError)
"""The exceptions with which the reference cannot check a call: it lacks the operator, the dtype or the memory."""


@dataclass
class ShadowLog:
    """The calls that a shadow has checked so far."""

    divergences: list[Divergence] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    """The number of compared calls by operator; in-place forms have the suffix ``_``."""
    unchecked: dict[str, str] = field(default_factory=dict)
    """The operators with a call that could not be compared, and the reason."""

    @property
    def calls(self) -> int:
        """Return the number of compared calls."""
        return sum(self.checked.values())

    def __str__(self) -> str:
        head = f"{self.calls} calls of {len(self.checked)} operators compared, {len(self.divergences)} diverge"
        not_checked = [f"  not compared: {name}: {why}" for name, why in self.unchecked.items()]
        return "\n".join([head, *not_checked, *(str(d) for d in self.divergences)])


@contextmanager
def shadow(
    reference: Any = None,
    *,
    on_divergence: OnDivergence = "raise",
    only: Collection[str] | None = None,
    skip: Collection[str] = (),
    repeats: int = 1,
    reproducers: bool = True,
) -> Iterator[ShadowLog]:
    """Run every operator of this thread inside the block on ``reference`` too, and compare the results.

    ``reference`` is a device; None means the installation's reference device. The shadow compares values, within the
    suite's derived bounds, dtype, shape and device of the results, unchanged inputs, in-place forms, random numbers (to
    the bit) and the class of errors, on any device and in the backward pass. If ``repeats`` is above 1, it also checks
    that the device gives the same bits in that number of calls. ``on_divergence`` is ``"raise"``
    (:class:`DivergenceError`), ``"log"`` (issue a :class:`DivergenceWarning` and continue), or a function of the
    :class:`Divergence`. ``only`` and ``skip`` name operators. The log that ``with`` returns counts the comparisons and
    collects the divergences; ``reproducers=False`` omits the program of each divergence, which takes some more calls of
    the operator to find.

    Uninitialised memory (``empty``) is not compared, since no operator defines its content; the results of operators on
    it are. The layer does not check other threads. Raises ``ValueError`` for another ``on_divergence`` and for
    ``repeats`` below 1.
    """
    if not callable(on_divergence) and on_divergence not in ("raise", "log"):
        raise ValueError(f'shadow(): on_divergence must be "raise", "log" or a function, got {on_divergence!r}')
    if repeats < 1:
        raise ValueError(f"shadow(): repeats must be at least 1, got {repeats}")
    instance = open_device(plugins.reference_device() if reference is None else reference)
    watch = _Watch(str(instance.device), on_divergence, only, frozenset(skip), repeats, reproducers)
    layer = Layer("shadow", watch.handle)
    watch.layer = layer
    try:
        with layer:
            yield watch.log
    finally:
        layer.remove()


@dataclass
class _Watch:
    """One shadow: its options, and its handler."""

    reference: str
    on_divergence: OnDivergence
    only: Collection[str] | None
    skip: frozenset[str]
    repeats: int
    reproducers: bool
    log: ShadowLog = field(default_factory=ShadowLog)
    layer: Layer | None = None
    number: int = 0

    def handle(self, op: Operator[..., Any], next: Callable[..., Any], *args: Any) -> Any:
        """Handle a call, as a layer does."""
        if op.name in self.skip or (self.only is not None and op.name not in self.only):
            return self._below(next, args)
        try:
            before = Snapshot.of(op, args)
        except AssertionError as error:  # the payload contradicts its tensor: report where it came from
            self.log.unchecked.setdefault(op.name, str(error))
            return self._below(next, args)
        versions = {id(t): t._version for t in before.tensors}
        found_inside = len(self.log.divergences)
        try:
            result = self._below(next, args)
        except DivergenceError:
            raise
        except Exception as error:
            if len(self.log.divergences) == found_inside:
                self._raised(before, error)
            raise
        if len(self.log.divergences) == found_inside:  # otherwise an inner operator is reported
            with mode(include=NO_GRAD):
                self._returned(before, versions, result, next)
        return result

    def _below(self, next: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call the layers below, with this layer active for the operators that they call."""
        assert self.layer is not None
        with mode(include=self.layer.bit):
            return next(*args)

    # -- comparison ---------------------------------------------------------------------------------------------------
    def _returned(self, before: Snapshot, versions: dict[int, int], result: Any, next: Callable[..., Any]) -> None:
        first = before.args[0] if before.args else None
        written = isinstance(first, Tensor) and result is first and first._version != versions[id(first)]
        name = before.record.name + "_" * written
        self.number += 1
        positional, named = before.split()
        try:
            expected = answer(before.record, positional, named, self.reference)
        except (*REFUSALS, AssertionError) as error:  # AssertionError: the reference itself violates the contract
            self.log.unchecked.setdefault(name, f"{type(error).__name__}: {error}")
            return
        except Exception as error:
            words = f"the reference refuses this call: {type(error).__name__}: {error}"
            self._tell(before, name, Finding("errors", words, due=error), written)
            return
        self.log.checked[name] += 1
        finding = judged(before, expected, tensors(result), written)
        if finding is None and self.repeats > 1 and not written:
            finding = self._repeated(before, result, next)
        if finding is not None:
            self._tell(before, name, finding, written)

    def _repeated(self, before: Snapshot, result: Any, next: Callable[..., Any]) -> Finding | None:
        from candelabra_conformance.transport import to_host

        instance = before.instance()
        if instance is None or before.record.name in instance.capabilities.nondeterministic:
            return None
        first = [to_host(t).tobytes() for t in tensors(result)]
        for again in range(2, self.repeats + 1):
            if [to_host(t).tobytes() for t in tensors(next(*before.args))] != first:
                return Finding("determinism", f"run {again} of the same call returns different bits than the first")
        return None

    def _raised(self, before: Snapshot, error: Exception) -> None:
        """Check an error that the device raised: valid if the reference raises too, or if the device refuses the
        call."""
        if isinstance(error, REFUSALS):
            return
        positional, named = before.split()
        try:
            answer(before.record, positional, named, self.reference)
        except Exception:
            return
        words = f"the device refuses what the reference computes: {type(error).__name__}: {error}"
        self._tell(before, before.record.name, Finding("errors", words), False)

    # -- errors -------------------------------------------------------------------------------------------------------
    def _tell(self, before: Snapshot, name: str, finding: Finding, written: bool) -> None:
        instance = before.instance()
        text = shown(before, finding, written, self.reference) if self.reproducers and instance is not None else ""
        divergence = Divergence(
            name, finding.property, str(instance.device) if instance is not None else "?", self.reference,
            finding.message, before.described(), finding.ulp, text, user_line(), self.number,
        )  # fmt: skip
        self.log.divergences.append(divergence)
        if callable(self.on_divergence):
            self.on_divergence(divergence)
        elif self.on_divergence == "raise":
            raise DivergenceError(divergence)
        else:
            warnings.warn(str(divergence), DivergenceWarning, stacklevel=5)

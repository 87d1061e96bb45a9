"""Derivatives in ``opcheck``: against finite differences, and a record's own against its body's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor
from candelabra.autograd import grad
from candelabra.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from candelabra.dtypes import complex128, float64
from candelabra.library import Instance

from candelabra_conformance.calling import at
from candelabra_conformance.closeness import assert_close
from candelabra_conformance.opchecking.subject import Subject, floating, outputs, replaced
from candelabra_conformance.opchecking.verdicts import Broken, NotApplicable
from candelabra_conformance.samples.sample import mapped
from candelabra_conformance.tolerance import wide
from candelabra_conformance.transport import to_device, to_host


def gradient(subject: Subject) -> None:
    """First derivatives are those of central differences, in float64."""
    _differences(subject, gradcheck)


def gradient2(subject: Subject) -> None:
    """Second derivatives are those of central differences of the first ones."""
    _differences(subject, gradgradcheck)


def body(subject: Subject) -> None:
    """A derivative that the record declares is that of its body differentiated operator by operator."""
    record = subject.record
    if record is None or record.body is None or not record.differentiable:
        raise NotApplicable("there is no record with a body and a derivative of its own")
    instance = _wide_device(subject)
    pairs = []
    for function in (record.function, record.body):
        call, leaves = _closed(subject, function, instance)
        made = [o for o in outputs(call(*leaves)) if o.requires_grad]
        found = grad([_weighed(o) for o in made], leaves, allow_unused=True) if made else [None] * len(leaves)
        pairs.append([None if g is None else to_host(g) for g in found])
    for place, (own, through) in enumerate(zip(*pairs, strict=True)):
        try:
            if (own is None) != (through is None):
                raise AssertionError(f"{'the record' if own is None else 'the body'} has none")
            assert_close(own, through)
        except AssertionError as error:
            raise Broken(f"the gradient of tensor {place} is not that of the body: {error}") from None


def _differences(subject: Subject, check: Callable[..., Any]) -> None:
    record = subject.record
    if record is not None and record.not_differentiable is not None:
        raise NotApplicable(f"the record says that it carries no gradient: {record.not_differentiable}")
    call, leaves = _closed(subject, subject.function, _wide_device(subject))
    if not any(o.requires_grad for o in outputs(call(*leaves))):
        if record is not None or subject.wanted:
            raise Broken("no result requires grad, though arguments do")
        raise NotApplicable("no result requires grad")

    def differentiable(*given: Tensor) -> tuple[Tensor, ...]:
        return tuple(o for o in outputs(call(*given)) if o.dtype.is_floating_point or o.dtype.is_complex)

    try:
        check(differentiable, leaves)
    except GradcheckError as error:
        raise Broken(str(error)) from None


def _wide_device(subject: Subject) -> Instance:
    """The device, or the reference where it does not compute in float64."""
    arithmetic = subject.instance.capabilities.arithmetic
    return subject.instance if {float64, complex128} <= arithmetic else subject.reference


def _closed(subject: Subject, function: Callable[..., Any], instance: Instance) -> tuple[Callable[..., Any], Any]:
    """The function of its differentiable arguments alone, and these: leaves in float64 or complex128."""
    chosen = [a for a in floating(subject.call) if not subject.wanted or id(a) in subject.wanted]
    if not chosen:
        raise NotApplicable("no argument is floating")
    leaves = [to_device(wide(a), instance).requires_grad_() for a in chosen]

    def call(*given: Tensor) -> Any:
        new = {id(a): t for a, t in zip(chosen, given, strict=True)}
        args, kwargs = mapped(replaced(subject.call, new), lambda a: to_device(wide(a), instance))
        with instance.device:
            return function(*at(args, instance.device), **at(kwargs, instance.device))

    return call, leaves


def _weighed(out: Tensor) -> Tensor:
    """A real number that every element of a result has another share in."""
    from candelabra import arange

    weights = (arange(out.numel(), dtype=float64, device=out.device) * 0.7 + 1).cos().reshape(out.shape)
    total: Tensor = ((out.real + 0.5 * out.imag if out.is_complex() else out) * weights).sum()
    return total

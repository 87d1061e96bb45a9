"""Derivatives in ``opcheck``: compare with finite differences, and a record's derivative with that of its body."""

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
from candelabra_conformance.context import NotApplicable
from candelabra_conformance.opchecking.subject import CheckedCall, floating, outputs, replaced
from candelabra_conformance.opchecking.verdicts import Broken
from candelabra_conformance.samples.sample import mapped
from candelabra_conformance.tolerance import wide
from candelabra_conformance.transport import to_device, to_host


def gradient(subject: CheckedCall) -> None:
    """Check that first derivatives equal central differences, in float64."""
    _differences(subject, gradcheck)


def gradient2(subject: CheckedCall) -> None:
    """Check that second derivatives equal central differences of the first derivatives."""
    _differences(subject, gradgradcheck)


def body(subject: CheckedCall) -> None:
    """Check that the derivative which a record declares equals that of its body."""
    record = subject.record
    if record is None or record.body is None or not record.differentiable:
        raise NotApplicable("the operator has no record with both a body and a derivative")
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
            raise Broken(f"the gradient of tensor {place} differs from that of the body: {error}") from None


def _differences(subject: CheckedCall, check: Callable[..., Any]) -> None:
    record = subject.record
    if record is not None and record.not_differentiable is not None:
        raise NotApplicable(f"the record declares that it has no gradient: {record.not_differentiable}")
    call, leaves = _closed(subject, subject.function, _wide_device(subject))
    if not any(o.requires_grad for o in outputs(call(*leaves))):
        if record is not None or subject.requiring_grad:
            raise Broken("no result requires grad, although arguments do")
        raise NotApplicable("no result requires grad")

    def differentiable(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(o for o in outputs(call(*tensors)) if o.dtype.is_floating_point or o.dtype.is_complex)

    try:
        check(differentiable, leaves)
    except GradcheckError as error:
        raise Broken(str(error)) from None


def _wide_device(subject: CheckedCall) -> Instance:
    """Return the device, or the reference device if the device does not compute in float64."""
    arithmetic = subject.instance.capabilities.arithmetic
    return subject.instance if {float64, complex128} <= arithmetic else subject.reference


def _closed(subject: CheckedCall, function: Callable[..., Any], instance: Instance) -> tuple[Callable[..., Any], Any]:
    """Return a function of the differentiable arguments only, and these arguments: leaves in float64 or complex128."""
    chosen = [a for a in floating(subject.call) if not subject.requiring_grad or id(a) in subject.requiring_grad]
    if not chosen:
        raise NotApplicable("no argument is floating")
    leaves = [to_device(wide(a), instance).requires_grad_() for a in chosen]

    def call(*tensors: Tensor) -> Any:
        new = {id(a): t for a, t in zip(chosen, tensors, strict=True)}
        args, kwargs = mapped(replaced(subject.call, new), lambda a: to_device(wide(a), instance))
        with instance.device:
            return function(*at(args, instance.device), **at(kwargs, instance.device))

    return call, leaves


def _weighed(out: Tensor) -> Tensor:
    """Return a real number that depends on each element of a result with a different weight."""
    from candelabra import arange

    weights = (arange(out.numel(), dtype=float64, device=out.device) * 0.7 + 1).cos().reshape(out.shape)
    total: Tensor = ((out.real + 0.5 * out.imag if out.is_complex() else out) * weights).sum()
    return total

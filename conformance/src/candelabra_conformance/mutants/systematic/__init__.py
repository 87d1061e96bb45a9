"""Systematic mutants: the same few faults in every kernel, and every parameter ignored, one at a time.

They are computed from the kernel table. If one survives, either the samples of its operator or a check is insufficient;
it is the samples if the mutant never gave other bits than the correct kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from candelabra.library import OPERATORS

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.systematic.blocks import of_blocks, of_written_blocks
from candelabra_conformance.mutants.systematic.equivalent import breaks_nothing
from candelabra_conformance.mutants.systematic.layouts import of_strides, of_target_strides
from candelabra_conformance.mutants.systematic.lifetimes import of_lifetimes
from candelabra_conformance.mutants.systematic.parameters import of_parameters
from candelabra_conformance.mutants.systematic.results import of_results, of_targets
from candelabra_conformance.mutants.systematic.switch import Fault, Switch
from candelabra_conformance.mutants.systematic.widths import of_widths

__all__ = ["Fault", "Switch", "faults", "kernels_of"]


def faults(name: str, switch: Switch) -> Iterator[Fault]:
    """Yield the faults of a kernel; ``name`` is that of a kernel table."""
    return (fault for fault in _every(name, switch) if not breaks_nothing(fault.id))


def _every(name: str, switch: Switch) -> Iterator[Fault]:
    if name not in OPERATORS:
        yield from of_targets(name, switch)
        yield from of_written_blocks(name, switch)
        yield from of_target_strides(name, OPERATORS[name[:-1]], switch)
        return
    record = OPERATORS[name]
    yield from of_results(name, record, switch)
    yield from of_parameters(name, record, switch)
    yield from of_strides(name, record, switch)
    if not record.view:
        yield from of_blocks(name, record, switch)
        yield from of_widths(name, record, switch)
        yield from of_lifetimes(name, record, switch)


def kernels_of(operator: str, mirror: Mirror) -> list[str]:
    """Return the names in the table that serve an operator: its own, and the in-place one if the operator has it."""
    names = (operator, operator + "_") if OPERATORS[operator].inplace else (operator,)
    return [name for name in names if name in mirror.table]

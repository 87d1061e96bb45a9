"""All samples of an operator or a public callable in a dtype: this package's, those of plugins, and those that follow
from an operator's record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import Operator, contributions

from candelabra_conformance.records import Record
from candelabra_conformance.samples import registry
from candelabra_conformance.samples.maker import Maker, Outline
from candelabra_conformance.samples.registry import DOMAINS, Generator
from candelabra_conformance.samples.sample import Sample

TABLES: Final[dict[str, dict[str, list[Generator]]]] = {
    "inputs": registry.INPUTS,
    "mistakes": registry.MISTAKES,
    "special": registry.SPECIAL,
}


def gathered(op: Record, d: dtype, what: str) -> Iterator[Sample]:
    """Every sample of a sort (a key of :data:`TABLES`). Each generator has a maker of its own: its neighbours' draws
    don't change its values."""
    generators = generators_of(op.name, what)
    for generator in generators:
        yield from generator(maker(op, d))
    if isinstance(op, Operator) and (what != "inputs" or not generators):
        yield from of_record(what)(op, maker(op, d))


def generators_of(name: str, what: str) -> list[Generator]:
    """The generators of a sort that were written for a name, in this package and in plugins."""
    registry.load()
    return [*TABLES[what].get(name, ()), *brought().get(name, {}).get(what, ())]


def outlined(op: Record, d: dtype) -> list[Sample]:
    """The operator's inputs by shape and dtype alone, which costs little; see :class:`Outline`."""
    found: list[Sample] = []
    generators = generators_of(op.name, "inputs")
    if isinstance(op, Operator) and not generators:
        record = op
        generators = [lambda t: of_record("inputs")(record, t)]
    for generator in generators:
        try:
            with np.errstate(all="ignore"):
                found += list(generator(Outline(op.name, d, *DOMAINS.get(op.name, ()))))
        except Exception:
            found += list(generator(maker(op, d)))
    return found


def maker(op: Record, d: dtype) -> Maker:
    """A maker for the operator, in its domain."""
    return Maker(op.name, d, *DOMAINS.get(op.name, ()))


def of_record(what: str) -> Callable[[Operator[..., Any], Maker], Iterator[Sample]]:
    """What is computed from a record alone."""
    if what == "inputs":
        from candelabra_conformance.samples.pointwise import samples_of_record

        return samples_of_record
    if what == "mistakes":
        from candelabra_conformance.samples.mistakes_of_record import mistakes_of_record

        return mistakes_of_record
    from candelabra_conformance.samples.special_values import special_of_record

    return special_of_record


@cache
def brought() -> dict[str, dict[str, list[Generator]]]:
    """What plugins bring by ``candelabra_samples``: ``{operator: {"inputs": [generator, …], …}}``, a single generator
    standing for its inputs."""
    found: dict[str, dict[str, list[Generator]]] = {}
    for operator, given in contributions.samples().found.items():
        table = found.setdefault(operator, {})
        for part in given:
            sorts = part if isinstance(part, dict) else {"inputs": part}
            for sort, generators in sorts.items():
                if sort not in TABLES:
                    raise ValueError(
                        f"candelabra_samples() gives {operator!r} samples called {sort!r}; there are "
                        f"{', '.join(TABLES)}"
                    )
                table.setdefault(sort, []).extend(generators if isinstance(generators, list) else [generators])
    return found

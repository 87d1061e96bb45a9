"""Collect all samples of an operator or a public callable in a dtype: those of this package, of plugins, and those that
follow from an operator's record."""

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
    "sizes": registry.SIZES,
    "bounds": registry.BOUNDS,
}
FROM_RECORD: Final = ("inputs", "mistakes", "special")
"""The kinds of samples that follow from an operator's record too."""


def gathered(op: Record, d: dtype, kind: str) -> Iterator[Sample]:
    """Yield every sample of a kind (a key of :data:`TABLES`). Each generator has its own maker, so its values do not
    depend on other generators."""
    generators = generators_of(op.name, kind)
    for generator in generators:
        if d.name in registry.DTYPES.get(generator, (d.name,)):
            yield from generator(maker(op, d))
    if isinstance(op, Operator) and kind in FROM_RECORD and (kind != "inputs" or not generators):
        yield from of_record(kind)(op, maker(op, d))


def declared_dtypes(name: str, kind: str) -> list[str]:
    """Return the dtypes for which the generators of a kind are declared; without a declaration, float32."""
    named = [d for g in generators_of(name, kind) for d in registry.DTYPES.get(g, ("float32",))]
    return list(dict.fromkeys(named))


def generators_of(name: str, kind: str) -> list[Generator]:
    """Return the generators of a kind for a name, in this package and in plugins."""
    registry.load()
    return [*TABLES[kind].get(name, ()), *from_plugins().get(name, {}).get(kind, ())]


def outlined(op: Record, d: dtype) -> list[Sample]:
    """Return the operator's inputs by shape and dtype only, which is fast; see :class:`Outline`."""
    collected: list[Sample] = []
    generators = generators_of(op.name, "inputs")
    if isinstance(op, Operator) and not generators:
        record = op
        generators = [lambda t: of_record("inputs")(record, t)]
    for generator in generators:
        try:
            with np.errstate(all="ignore"):
                collected += list(generator(Outline(op.name, d, *DOMAINS.get(op.name, ()))))
        except Exception:
            collected += list(generator(maker(op, d)))
    return collected


def maker(op: Record, d: dtype) -> Maker:
    """Return a maker for the operator, in its domain."""
    return Maker(op.name, d, *DOMAINS.get(op.name, ()))


def of_record(kind: str) -> Callable[[Operator[..., Any], Maker], Iterator[Sample]]:
    """Return the generators that compute samples from a record."""
    if kind == "inputs":
        from candelabra_conformance.samples.pointwise import samples_of_record

        return samples_of_record
    if kind == "mistakes":
        from candelabra_conformance.samples.mistakes_of_record import mistakes_of_record

        return mistakes_of_record
    from candelabra_conformance.samples.special_values import special_of_record

    return special_of_record


@cache
def from_plugins() -> dict[str, dict[str, list[Generator]]]:
    """Return the generators of plugins, from ``candelabra_samples``: ``{operator: {"inputs": [generator, …], …}}``; a
    single generator is one of inputs."""
    collected: dict[str, dict[str, list[Generator]]] = {}
    for operator, given in contributions.samples().found.items():
        table = collected.setdefault(operator, {})
        for part in given:
            sorts = part if isinstance(part, dict) else {"inputs": part}
            for sort, generators in sorts.items():
                if sort not in TABLES:
                    raise ValueError(
                        f"candelabra_samples() gives {operator!r} samples called {sort!r}; there are "
                        f"{', '.join(TABLES)}"
                    )
                table.setdefault(sort, []).extend(generators if isinstance(generators, list) else [generators])
    return collected

"""Connectionist temporal classification: losses, and the probabilities of classes given the labels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OF_DIM
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.templates.alignments import EDGE, losses, posteriors

INVALID_LABEL = IndexOutOfBounds("alignment_losses", RuntimeError, f"gather(): {OF_DIM}")


@lru_cache(None)
def compiled(engine: Engine, d: dtype, gradient: bool) -> Launch:
    """Return the kernel of the losses, or of the posteriors."""
    return engine.compile(posteriors(d) if gradient else losses(d))


def _run(gradient: bool, d: dtype, *arguments: Any) -> Any:
    """Run a recursion over a batch, one work-item a sequence. Declines devices on which that would be slow."""
    x, targets, input_lengths, target_lengths, blank, zero_infinity = arguments
    engine, count = x.engine, targets.shape[:1]
    fits = len(x.shape) == 3 and 0 not in x.shape and len(targets.shape) == 2 and x.shape[1:2] == count
    if not engine.traits.serial or not fits or not input_lengths.shape == target_lengths.shape == count:
        return NotImplemented  # for the operator's body, which also says what is wrong
    times, sequences, classes = x.shape
    longest = targets.shape[1]
    width, rows = 2 * longest + 1 + EDGE, times if gradient else 2
    launch = compiled(engine, d, gradient)
    out: StridedArray = engine.empty(x.shape if gradient else count, d)
    scratch = [rows, 2, 1] if gradient else [rows]
    arrays = [contiguous(each) for each in (x, targets, input_lengths, target_lengths)]
    errors, ticket = engine.errors.register(INVALID_LABEL, [])
    launch(
        sequences, out.buffer, *[engine.allocate(n * sequences * width * d.itemsize) for n in scratch],
        *[engine.allocate(sequences * width * 4) for _ in range(2)], *[each.buffer for each in arrays], errors, ticket,
        *[each.offset for each in arrays], blank, zero_infinity, times, sequences, classes, longest, rows,
    )  # fmt: skip
    return out


def _for(gradient: bool) -> Any:
    def kernel(d: dtype) -> Any:
        """Half types are left to the composite, which rounds after each operation."""
        return (lambda *arguments: _run(gradient, d, *arguments)) if d in (float32, float64) else None

    return DtypeSpecialized(kernel)


KERNELS: dict[str, Any] = {"alignment_losses": _for(False), "label_posteriors": _for(True)}

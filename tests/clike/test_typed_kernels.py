"""The kernels that are built from typed statements: every form has the types that it needs, narrow and wide."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from candelabra.dtypes import (
    ALL,
    FLOATING,
    INTEGER,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint64,
)
from candelabra_clike import CUDA, OPENCL, C, Source
from candelabra_clike.kernels import (
    alignments,
    class_losses,
    creation,
    label_margins,
    masking,
    multinomial,
    optimizers,
    padding,
    pairs,
    random,
    resampling,
    sorting,
)
from candelabra_clike.kernels import grid_sampling as sampling
from candelabra_clike.kernels import pooling as pools
from candelabra_clike.kernels.attention import causal_mask_source
from candelabra_clike.kernels.distances import NORMS, P_NORM
from candelabra_clike.language import INDEX, ExpressionError, Variable
from candelabra_clike.language.kernels import KernelBuilder
from candelabra_clike.templates import attention, bags, gate_steps, grid_sampling, recurrences
from candelabra_clike.templates.convolutions import gathering, pooling, scatter_planes
from candelabra_clike.templates.convolutions import window_maxima as windows
from candelabra_clike.templates.copies import packing
from candelabra_clike.templates.indexing import argsort, gather, index_arrays, scatter
from candelabra_clike.templates.indexing.scatter import ScatterForm, ScatterRule
from candelabra_clike.templates.matmul import dot
from candelabra_clike.templates.matmul.matmul import TILE_ROWS, micro_tile_for
from candelabra_clike.templates.pairs import gradient_source, reduction_source
from candelabra_clike.templates.pairs import packing as pack_points

FLOATS = [d for d in ALL if d.category == FLOATING]
BOTH = (False, True)
KEYS = ("u32", "u64")
PROCESSORS = ((8, 16), (16, 32))
"""The lanes and the registers of processors."""


def of_class_losses() -> Iterator[Source]:
    """Losses by class and their gradients."""
    for d, serial, wide in product(FLOATS, BOTH, BOTH):
        for weighted in BOTH:
            yield class_losses.forward(d, serial, weighted, wide)
        for single in BOTH:
            yield class_losses.backward(d, serial, single, wide)
    for d in (float32, float64):
        yield from (class_losses.mean(d, shared) for shared in BOTH)
        yield class_losses.mean_of_parts(d)


def of_grids() -> Iterator[Source]:
    """Every mode and padding of grid sampling, and grids of affine maps."""
    for d, rank, corners, serial in product((float32, float64), (2, 3), BOTH, BOTH):
        yield sampling.affine_source(d, rank, corners, serial, wide=rank == 3)
    for d, rank, mode, border, serial in product((float16, float64), (2, 3), range(3), range(3), BOTH):
        if mode != grid_sampling.CUBIC or (rank == 2 and d is float16):
            corners = border == grid_sampling.REFLECTION or serial
            form = grid_sampling.GridForm(d, rank, mode, border, corners, serial, wide=rank == 3)
            yield grid_sampling.sampler(form)
            if mode != grid_sampling.NEAREST:
                yield grid_sampling.grid_gradient(form)
            if serial:
                yield grid_sampling.adjoint(form)


def of_sorting() -> Iterator[Source]:
    """Sorting, selection of the smallest keys, and binary search."""
    every = (argsort.insertion, argsort.digits, argsort.scatter_digits, argsort.runs, argsort.merging)
    for key, wide in product(KEYS, BOTH):
        yield argsort.radix(key, int(key[1:]) // 8, wide)
        yield from (source(key, wide) for source in every)
    for key, fresh, wide in product(KEYS, BOTH, BOTH):
        yield sorting.selection_source(key, fresh, wide)
    for d, wide in product(ALL, BOTH):
        if not d.is_complex:
            yield sorting.search_source(d, wide)


def of_gathering() -> Iterator[Source]:
    """Gather with one and two index arrays, along the last dim or not, by vectors or not."""
    for d, inner, wraps, wide in product((uint8, int16, int64), ((1, 1, 0), (2, 0, 1), (1, 2, 2, 0)), BOTH, BOTH):
        for rank in (1, 3):
            yield gather.text(True, d, rank, inner, wraps, wide)
            yield gather.text(False, d, rank, inner, wraps, wide, 2 if inner == (1, 1, 0) else 1)
    yield index_arrays.bounds_source()


def rule_of(d: dtype) -> ScatterRule:
    """Return the rule of a sum of floating or complex numbers, of groups of three in 16 bits, or of an assignment."""
    if d is float16:
        return ScatterRule.of("groups", d, d, lambda a, b, c, x: (x, 0, c + x), 3)
    if d.category == FLOATING or d is complex64:
        return ScatterRule.of("add", d, d, lambda a, b: a + b)
    return ScatterRule.of("put", d, d, lambda a, b: b)


def of_scattering() -> Iterator[Source]:
    """Scatter by both schedules, with indices checked before or while they are used."""
    for d, folds, inner in product((float32, float16, complex64, int32), (1, 2), ((1, 1, 0), (2, 0, 1), (1, 2, 2, 0))):
        for looped, inside, shared, checked, wraps in product(BOTH, repeat=5):
            if looped or not inside:
                form = ScatterForm(rule_of(d), 2, folds, inner, looped, inside, shared, checked, wraps, wraps)
                yield scatter.text(form)
    for d, serial, distinct in product((float32, complex64), BOTH, BOTH):
        yield scatter_planes.text(rule_of(d), serial, distinct)


def of_compaction() -> Iterator[Source]:
    """The elements and the indices that a mask selects, and the indices of triangles."""
    for wide in BOTH:
        yield masking.count_source(wide)
        for output, rank in product(("values", "indices"), range(4)):
            yield masking.write_source(output, uint8, rank, wide)
        for d, upper, serial in product((int32, int64), BOTH, BOTH):
            yield creation.triangle_source(d, upper, serial, wide)


def of_bags() -> Iterator[Source]:
    """Bags of rows and their gradients."""
    for kind, scaled, mean in product(("sums", "sums_gradient", "maxima", "maxima_gradient", "dots"), BOTH, BOTH):
        for d, serial, wide in product((float16, float32, float64), BOTH, BOTH):
            if (serial or kind in ("sums", "maxima")) and (kind in ("sums", "maxima") or d is not float16):
                form = bags.BagForm(kind, d, scaled and kind.startswith("sums"), mean and not kind.startswith("max"))
                yield bags.source(form, serial, wide)


def of_weights() -> Iterator[Source]:
    """Draws by weight, products with banded matrices and their transposes, and windows at random places."""
    for d, rank, serial, wide in product((float32, float64), (2, 3), BOTH, BOTH):
        yield pools.starts_source(d, rank, serial, wide)
    for d, wide, serial in product((float16, float32, float64), BOTH, BOTH):
        yield multinomial.cumulative_source(d, wide)
        yield multinomial.race_source(d, d is float64 or serial, wide)
        for adjoint in BOTH:
            yield resampling.source(serial, d, 3, adjoint, wide)
    yield multinomial.pick_source(wide=True)


def of_copies() -> Iterator[Source]:
    """Padding, copies into other layouts, flips and triangles, and patches of images."""
    for memory, rank, width, padded, wide in product(("u8", "u64"), (1, 2, 3), (1, 3), BOTH, BOTH):
        yield gathering.source(memory, rank, width, padded, wide)
    for d, rank, serial, wide in product((uint8, uint16, uint64, complex128), (1, 2, 3), BOTH, BOTH):
        if d is not complex128:
            yield packing.source(serial, d, rank, wide)
        yield from (padding.source(serial, d, rank, mode, wide) for mode in padding.ORIGINS)
        for inner in product((1, -1, 2), repeat=2):
            yield masking.copy_source(serial, d, rank, inner, masking.ALL, wide)
            if rank > 1:
                yield masking.copy_source(serial, d, rank, inner, masking.LOWER, wide)
                yield masking.copy_source(serial, d, rank, inner, masking.UPPER, wide)


def of_alignments() -> Iterator[Source]:
    """Connectionist temporal classification."""
    for d in (float32, float64):
        yield alignments.losses(d)
        yield alignments.posteriors(d)


def of_pairs() -> Iterator[Source]:
    """Distances of all pairs of rows and their gradients, and margins of labels."""
    gradients = [*pairs.GRADIENTS.values(), pairs.P_GRADIENT]
    for d, wider, wide in product((float16, float32, float64), BOTH, BOTH):
        yield pack_points(d, wide)
        for norm, serial in product((*NORMS.values(), P_NORM), BOTH):
            yield reduction_source(norm, d, wider, 2, serial, wide)
        for gradient, coordinates in product((*gradients, pairs.largest_gradient(d)), (None, 1, 4)):
            yield gradient_source(gradient, d, wider, wide, coordinates)
        if d is not float16:
            yield from (label_margins.source(d, gradient, wider, wide) for gradient in BOTH)


def of_pools() -> Iterator[Source]:
    """Maxima and sums of windows, and the gradients of sums."""
    for d, rank, serial, wide in product((float16, float64, uint8), (1, 2, 3), BOTH, BOTH):
        for placed in BOTH:
            if d is not uint8:
                yield windows.source(windows.WindowForm(d, rank, placed, serial, wide))
        reductions = [pooling.max_reduction(d, with_index) for with_index in BOTH]
        reductions += [pooling.sum_reduction(d, adjoint) for adjoint in BOTH]
        geometry = pooling.PoolingGeometry((3,) * rank, (2,) * rank, (1,) * rank, (1,) * rank)
        for each, adjacent, dilated in product(reductions, BOTH, BOTH):
            fixed = geometry if adjacent else None
            yield pooling.source(pooling.PoolingForm(each, d, rank, 1, adjacent, serial, wide, fixed, dilated, dilated))


def of_dots() -> Iterator[Source]:
    """Products of a vector and the columns of a matrix."""
    yield from (dot.source(d, rank) for d, rank in product((float32, float64, uint64), range(3)))


def of_random_numbers() -> Iterator[Source]:
    """Random numbers of all kinds, with and without float64."""
    for serial, wide, narrow in product(BOTH, repeat=3):
        kernels = [random.bernoulli(), random.words()]
        for d in (*FLOATS, complex64, complex128):
            kernels += [random.uniform(d), random.normal(d, narrow)]
        for d in FLOATS:
            kernels += [random.exponential(d, narrow), random.bernoulli_each(d)]
        kernels += [random.integers(d, narrow) for d in ALL if d.category <= INTEGER]
        kernels += [random.log_gamma(d) for d in FLOATS if d is not float64]
        yield from (kernel.source(serial, wide) for kernel in kernels)


def of_attention() -> Iterator[Source]:
    """Attention over blocks of queries, its gradient, and causal masks."""
    for lanes, registers in PROCESSORS:
        for rows, rank in product((1, 4, *TILE_ROWS[registers]), (1, 3)):
            tile = micro_tile_for(rows, "f32", lanes, registers)
            yield from (attention.forward(tile, rank), attention.backward(tile, rank))
    for d, serial in product((float32, float64), BOTH):
        yield causal_mask_source(d, serial)


def of_recurrences() -> Iterator[Source]:
    """Steps of recurrent networks, with their products and without, and the packing of weights."""
    for d, (lanes, registers) in product((float32, float64), PROCESSORS):
        for flags in product(BOTH, repeat=2):
            steps = recurrences.rnn(*flags), recurrences.lstm(flags[0]), recurrences.gru_gradient(*flags)
            yield from (step.source(d, lanes, registers) for step in steps)
    for d, serial, step in product((float32, float64), BOTH, (gate_steps.LSTM, gate_steps.gru_backward(True))):
        yield step.source(d, serial)
        yield from (recurrences.packing(d, units) for units in (16, 32))


def of_optimizers() -> Iterator[Source]:
    """Steps of optimizers for one parameter and for several."""
    for d, serial, nesterov in product((float32, float64), BOTH, BOTH):
        step = optimizers.momentum(True, nesterov)
        yield from (step.single(d, serial), step.several(d, serial, 4))


FAMILIES: dict[str, Any] = {
    "class losses": of_class_losses, "grids": of_grids, "sorting": of_sorting, "gathering": of_gathering,
    "scattering": of_scattering, "compaction": of_compaction, "bags": of_bags, "weights": of_weights,
    "copies": of_copies, "alignments": of_alignments, "random numbers": of_random_numbers, "pairs": of_pairs,
    "pools": of_pools, "attention": of_attention, "recurrences": of_recurrences, "optimizers": of_optimizers,
    "dots": of_dots,
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_every_form_is_built(family: str) -> None:
    """No form has an expression of a wrong type or a variable that is not declared: neither needs a compiler."""
    sources = list(FAMILIES[family]())
    assert sources
    for source in sources:
        declared = {p.name for p in source.parameters}
        assert len(declared) == len(source.parameters)
        assert source.body.count("{") == source.body.count("}")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wrong_type_names_the_operator_and_the_place(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel of a family whose indices were floats reaches a compiler; the line is one of the family's modules."""
    number = KernelBuilder.number

    def mistaken(k: KernelBuilder, name: str, type: str = INDEX) -> Variable:
        return number(k, name, "f32" if type == INDEX else type)

    monkeypatch.setattr(KernelBuilder, "number", mistaken)
    with pytest.raises(ExpressionError, match=r"the expression of '[\w ]+' \(\w+\.py, line \d+\): .*f32") as raised:
        next(FAMILIES[family]())
    assert not raised.value.location.startswith(("kernels.py", "kernel_arrays.py", "values.py", "test_"))


@pytest.mark.parametrize("dialect", [C, CUDA, OPENCL], ids=lambda d: d.name)
def test_a_form_is_printed_by_each_dialect(dialect: Any) -> None:
    """One builder serves all languages."""
    source = class_losses.forward(float16, serial=dialect is C, weighted=True, wide=False)
    assert "loss = -load_f16(x[" in source.program(dialect)

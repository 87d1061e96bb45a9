"""Matrix products and convolutions of native kernels: right, and the same bits for every tile of registers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from candelabra_clike import Engine
from candelabra_clike.kernels.convolution import ConvGeometry, conv, conv_input, conv_weight
from candelabra_clike.kernels.matmul import linear, matmul
from candelabra_clike.templates.matmul.matmul import blocks, micro_tile_for
from candelabra_clike.templates.matmul.micro_kernel import MicroTile
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import NativeEngine
from candelabra_native.launch import get_num_threads, set_num_threads

Array = np.ndarray
Shape = tuple[int, ...]

SIZES: dict[str, tuple[int, int, int]] = {
    "a row": (1, 300, 70),
    "two rows": (2, 300, 70),
    "few rows, a wide panel less one": (5, 64, 63),
    "exactly a tile": (13, 256, 32),
    "a tile and one, deeper than a panel": (14, 257, 33),
    "narrow tiles": (32, 100, 48),
    "packed rows": (130, 140, 600),
    "many blocks": (400, 70, 90),
}
"""Rows, depth and columns."""
CONVOLUTIONS: dict[str, tuple[Shape, Shape, int, int]] = {
    "whole rows": ((2, 5, 6, 32), (7, 5, 3, 3), 1, 1),
    "over the ends of rows": ((2, 40, 8, 9), (13, 40, 3, 3), 1, 1),
    "rows of eight": ((3, 6, 8, 8), (64, 6, 3, 3), 1, 1),
    "rows of sixteen, no frame": ((2, 6, 5, 16), (33, 6, 1, 1), 1, 0),
    "rows of four": ((5, 9, 4, 4), (64, 9, 3, 3), 1, 1),
    "rows of four, no frame": ((5, 9, 4, 4), (64, 9, 1, 1), 1, 0),
    "many filters, few positions": ((3, 130, 4, 4), (300, 130, 3, 3), 1, 1),
    "steps": ((2, 16, 9, 12), (70, 16, 3, 3), 2, 1),
    "images longer than a panel": ((3, 4, 20, 21), (40, 4, 3, 3), 1, 1),
}
"""The shapes of images and filters, the stride and the padding."""


class Narrow(NativeEngine):
    """The engine with the registers of processors without AVX-512."""

    traits = replace(NativeEngine.traits, lanes=8, registers=16)


class Wide(NativeEngine):
    """The engine with those of processors with AVX-512. Other processors use several registers for each of them."""

    traits = replace(NativeEngine.traits, lanes=16, registers=32)


ENGINES: dict[str, Engine] = {"narrow": Narrow(), "wide": Wide()}
EACH_TILE = pytest.mark.parametrize("tile", ["wide", pytest.param("narrow", marks=pytest.mark.thorough)])
"""Each engine. Kernels are compiled for the tests, so that `make test` has those of one tile."""


@pytest.fixture(autouse=True)
def _compiler_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow the kernels of the other processors to be compiled."""
    monkeypatch.setenv("CANDELABRA_COMPILE", "1")


def product(engine: Engine, a: Array, b: Array) -> Array:
    """Return the product of two arrays by the kernels of an engine."""
    found: Array = payload(matmul(strided(a, engine), strided(b, engine)))
    return found


def convolved(engine: Engine, x: Array, w: Array, stride: int, padding: int) -> list[Array]:
    """Return a convolution and its gradients by images and filters, for the result's cosine as gradient."""
    geometry = ConvGeometry((stride, stride), (padding, padding), (1, 1), 1)
    y = payload(conv(strided(x, engine), strided(w, engine), None, geometry))
    g = strided(np.cos(y), engine)
    images = conv_input(g, strided(w, engine), x.shape, geometry)
    return [y, payload(images), payload(conv_weight(strided(x, engine), g, w.shape, geometry))]


@pytest.mark.parametrize("layout", ["as they are", pytest.param("transposed", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", SIZES)
def test_products_have_the_same_bits_for_every_tile(name: str, layout: str, rng: np.random.Generator) -> None:
    """The sum of an element does not depend on the tile of registers, and has the error of its terms."""
    m, depth, n = SIZES[name]
    for kind in ("float32", "float64"):
        a, b = rng.standard_normal((m, depth)).astype(kind), rng.standard_normal((depth, n)).astype(kind)
        if layout == "transposed":
            a, b = np.asfortranarray(a), np.asfortranarray(b)
        narrow, wide = product(ENGINES["narrow"], a, b), product(ENGINES["wide"], a, b)
        np.testing.assert_array_equal(narrow, wide)
        terms = np.abs(a).astype("f8") @ np.abs(b).astype("f8")
        error = np.abs(wide - a.astype("longdouble") @ b.astype("longdouble")) / terms
        assert error.max() <= depth * np.finfo(kind).eps


@EACH_TILE
@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint16"])
def test_integers_wrap_around(kind: str, tile: str, rng: np.random.Generator) -> None:
    """Products of integers are those of NumPy, modulo the dtype's range."""
    limits = np.iinfo(kind)
    a, b = (rng.integers(limits.min, limits.max, shape, kind, endpoint=True) for shape in ((9, 40), (40, 35)))
    np.testing.assert_array_equal(product(ENGINES[tile], a, b), a @ b)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_have_the_same_bits_for_every_tile(name: str, rng: np.random.Generator) -> None:
    """Results and gradients do not depend on the tile, nor on how positions are gathered."""
    images, filters, stride, padding = CONVOLUTIONS[name]
    x, w = rng.standard_normal(images).astype("f4"), rng.standard_normal(filters).astype("f4")
    narrow, wide = (convolved(engine, x, w, stride, padding) for engine in ENGINES.values())
    for one, other in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(one, other)


@EACH_TILE
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_sums_over_windows(name: str, tile: str, rng: np.random.Generator) -> None:
    """A convolution of integers is exactly the sum over windows, and its gradients are its adjoints."""
    images, filters, stride, padding = CONVOLUTIONS[name]
    x, w = (rng.integers(-3, 4, shape).astype("f8") for shape in (images, filters))
    framed = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(framed, filters[2:], (2, 3))[:, :, ::stride, ::stride]
    expected = np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)
    for kind in ("f4", "f8"):
        engine, geometry = ENGINES[tile], ConvGeometry((stride, stride), (padding, padding), (1, 1), 1)
        y = payload(conv(strided(x.astype(kind), engine), strided(w.astype(kind), engine), None, geometry))
        np.testing.assert_array_equal(y, expected)
        g = rng.integers(-3, 4, y.shape).astype(kind)
        by_x = payload(conv_input(strided(g, engine), strided(w.astype(kind), engine), x.shape, geometry))
        by_w = payload(conv_weight(strided(x.astype(kind), engine), strided(g, engine), w.shape, geometry))
        total = (expected * g).sum()
        assert (by_x * x).sum() == total == (by_w * w).sum()
        np.testing.assert_array_equal(by_w, np.einsum("nchwij,nohw->ocij", windows, g.astype("f8"), optimize=True))


def test_bits_do_not_depend_on_threads(rng: np.random.Generator) -> None:
    """One thread and three compute the same bits."""
    a, b = rng.standard_normal((200, 300)).astype("f4"), rng.standard_normal((300, 210)).astype("f4")
    x, w = rng.standard_normal((4, 20, 16, 16)).astype("f4"), rng.standard_normal((40, 20, 3, 3)).astype("f4")
    before, found = get_num_threads(), []
    try:
        for number in (1, 3):
            set_num_threads(number)
            found.append([product(ENGINES["wide"], a, b), *convolved(ENGINES["wide"], x, w, 1, 1)])
    finally:
        set_num_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("m", "value", "lanes", "registers", "expected"),
    [
        (64, "f32", 16, 32, MicroTile(13, 2, "f32", 16)),
        (32, "f32", 16, 32, MicroTile(8, 2, "f32", 16)),
        (3, "f32", 16, 32, MicroTile(2, 2, "f32", 16)),
        (11, "f32", 16, 32, MicroTile(4, 2, "f32", 16)),
        (64, "f64", 16, 32, MicroTile(13, 2, "f64", 8)),
        (1, "f32", 16, 32, MicroTile(1, 2, "f32", 16)),
        (1, "f32", 8, 16, MicroTile(1, 4, "f32", 8)),
        (64, "f32", 8, 16, MicroTile(6, 2, "f32", 8)),
        (64, "f64", 8, 16, MicroTile(6, 1, "f64", 8)),
        (32, "u32", 8, 16, MicroTile(4, 2, "u32", 8)),
        (2, "u64", 8, 16, MicroTile(2, 1, "u64", 8)),
    ],
)
def test_tiles_follow_from_the_registers(m: int, value: str, lanes: int, registers: int, expected: MicroTile) -> None:
    """A tile fills the registers, unless fewer rows leave fewer of them empty. It has no more rows than the matrix."""
    assert micro_tile_for(m, value, lanes, registers) == expected


def test_blocks_are_narrow_before_they_are_short() -> None:
    """Columns are divided first, since each block packs its own; rows only into blocks of several tiles."""
    tile = MicroTile(13, 2, "f32", 16)
    assert blocks(768, 512, 768 * 512 * 128, tile, 8) == (390, 32)
    assert blocks(2000, 32, 2000 * 32 * 1000, tile, 8) == (260, 32)
    assert blocks(64, 32, 64 * 32 * 4000, tile, 8) == (65, 32)


@EACH_TILE
@pytest.mark.parametrize("rows", [1, 3, 7, 11, 14, 27])
def test_a_panel_of_few_rows_begins_before_them(tile: str, rows: int) -> None:
    """Rows that do not fill a tile, also with a start, are computed with those before them, and stored once."""
    draw = np.random.default_rng(rows)
    x, w, b = (draw.standard_normal(s).astype(np.float32) for s in ((rows, 300), (40, 300), (40,)))
    engine = ENGINES[tile]
    got = payload(linear(strided(x, engine), strided(w, engine), strided(b, engine)))
    np.testing.assert_allclose(got, x.astype(float) @ w.T + b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
def test_linear_takes_any_layout(bias: bool) -> None:
    """The vectors along the last dim are the rows of one matrix, whatever the strides are; a vector is a row."""
    engine, draw = ENGINES["wide"], np.random.default_rng(3)
    x, w, b = draw.standard_normal((5, 12, 7)), draw.standard_normal((12, 9)).T, draw.standard_normal(18)[::2]
    start = strided(b, engine) if bias else None
    for each in (x.swapaxes(1, 2), x.swapaxes(1, 2)[0], x[0, :, 0], x[:0].swapaxes(1, 2)):
        got = payload(linear(strided(each, engine), strided(w, engine), start))
        np.testing.assert_allclose(got, each @ w.T + (b if bias else 0), rtol=0, atol=1e-12)


def test_linear_declines_what_is_no_matrix_of_one_dtype() -> None:
    """The composite serves a vector of weights, a bias that broadcasts, other dtypes, and finds wrong shapes."""
    engine = ENGINES["wide"]
    x, w, b = (strided(np.ones(s), engine) for s in ((4, 3), (2, 3), (2,)))
    others = [strided(a, engine) for a in (np.ones(3), np.ones(1), np.ones((2, 3), np.float32), np.ones((2, 4)))]
    assert linear(x, w, b) is not NotImplemented
    assert linear(x, others[0], None) is NotImplemented
    assert linear(x, w, others[1]) is NotImplemented
    assert linear(x, others[2], None) is NotImplemented
    assert linear(x, others[3], None) is NotImplemented


def test_a_batch_of_rows_is_one_matrix() -> None:
    """A batch times one matrix is one product, and an empty one has no elements."""
    engine, draw = ENGINES["wide"], np.random.default_rng(4)
    x, y = draw.standard_normal((3, 4, 5)), draw.standard_normal((6, 5)).T
    np.testing.assert_allclose(payload(matmul(strided(x, engine), strided(y, engine))), x @ y, rtol=0, atol=1e-12)
    assert payload(matmul(strided(x[:0], engine), strided(y, engine))).shape == (0, 4, 6)

"""Draws as programs: the published answers, and the text of each form."""

from functools import lru_cache
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra_clike import CUDA, OPENCL, Engine
from candelabra_clike.kernels import random
from candelabra_clike.templates.random_numbers import COUNTERS_PER_ITEM, RandomKernel
from candelabra_opencl.backend import OpenCLBackend

pytestmark = pytest.mark.rounding

SEED, OFFSET = 20240229, 41
NUMPY = {cd.float64: np.float64, cd.float32: np.float32, cd.uint64: np.uint64, cd.int64: np.int64, cd.bool: np.uint8}


@lru_cache(1)
def engine() -> Engine:
    """Return the engine of the first OpenCL device."""
    return OpenCLBackend().engine(0)


def drawn(draw: RandomKernel, n: int, d: Any, *numbers: int, seed: int = SEED, offset: int = OFFSET) -> Any:
    """Return ``n`` values of a draw as a NumPy array."""
    made = draw(engine(), (n,), d, seed, offset, *numbers)
    return np.frombuffer(engine().read(made.buffer, 0, n * d.itemsize), NUMPY[d])


def test_words_are_numpys() -> None:
    """Seeds and offsets use all 64 bits, and the counters span two work-items."""
    for seed, offset in ((0, 0), (2**64 - 1, 2**64 - 10_000), (7, 2**32 - 3)):
        n = 4 * COUNTERS_PER_ITEM + 3
        numpys = np.random.Philox(key=seed, counter=offset).random_raw(n)
        assert (drawn(random.words(), n, cd.uint64, seed=seed, offset=offset) == numpys).all()


@pytest.mark.parametrize(
    ("draw", "d", "answers"),
    [
        (random.uniform(cd.float64), cd.float64, "0x1.8aa5d6aecdd9fp-1 0x1.f1a50e94b8a44p-1"),
        (random.uniform(cd.float32), cd.float32, "0x1.9bb3e4p-2 0x1.8aa5d6p-1"),
        (random.normal(cd.float64, True), cd.float64, "0x1.6bb9b56aa4a65p-1 -0x1.02fcef7d5343ep-3"),
        (random.normal(cd.float32, True), cd.float32, "0x1.683a86p-3 -0x1.56a386p+0"),
        (random.exponential(cd.float64, True), cd.float64, "0x1.0a942dff19a5bp-2 0x1.d1ee3d6a5ca9p-6"),
        (random.exponential(cd.float32, True), cd.float32, "0x1.d284e8p-1 0x1.0a942ep-2"),
    ],
)
def test_continuous_draws_give_the_specifications_answers(draw: RandomKernel, d: Any, answers: str) -> None:
    """The values are those of the table in section 12."""
    assert [float(value).hex() for value in drawn(draw, 2, d)] == [
        float.fromhex(answer).hex() for answer in answers.split()
    ]


def test_discrete_draws_give_the_specifications_answers() -> None:
    """The values are those of the table in section 12."""
    assert drawn(random.integers(cd.int64, False), 4, cd.int64, 0, 10).tolist() == [7, 9, 9, 8]
    large = drawn(random.integers(cd.int64, True), 2, cd.int64, 0, 10**12)
    assert large.tolist() == [770796498144, 971182606036]
    assert drawn(random.bernoulli(), 8, cd.bool, 1 << 31).tolist() == [1, 0, 1, 0, 1, 0, 0, 0]


def test_devices_without_float64_get_programs_without_it() -> None:
    """Each draw of a narrower dtype has a form in float32."""
    for draw in (
        random.uniform(cd.float32),
        random.uniform(cd.complex64),
        random.normal(cd.float32, False),
        random.normal(cd.complex64, False),
        random.exponential(cd.bfloat16, False),
        random.bernoulli_each(cd.float16),
    ):
        assert not draw.source(serial=True, wide=False).float64, draw.name


@pytest.mark.parametrize("dialect", [OPENCL, CUDA], ids=lambda dialect: dialect.name)
def test_only_loops_of_a_processor_multiply_by_halves(dialect: Any) -> None:
    """GPUs have an instruction for the high half of a product; a vectorised loop does not."""
    for serial in (True, False):
        text = random.uniform(cd.float32).source(serial, wide=False).program(dialect)
        assert ("PHILOX(multiply_high_u64," in text) == serial

"""Generators: seeds, states, defaults per device, and threads."""

import copy
import threading
from typing import Any

import candelabra as cd
import pytest
from candelabra._random import generator as generators
from candelabra._random.generator import Generator, default_generator, fork_rng


def listed(x: Any) -> Any:
    """The elements as Python numbers."""
    return x._payload.tolist()


def test_a_seed_gives_the_same_numbers_again() -> None:
    """After ``manual_seed`` the default generator repeats itself."""
    cd.manual_seed(7)
    first = listed(cd.rand(5))
    cd.manual_seed(7)
    assert listed(cd.rand(5)) == first
    assert cd.initial_seed() == 7


@pytest.mark.parametrize(
    ("seed", "kept"), [(-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1), (True, 1), (3.9, 3)]
)
def test_seeds_are_modulo_two_to_the_64(seed: Any, kept: int) -> None:
    """Negative seeds count from 2**64 down, as in PyTorch."""
    assert Generator().manual_seed(seed).initial_seed() == kept


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_beyond_64_bits_are_refused(seed: int) -> None:
    """A seed that 64 bits do not hold is a ValueError, and the generator stays where it was."""
    generator = Generator().manual_seed(3)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        generator.manual_seed(seed)
    assert generator.initial_seed() == 3


def test_what_is_no_number_is_no_seed() -> None:
    """The error names the type that was given."""
    with pytest.raises(TypeError, match="manual_seed expected an int, but got list"):
        cd.manual_seed([])


def test_a_new_generator_is_the_same_every_time() -> None:
    """Generators that nobody seeded agree, as PyTorch's do; seeding by the system makes them differ."""
    a, b = Generator(), Generator()
    assert listed(cd.rand(3, generator=a)) == listed(cd.rand(3, generator=b))
    assert a.seed() == a.initial_seed()
    assert a.initial_seed() != b.initial_seed()


def test_a_state_round_trips() -> None:
    """A state is 16 bytes, and numbers continue from it."""
    generator = Generator().manual_seed(2**63 + 5)
    cd.rand(100, generator=generator)
    state = generator.get_state()
    assert (state.dtype, tuple(state.shape)) == (cd.uint8, (16,))
    after = listed(cd.randn(3, generator=generator))
    generator.set_state(state)
    assert listed(cd.randn(3, generator=generator)) == after
    assert listed(cd.randn(3, generator=generator)) != after


def test_default_states() -> None:
    """``get_rng_state`` and ``set_rng_state`` are those of the default generator."""
    state = cd.get_rng_state()
    first = listed(cd.rand(3))
    cd.set_rng_state(state)
    assert listed(cd.rand(3)) == first


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (3, TypeError, "expected a candelabra.ByteTensor, but got int"),
        (cd.zeros(16), TypeError, "RNG state must be a candelabra.ByteTensor"),
        (cd.zeros(3, dtype=cd.uint8), RuntimeError, "RNG state is wrong size: expected 16 bytes, but got 3"),
    ],
)
def test_what_is_no_state(state: Any, error: type[Exception], text: str) -> None:
    """Only a uint8 tensor of 16 elements is a state."""
    with pytest.raises(error, match=text):
        Generator().set_state(state)


def test_clones_continue_alike() -> None:
    """A clone, and a deep copy, draw what the original draws next."""
    generator = Generator().manual_seed(1)
    cd.rand(9, generator=generator)
    others = [generator.clone_state(), copy.deepcopy(generator)]
    wanted = listed(cd.rand(4, generator=generator))
    assert [listed(cd.rand(4, generator=g)) for g in others] == [wanted, wanted]


def test_offsets() -> None:
    """The offset counts counters, and can be set."""
    generator = Generator()
    cd.rand(9, generator=generator)
    assert generator.get_offset() == 2
    assert generator.set_offset(0).get_offset() == 0
    with pytest.raises(RuntimeError, match=r"offset must be in \[0, 2\*\*64\)"):
        generator.set_offset(-1)


def test_a_generator_is_used_up_at_the_end() -> None:
    """Past the last counter a draw is an error, and the offset stays."""
    generator = Generator().set_offset(2**64 - 2)
    with pytest.raises(RuntimeError, match="the generator is exhausted"):
        generator.take(2)
    assert generator.get_offset() == 2**64 - 2


def test_forks_leave_no_trace() -> None:
    """What is drawn or seeded inside ``fork_rng`` does not change what comes after it."""
    cd.manual_seed(5)
    wanted = listed(cd.rand(6))
    cd.manual_seed(5)
    with fork_rng():
        cd.rand(100)
        cd.manual_seed(6)
    assert listed(cd.rand(6)) == wanted
    assert cd.initial_seed() == 5
    with fork_rng(enabled=False):
        cd.rand(1)
    assert default_generator().get_offset() == 2


def test_threads_never_share_a_number() -> None:
    """Counters are reserved under a lock: many threads together take each exactly once."""
    generator = Generator()
    taken: list[int] = []

    def draw() -> None:
        mine = [generator.take(3)[1] for _ in range(200)]
        taken.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(0, 2400, 3))


def test_a_late_device_starts_from_the_seed() -> None:
    """The default generator of a device that is used later starts where the others did."""
    cd.manual_seed(11)
    cd.rand(50)
    place = default_generator().device
    generators._defaults.by_device.pop(place)
    assert (default_generator().initial_seed(), default_generator().get_offset()) == (11, 0)


def test_how_a_generator_prints() -> None:
    """Its representation shows seed and offset."""
    assert repr(Generator().manual_seed(4)) == "<candelabra.Generator seed=4 offset=0>"

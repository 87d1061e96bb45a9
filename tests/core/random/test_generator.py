"""Generators: seeds, states, defaults per device, and threads."""

import copy
import threading
from typing import Any

import candelabra as cd
import pytest
from candelabra._random import generator as generators
from candelabra._random.generator import Generator, default_generator, fork_rng


def to_list(x: Any) -> Any:
    """Return the elements as Python numbers."""
    return x._payload.tolist()


def test_a_seed_gives_the_same_numbers_again() -> None:
    """``manual_seed`` restarts the default generator's sequence."""
    cd.manual_seed(7)
    first = to_list(cd.rand(5))
    cd.manual_seed(7)
    assert to_list(cd.rand(5)) == first
    assert cd.initial_seed() == 7


@pytest.mark.parametrize(
    ("seed", "kept"), [(-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1), (True, 1), (3.9, 3)]
)
def test_seeds_are_modulo_two_to_the_64(seed: Any, kept: int) -> None:
    """A negative seed is counted from 2**64, as in PyTorch."""
    assert Generator().manual_seed(seed).initial_seed() == kept


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_beyond_64_bits_are_refused(seed: int) -> None:
    """A seed of more than 64 bits is a ValueError, and the generator's state does not change."""
    generator = Generator().manual_seed(3)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        generator.manual_seed(seed)
    assert generator.initial_seed() == 3


def test_what_is_no_number_is_no_seed() -> None:
    """The error names the type of the argument."""
    with pytest.raises(TypeError, match="manual_seed expected an int, but got list"):
        cd.manual_seed([])


def test_a_new_generator_is_the_same_every_time() -> None:
    """Generators without a seed agree, as in PyTorch; ``seed()`` makes them differ."""
    a, b = Generator(), Generator()
    assert to_list(cd.rand(3, generator=a)) == to_list(cd.rand(3, generator=b))
    assert a.seed() == a.initial_seed()
    assert a.initial_seed() != b.initial_seed()


def test_a_state_round_trips() -> None:
    """A state has 16 bytes, and restores the sequence."""
    generator = Generator().manual_seed(2**63 + 5)
    cd.rand(100, generator=generator)
    state = generator.get_state()
    assert (state.dtype, tuple(state.shape)) == (cd.uint8, (16,))
    after = to_list(cd.randn(3, generator=generator))
    generator.set_state(state)
    assert to_list(cd.randn(3, generator=generator)) == after
    assert to_list(cd.randn(3, generator=generator)) != after


def test_default_states() -> None:
    """``get_rng_state`` and ``set_rng_state`` access the default generator."""
    state = cd.get_rng_state()
    first = to_list(cd.rand(3))
    cd.set_rng_state(state)
    assert to_list(cd.rand(3)) == first


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (3, TypeError, "expected a candelabra.ByteTensor, but got int"),
        (cd.zeros(16), TypeError, "RNG state must be a candelabra.ByteTensor"),
        (cd.zeros(3, dtype=cd.uint8), RuntimeError, "RNG state is wrong size: expected 16 bytes, but got 3"),
    ],
)
def test_what_is_no_state(state: Any, error: type[Exception], text: str) -> None:
    """A state must be a uint8 tensor of 16 elements."""
    with pytest.raises(error, match=text):
        Generator().set_state(state)


def test_clones_continue_with_the_same_numbers() -> None:
    """A clone and a deep copy draw the original's next numbers."""
    generator = Generator().manual_seed(1)
    cd.rand(9, generator=generator)
    others = [generator.clone_state(), copy.deepcopy(generator)]
    wanted = to_list(cd.rand(4, generator=generator))
    assert [to_list(cd.rand(4, generator=g)) for g in others] == [wanted, wanted]


def test_offsets() -> None:
    """The offset is a number of counters, and can be set."""
    generator = Generator()
    cd.rand(9, generator=generator)
    assert generator.get_offset() == 2
    assert generator.set_offset(0).get_offset() == 0
    with pytest.raises(RuntimeError, match=r"offset must be in \[0, 2\*\*64\)"):
        generator.set_offset(-1)


def test_a_generator_is_used_up_at_the_end() -> None:
    """A draw beyond the last counter is an error, and the offset does not change."""
    generator = Generator().set_offset(2**64 - 2)
    with pytest.raises(RuntimeError, match="the generator is exhausted"):
        generator.take(2)
    assert generator.get_offset() == 2**64 - 2


def test_forks_leave_no_trace() -> None:
    """Draws and seeds inside ``fork_rng`` do not affect later draws."""
    cd.manual_seed(5)
    wanted = to_list(cd.rand(6))
    cd.manual_seed(5)
    with fork_rng():
        cd.rand(100)
        cd.manual_seed(6)
    assert to_list(cd.rand(6)) == wanted
    assert cd.initial_seed() == 5
    with fork_rng(enabled=False):
        cd.rand(1)
    assert default_generator().get_offset() == 2


def test_threads_never_share_a_number() -> None:
    """Counters are reserved under a lock, so concurrent threads use each exactly once."""
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
    """The default generator of a device that is used later starts with the same seed."""
    cd.manual_seed(11)
    cd.rand(50)
    place = default_generator().device
    kept = generators._defaults.by_device.pop(place)
    assert (default_generator().initial_seed(), default_generator().get_offset()) == (11, 0)
    generators._defaults.by_device[place] = kept  # the attribute of the package is this one


def test_how_a_generator_prints() -> None:
    """The representation shows seed and offset."""
    assert repr(Generator().manual_seed(4)) == "<candelabra.Generator seed=4 offset=0>"


def test_generator_of_the_host_is_an_attribute_of_the_package() -> None:
    """`candelabra.default_generator` is the generator that draws on the host use."""
    assert isinstance(cd.default_generator, cd.Generator)
    cd.default_generator.manual_seed(5)
    first = cd.rand(2).tolist()
    cd.default_generator.manual_seed(5)
    assert cd.rand(2).tolist() == first
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = cd._random.generator.nonsense

"""PoCL on processors that its compiler does not know."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace

import candelabra as cd
import pytest
from candelabra_opencl import pocl_processor
from candelabra_opencl.pocl_processor import PLATFORM, TARGETS, find_name, name_processor, target_for

DEVICE, TRIPLE, NAME = 0x10_000, 0x20_000, 0x30_000


def memory(name: bytes, triple: bytes = b"x86_64-unknown-linux-gnu") -> Callable[[int, int], bytes]:
    """Return a function that reads a description of a device with these texts, at the 80th and the 81st pointer."""
    words = [0, 1, 0x7FFF_0000_0000, DEVICE] * 20 + [TRIPLE, NAME] + [0] * 100
    parts = {DEVICE: b"".join(w.to_bytes(8, "little") for w in words), TRIPLE: triple + b"\0", NAME: name + b"\0"}

    def read(address: int, count: int) -> bytes:
        found = [part[address - start :] for start, part in parts.items() if start <= address < start + len(part)]
        return found[0][:count] if found else b""

    return read


def test_a_processor_that_the_compiler_does_not_know_is_found() -> None:
    """The result is the address of the pointer to its name."""
    assert find_name(memory(b"generic"), DEVICE) == DEVICE + 81 * 8


@pytest.mark.parametrize(("name", "triple"), [(b"znver3", b"x86_64-"), (b"generic-", b"x86_64-"), (b"generic", b"arm")])
def test_other_processors_keep_their_names(name: bytes, triple: bytes) -> None:
    """A known processor, a longer name, and another architecture are left alone."""
    assert find_name(memory(name, triple), DEVICE) is None


def test_the_target_has_no_feature_that_the_processor_lacks() -> None:
    """The newest processor is chosen all of whose instructions may be used."""
    wide = TARGETS["skylake-avx512"]
    assert target_for(wide | {"amx_tile"}) == "skylake-avx512"
    assert target_for(wide - {"avx512vl"}) == "haswell"
    assert target_for(wide - {"fma"}) == "x86-64"
    assert target_for(set()) == "x86-64"


@pytest.mark.parametrize(("platform", "flags"), [("Another", {"avx2"}), (PLATFORM, set[str]())])
def test_only_pocl_on_x86_is_changed(monkeypatch: pytest.MonkeyPatch, platform: str, flags: set[str]) -> None:
    """The descriptions of devices of other drivers and architectures are not even read."""
    monkeypatch.setattr(pocl_processor, "processor_flags", lambda: flags)
    assert name_processor(SimpleNamespace(name=platform), SimpleNamespace()) == ""


def test_an_unknown_processor_gets_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pointer in the description of the device is replaced, and the description of a known one is not."""
    monkeypatch.setattr(pocl_processor, "processor_flags", lambda: TARGETS["haswell"])
    texts = [ctypes.create_string_buffer(text) for text in (b"x86_64-unknown-linux-gnu", b"generic")]
    words = (ctypes.c_uint64 * 128)()
    words[10:12] = [ctypes.addressof(text) for text in texts]
    device = SimpleNamespace(int_ptr=ctypes.addressof(words))
    assert name_processor(SimpleNamespace(name=PLATFORM), device) == "haswell"
    assert ctypes.string_at(words[11]) == b"haswell"
    assert name_processor(SimpleNamespace(name=PLATFORM), device) == ""


def test_programs_are_built_on_this_processor() -> None:
    """Whatever this processor is, the first device computes."""
    x = cd.ones(3, device="opencl")
    assert (x + x).tolist() == [2, 2, 2]

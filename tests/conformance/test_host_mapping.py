"""The property of payloads in the host's memory: correct backends pass, and each fault is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.backend import Backend
from candelabra.library import plugins
from candelabra_conformance.context import Context
from candelabra_conformance.fake import FakeAccelerator
from candelabra_conformance.model import FAILED, PASSED, SKIPPED, Result
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mirror import Mirror, MirrorMapping
from candelabra_conformance.suite import plan, run_case

MUTANTS = {
    "mappings-are-not-written-back": "does not find what was written",
    "mappings-forget-the-offset": "the mapping of a slice has changed other elements, or they it",
    "mappings-forget-strides": "other bits of every second element are mapped",
    "mappings-are-read-only": "a mapping to write has memory that cannot be written",
    "mappings-share-memory": "mappings that exist at once share memory",
    "mappings-of-parts-take-the-whole": "the mapping of a slice has changed other elements, or they it",
    "immutable-arrays-are-mapped": "an array that never changes is mapped to be written, None is due",
    "mappings-do-not-see-pending-work": "work that was submitted before the mapping is missing",
    "mappings-are-written-at-once": "work before a mapping has overwritten what it wrote",
    "mappings-do-not-wait": "other bits of bool",
    "blocks-of-mappings-are-reused-early": "a later mapping has overwritten an earlier one",
}


def result_on(backend: Backend) -> Result:
    """Run the property on a backend's first device."""
    with installed(backend) as context:
        (case,) = plan(context, operators=["device"], patterns=["device/host-mapping*"])
        return run_case(context, case, explained=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Mirror("sound_mapping"),
        lambda: Mirror("sound_mapping", mutable=False),
        lambda: FakeAccelerator("sound_mapping"),
        lambda: FakeAccelerator("sound_mapping", immutable=True),
        lambda: FakeAccelerator("sound_mapping", asynchronous=False),
    ],
    ids=["mirror", "immutable mirror", "fake", "immutable fake", "synchronous fake"],
)
def test_correct_backends_pass(make: Callable[[], Backend]) -> None:
    """With work that is deferred or complete, and arrays that change or never do."""
    assert result_on(make()).verdict == PASSED


def test_every_mutant_of_the_family_is_tried() -> None:
    """The table of this module has them all."""
    assert {mutant.name for mutant in load().values() if mutant.family == "host_mapping"} == set(MUTANTS)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_fault_is_named(name: str) -> None:
    """The case fails on the mutant, with a text that says what is wrong."""
    found = result_on(load()[name].make())
    assert found.verdict == FAILED
    assert MUTANTS[name] in found.message


class _Strange(Mirror):
    """A backend whose mapping is made by a function of the correct one."""

    def __init__(self, change: Callable[[Any, Any], Any], **options: bool) -> None:
        super().__init__("strange_mapping", **options)
        self.change = change

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> Any:
        found = super().map_host(payload, index, read, write)
        return self.change(found, payload)


class _Waiting(MirrorMapping):
    """A mapping with another memory."""

    content: Any = None

    def wait(self) -> Any:
        return self.content(self.memory)


def waiting(content: Callable[[bytearray], Any]) -> Callable[[Any, Any], Any]:
    """Return a change of mappings, whose wait() returns something else."""

    def change(mapping: Any, payload: Any) -> Any:
        made = _Waiting(mapping.mirror, payload, True, mapping.write)
        made.content = content
        return made

    return change


def _cleared(mapping: Any, payload: Any) -> Any:
    if not mapping.write:
        mirror, zeros = mapping.mirror, memoryview(bytes(len(mapping.memory)))
        mirror.copy_(payload, mirror.from_host(payload.index, zeros, payload.shape, mirror.dtype_of(payload)))
    return mapping


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda mapping, payload: object(), "map_host() returned a object, a HostMapping or None is due"),
        (waiting(bytes), "wait() returned a bytes of no bytes, a contiguous memoryview of 1 bytes is due"),
        (
            waiting(lambda memory: memoryview(memory + b"0")),
            "memoryview of 2 bytes, a contiguous memoryview of 1 bytes",
        ),
        (waiting(lambda memory: memoryview(memory)[::-1]), "memoryview of 7 bytes, a contiguous memoryview of 7 bytes"),
        (_cleared, "a mapping to read has changed "),
    ],
    ids=["class", "bytes", "size", "order", "writes"],
)
def test_what_is_no_mapping_is_named(change: Callable[[Any, Any], Any], text: str) -> None:
    """Other classes, memory of another size or order, and mappings to read that write."""
    assert text in result_on(_Strange(change)).message


def test_backends_without_mappings_are_skipped() -> None:
    """With the reason: no method, or no mapping of an ordinary payload."""
    context = Context(str(plugins.reference_device()))
    (case,) = plan(context, operators=["device"], patterns=["device/host-mapping*"])
    skipped = run_case(context, case)
    assert (skipped.verdict, skipped.message) == (SKIPPED, "the backend has no map_host()")
    none = result_on(_Strange(lambda mapping, payload: None))
    assert (none.verdict, none.message) == (SKIPPED, "map_host() maps no payload of the usual dtypes")
    few = result_on(
        FakeAccelerator("few_dtypes", storage_only=("float32", "float16"), missing_dtypes=("int64", "int32"))
    )
    assert (few.verdict, few.message) == (SKIPPED, "the device computes in none of the usual dtypes")


def test_backends_may_map_contiguous_payloads_only() -> None:
    """Others are copied."""

    def contiguous(mapping: Any, payload: Any) -> Any:
        mirror = mapping.mirror
        strides, offset = mirror.layout(payload)
        return None if offset or strides not in ((), (1,)) or not payload.memory.size else mapping

    assert result_on(_Strange(contiguous)).verdict == PASSED


def test_a_fake_mapping_ends_once() -> None:
    """What is written after its end has no effect."""
    fake = FakeAccelerator("ending")
    remove = plugins.add_backend(fake)
    try:
        x = cd.zeros(3, device="ending")
        mapping = fake.map_host(x._payload, 0, True, True)
        assert mapping is not None
        mapping.wait()[:4] = b"\0\0\x80\x3f"
        mapping.unmap()
        assert x.tolist() == [1.0, 0.0, 0.0]
        mapping.wait()[:4] = bytes(4)
        mapping.unmap()
        assert x.tolist() == [1.0, 0.0, 0.0]
    finally:
        remove()

"""The fake accelerator queues work: reads without synchronisation return poison, and waiting makes them correct."""

import random
import threading
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import IntegerDivisionByZero
from candelabra_conformance.fake import FakeAccelerator, Stream, installed
from candelabra_conformance.fake.streams import DEPTH


@pytest.fixture
def fake() -> Iterator[FakeAccelerator]:
    """Install the fake accelerator with its defaults for one test."""
    with installed() as made:
        yield made


def numbers(*values: float, device: str = "fake") -> cd.Tensor:
    """Return a tensor that is already computed: copies from the host are synchronous."""
    return cd.tensor([float(value) for value in values], device=device)


def is_poison(tensor: cd.Tensor) -> bool:
    """Return whether the elements of a float tensor are unwritten."""
    return bool(tensor.isnan().all().item())


def test_a_call_returns_before_anything_is_computed(fake: FakeAccelerator) -> None:
    """The result has its shape and dtype at once, and its memory has poison until a synchronisation."""
    y = numbers(1, 2) * 2
    assert (y.shape, y.dtype) == ((2,), cd.float32)
    hidden = y._payload._hidden
    assert fake.reference.to_host(hidden).tolist() == list(b"\xa5\xa5\xe5\x7f" * 2)
    assert not fake.current_stream(0).query()
    cd.fake.synchronize()
    assert fake.current_stream(0).query()
    assert y.tolist() == [2, 4]


def test_reading_from_the_stream_that_computes_waits_for_it(fake: FakeAccelerator) -> None:
    """`item`, `tolist` and copies to the host wait for the current stream."""
    with cd.fake.Stream():
        y = numbers(1, 2) * 2
        assert y.tolist() == [2, 4]
        assert y.sum().item() == 6
        assert y.to("cpu").tolist() == [2, 4]


def test_what_another_stream_has_not_finished_reads_as_poison(fake: FakeAccelerator) -> None:
    """Without an event two streams have no order, in either direction."""
    x, s = numbers(1, 2), cd.fake.Stream()
    with s:
        y = x * 2
    assert is_poison(y + 1)
    z = x * 3
    with s:
        assert is_poison(z + 1)
    cd.fake.synchronize()
    assert (y.tolist(), z.tolist()) == ([2, 4], [3, 6])


@pytest.mark.parametrize("how", ["wait_stream", "wait_event", "event.wait", "event.synchronize", "synchronize"])
def test_each_way_of_waiting_orders_two_streams(fake: FakeAccelerator, how: str) -> None:
    """A stream that waits for the other stream, or a host that does, reads the computed values."""
    x, s = numbers(1, 2), cd.fake.Stream()
    with s:
        y = x * 2
        event = s.record()
    here: Stream = fake.current_stream(0)
    ways: dict[str, Any] = {
        "wait_stream": lambda: here.wait_stream(s),
        "wait_event": lambda: here.wait_event(event),
        "event.wait": event.wait,
        "event.synchronize": event.synchronize,
        "synchronize": s.synchronize,
    }
    ways[how]()
    assert (y + 1).tolist() == [3, 5]
    assert event.query()


def test_waiting_for_an_event_does_not_wait_for_what_came_after(fake: FakeAccelerator) -> None:
    """An event is a position in a stream: later work stays queued."""
    s = cd.fake.Stream()
    with s:
        y = numbers(1) * 2
        event = s.record_event()
        z = y * 2
    event.synchronize()
    assert y.tolist() == [2]
    assert not s.query()
    assert is_poison(z)
    event.wait(s)
    s.synchronize()
    assert z.tolist() == [4]


def test_a_device_is_finished_newest_stream_first(fake: FakeAccelerator) -> None:
    """A program that forgets to wait for an older stream does not get correct values by accident."""
    y = numbers(1) * 2
    with cd.fake.Stream():
        z = y + 1
    cd.fake.synchronize()
    assert y.tolist() == [2]
    assert is_poison(z)


def test_device_waits_keep_the_order_of_events(fake: FakeAccelerator) -> None:
    """Work that waits for an event of an older stream runs after it, whichever stream is run first."""
    y, s = numbers(1) * 2, cd.fake.Stream()
    s.wait_stream(fake.default_stream(0))
    with s:
        z = y + 1
    cd.fake.synchronize()
    assert z.tolist() == [3]


def test_streams_may_wait_for_each_other_any_number_of_times(fake: FakeAccelerator) -> None:
    """Many alternating waits between two streams neither recurse nor lose work."""
    x, streams = numbers(0), (cd.fake.Stream(), cd.fake.Stream())
    kept = [x]
    for turn in range(DEPTH // 2):
        here, there = streams[turn % 2], streams[1 - turn % 2]
        here.wait_stream(there)
        with here:
            x = x + 1
        kept.append(x)
    streams[1].synchronize()
    assert x.tolist() == [DEPTH // 2]


def test_a_full_stream_waits_for_its_oldest_work(fake: FakeAccelerator) -> None:
    """A stream holds a limited amount of work, so a program that never waits does not keep all its memory."""
    x = numbers(0)
    for _ in range(DEPTH + 5):
        x = x + 1
    assert len(fake.current_stream(0).waiting) == DEPTH
    assert x.tolist() == [DEPTH + 5]


def test_each_thread_has_a_current_stream_of_its_own(fake: FakeAccelerator) -> None:
    """A stream entered in one thread is not current in another, which starts on the default stream."""
    s, seen = cd.fake.Stream(), []
    with s:
        thread = threading.Thread(target=lambda: seen.append(fake.current_stream(0)))
        thread.start()
        thread.join()
        assert fake.current_stream(0) is s
        assert fake.current_stream(1) is fake.default_stream(1)
    assert seen == [fake.default_stream(0)]
    assert fake.current_stream(0) is fake.default_stream(0)


def test_streams_nest(fake: FakeAccelerator) -> None:
    """Leaving a block, also by an error, makes the outer stream current again; one stream may be entered twice."""
    s, t = cd.fake.Stream(), cd.fake.Stream()
    with s:
        with t, s:
            assert fake.current_stream(0) is s
        with pytest.raises(RuntimeError, match="match the size"), t:
            numbers(1, 2) + numbers(1, 2, 3)
        assert fake.current_stream(0) is s


def test_threads_share_a_device(fake: FakeAccelerator) -> None:
    """Several threads compute on one device, on the default stream and on their own, and each gets its numbers."""
    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        stream = cd.fake.Stream()
        x = numbers(number)
        for turn in range(50):
            if turn % 2:
                x = x + 1
                fake.current_stream(0).synchronize()
            else:
                with stream:
                    x = x + 1
                    stream.synchronize()
        found[number] = x.tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: [n + 50] for n in range(4)}


def test_two_devices_are_synchronised_separately(fake: FakeAccelerator) -> None:
    """Waiting for one device leaves the queued work of the other; a transfer waits for its source."""
    x, y = numbers(1) * 2, numbers(1, device="fake:1") * 3
    cd.fake.synchronize(0)
    assert fake.current_stream(0).query()
    assert not fake.current_stream(1).query()
    assert y.to("fake:0").add_(x).tolist() == [5]


def test_an_event_of_another_device_can_be_waited_for(fake: FakeAccelerator) -> None:
    """Events order streams of two devices just as those of one device."""
    y = numbers(1) * 2
    event = fake.current_stream(0).record()
    event.wait(fake.current_stream(1))
    fake.current_stream(1).synchronize()
    assert event.query()
    assert fake.reference.to_host(y._payload._hidden).cast("f").tolist() == [2]


def test_what_fails_late_is_raised_at_the_next_synchronisation(fake: FakeAccelerator) -> None:
    """The exception has the reference's class and message, after device and operator; later work is unaffected."""
    x, wrong = numbers(1, 2, 3), cd.tensor([5], device="fake")
    y = x[wrong]
    assert y.shape == (1,)
    text = r"^fake:0: 'index' failed: index 5 is out of bounds for dimension 0 with size 3$"
    with pytest.raises(IndexError, match=text) as caught:
        cd.fake.synchronize()
    assert isinstance(caught.value.__cause__, IndexError)
    cd.fake.synchronize()
    assert (x + 1).tolist() == [2, 3, 4]
    assert is_poison(y)


def test_an_error_is_raised_by_the_stream_that_has_it(fake: FakeAccelerator) -> None:
    """Synchronisation of another stream does not raise it; that of its own stream or of the device does, once."""
    s, zero = cd.fake.Stream(), cd.tensor([0], device="fake")
    with s:
        cd.tensor([1], device="fake") // zero
    fake.default_stream(0).wait_stream(s)
    fake.default_stream(0).synchronize()
    with pytest.raises(IntegerDivisionByZero, match="fake:0: 'floor_divide' failed"):
        s.record().synchronize()
    s.synchronize()
    with s:
        cd.tensor([1], device="fake") // zero
    del s
    with pytest.raises(IntegerDivisionByZero, match="fake:0: 'floor_divide' failed"):
        cd.fake.synchronize()


def test_of_several_late_errors_the_first_is_raised_with_the_others_in_a_note(fake: FakeAccelerator) -> None:
    """No error is lost."""
    x = numbers(1, 2)
    x[cd.tensor([5], device="fake")]
    x.gather(0, cd.tensor([7], device="fake"))
    with pytest.raises(IndexError, match="'index' failed: index 5") as caught:
        x.tolist()
    assert any("'gather' failed" in note and "7" in note for note in caught.value.__notes__)
    assert x.tolist() == [1, 2]


def test_work_after_a_failed_one_is_done(fake: FakeAccelerator) -> None:
    """The result of failed work is poison, and the rest of the stream runs."""
    x = numbers(1, 2)
    lost = x[cd.tensor([5], device="fake")]
    sums, good = lost + 1, x + 1
    with pytest.raises(IndexError, match="'index' failed"):
        cd.fake.synchronize()
    assert is_poison(sums)
    assert good.tolist() == [2, 3]


def test_what_the_shapes_give_is_raised_at_the_call(fake: FakeAccelerator) -> None:
    """Shapes that do not match are an error of the call, with the reference's message, before work is queued."""
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        numbers(1, 2) + numbers(1, 2, 3)
    assert fake.current_stream(0).query()


def test_a_kernel_that_looks_at_values_waits_for_its_stream(fake: FakeAccelerator) -> None:
    """Data-dependent shapes and factorizations are correct, and their errors are raised by the call."""
    x = numbers(0, 1, 2) * 2
    assert x.nonzero().tolist() == [[1], [2]]
    assert x.masked_select(x > 1).tolist() == [2, 4]
    assert cd.linalg.cholesky(cd.eye(2, device="fake") * 4).tolist() == [[2, 0], [0, 2]]
    with pytest.raises(cd.linalg.LinAlgError, match="cholesky"):
        cd.linalg.cholesky(-cd.eye(2, device="fake"))


def test_without_asynchrony_every_call_is_done_when_it_returns() -> None:
    """Errors are raised by the call, and no stream ever has queued work."""
    with installed(asynchronous=False) as fake:
        y = numbers(1, 2) * 2
        assert fake.current_stream(0).query()
        assert fake.reference.to_host(y._payload._hidden).cast("f").tolist() == [2, 4]
        with pytest.raises(IndexError, match=r"^index 5 is out of bounds"):
            y[cd.tensor([5], device="fake")]
        assert y.clone().add_(1).tolist() == [3, 5]
        assert cd.zeros(2, device="fake").copy_(y).tolist() == [2, 4]


@pytest.mark.parametrize("seed", range(5))
def test_a_program_that_waits_is_right_on_any_streams(fake: FakeAccelerator, seed: int) -> None:
    """Random programs over three streams are correct if each step waits for the writers of its operands, also in
    place."""
    choose = random.Random(seed)
    streams = [fake.stream(0) for _ in range(3)]
    there = [cd.tensor([float(n), 1.0], device="fake") for n in range(4)]
    here = [cd.tensor([float(n), 1.0]) for n in range(4)]
    for _ in range(40):
        stream, a, b = choose.choice(streams), choose.randrange(4), choose.randrange(4)
        for other in streams:
            stream.wait_stream(other)
        with stream:
            if choose.random() < 0.5:
                there[a] = there[a] * 0.5 + there[b]
                here[a] = here[a] * 0.5 + here[b]
            else:
                there[a].sub_(there[b].sin())
                here[a].sub_(here[b].sin())
    cd.fake.synchronize()
    assert [t.tolist() for t in there] == [t.tolist() for t in here]


def test_training_on_a_stream_gives_the_references_gradients(fake: FakeAccelerator) -> None:
    """A backward pass is queued like all work."""

    def gradient(device: str) -> list[list[float]]:
        w = cd.linspace(-1, 1, 6).reshape(2, 3).to(device).requires_grad_()
        (cd.ones(4, 2, device=device) @ w).tanh().square().mean().backward()
        assert w.grad is not None
        return w.grad.tolist()  # type: ignore[no-any-return]

    with cd.fake.Stream():
        found = gradient("fake")
    assert found == gradient("cpu")

"""Concurrent builds and launches of several threads on one device."""

import threading
from collections.abc import Callable

import candelabra as cd
import numpy as np
import pytest
from candelabra_clike import Source
from candelabra_clike.source import number, writes
from candelabra_opencl.backend import OpenCLBackend

THREADS = 4


def at_once(work: Callable[[int], None]) -> None:
    """Run the function in four threads that start together, and raise an error that occurs in one of them."""
    start = threading.Barrier(THREADS)
    problems: list[BaseException] = []

    def body(own: int) -> None:
        try:
            start.wait()
            work(own)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def test_one_kernel_in_four_threads(device: cd.device) -> None:
    """Arguments are per thread: no launch gets another thread's numbers or buffers."""

    def work(own: int) -> None:
        values = np.arange(3000, dtype=np.float32)
        x = cd.from_numpy(values).to(device)
        for turn in range(60):
            y = (x + float(own * 100 + turn)) * 2.0
            z = y - x
            if turn % 20 == own:
                assert np.array_equal(z.cpu().numpy(), (values + (own * 100 + turn)) * 2 - values)

    at_once(work)


@pytest.mark.parametrize("kind", ["same", "own"])
def test_kernels_are_built_in_four_threads(kind: str) -> None:
    """Kernels that several threads use for the first time are built once each, and correctly."""
    engine = OpenCLBackend("built").engine(0)
    engine.builder.cache = None  # type: ignore[misc]

    def work(own: int) -> None:
        for turn in range(3):
            mark = turn if kind == "same" else 10 * own + turn
            source = Source(f"build_{mark}", (writes("out", "i32"), number("n", "i32")), f"out[0] = n + {mark};")
            out = engine.allocate(4)
            engine.compile(source)(1, out, 1000 * own)
            assert engine.read(out, 0, 4).cast("i")[0] == 1000 * own + mark

    at_once(work)
    assert engine.builder.built == (3 if kind == "same" else 3 * THREADS)


def test_streams_of_four_threads(device: cd.device) -> None:
    """Each thread has its own stream: memory that one frees is not written by another before it was read."""
    values = np.arange(20_000, dtype=np.float32)

    def work(own: int) -> None:
        stream = cd.opencl.Stream()  # type: ignore[attr-defined]
        with stream:
            x = cd.from_numpy(values).to(device)
            for turn in range(30):
                y = (x + float(own)) * 2.0 + float(turn)
                if turn % 10 == 9:
                    stream.synchronize()
                    assert np.array_equal(y.cpu().numpy(), (values + own) * 2 + turn)
            stream.synchronize()

    at_once(work)

"""The engine ``nccl`` on doubles of CuPy and NCCL: which calls it makes, with which arguments. No GPU is used."""

from __future__ import annotations

import inspect
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import candelabra as cd
import pytest
from candelabra.distributed import _engines, threads
from candelabra.distributed._alone import AloneCommunicator
from candelabra.distributed.engine import EngineUnavailable, Message
from candelabra_clike import StridedArray
from candelabra_conformance.fake import installed
from candelabra_cuda import nccl
from candelabra_cuda.nccl import KINDS, OPS, NCCLCommunicator, NCCLEngine

from tests.cuda import nccl_rank
from tests.distributed.device_engine import Devices

# The parameters of CuPy 14.2, from the signatures that `help(cupy.cuda.nccl.NcclCommunicator)` shows.
SIGNATURES = {
    "allReduce": "sendbuf recvbuf count datatype op stream",
    "reduce": "sendbuf recvbuf count datatype op root stream",
    "broadcast": "sendbuff recvbuff count datatype root stream",
    "allGather": "sendbuf recvbuf count datatype stream",
    "reduceScatter": "sendbuf recvbuf count datatype op stream",
    "send": "sendbuf count datatype peer stream",
    "recv": "recvbuf count datatype peer stream",
    "destroy": "",
}


class Library:
    """A double of ``cupy.cuda.nccl``, which records calls by their parameters' names."""

    available = True

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.made: list[tuple[int, bytes, int]] = []
        for number, name in enumerate((*KINDS.values(), *OPS.values())):
            setattr(self, name, f"{number} {name}")

    def get_unique_id(self) -> bytes:
        return bytes(range(128))

    def groupStart(self) -> None:
        self.calls.append("groupStart")

    def groupEnd(self) -> None:
        self.calls.append("groupEnd")

    def NcclCommunicator(self, ndev: int, commId: bytes, rank: int) -> Any:
        self.made.append((ndev, commId, rank))
        return SimpleNamespace(**{name: self._call(name, words.split()) for name, words in SIGNATURES.items()})

    def _call(self, name: str, words: list[str]) -> Any:
        signature = inspect.Signature([inspect.Parameter(w, inspect.Parameter.POSITIONAL_ONLY) for w in words])

        def call(*args: Any) -> None:
            bound = signature.bind(*args).arguments
            self.calls.append(
                (name, {w: str(v).rpartition(" ")[2] if w in ("datatype", "op") else v for w, v in bound.items()})
            )

        return call


class Flat:
    """What the engine reads of a flat tensor: an array on the double of a GPU."""

    def __init__(self, engine: Any, count: int, dtype: Any) -> None:
        self.dtype = dtype
        memory = engine.allocate((count + 3) * dtype.itemsize)
        self._payload = StridedArray(engine, memory, (count,), (1,), 3, dtype, count, True)
        self.address = int(memory) + 3 * dtype.itemsize

    def numel(self) -> int:
        return int(self._payload.shape[0])


@pytest.fixture
def library() -> Library:
    """Return a double of NCCL."""
    return Library()


@pytest.fixture
def end(library: Library, engine: Any) -> NCCLCommunicator:
    """Return rank 1 of 3."""
    comm = library.NcclCommunicator(3, b"", 1)
    return NCCLCommunicator(library, comm, 1, 3)


def test_arguments(library: Library, end: Any, engine: Any) -> None:
    """Addresses include the offset, copies count bytes, reductions elements, and all go to the current stream."""
    x, y = Flat(engine, 4, cd.float32), Flat(engine, 12, cd.float32)
    half = Flat(engine, 4, cd.bfloat16)
    z = Flat(engine, 4, cd.complex64)
    with engine.another_stream() as stream:
        end.broadcast(x, 2)
        end.all_reduce(half, "bfloat16", "sum")
        end.all_reduce(z, "complex64", "sum")
        end.reduce(x, "float32", "max", 0)
        end.all_gather(x, y)
        end.reduce_scatter(y, x, "float32", "min")
        end.exchange([Message(True, x, 0), Message(False, y, 2)])  # type: ignore[arg-type]
        end.close()
    s, a, b = {"stream": stream.ptr}, x.address, y.address
    own = {"sendbuf": a, "recvbuf": a, "count": 4, "datatype": "NCCL_FLOAT32"}
    assert library.calls == [
        ("broadcast", {"sendbuff": a, "recvbuff": a, "count": 16, "datatype": "NCCL_UINT8", "root": 2, **s}),
        ("allReduce", {"sendbuf": half.address, "recvbuf": half.address, "count": 4, "datatype": "NCCL_BFLOAT16",
                       "op": "NCCL_SUM", **s}),
        ("allReduce", {"sendbuf": z.address, "recvbuf": z.address, "count": 8, "datatype": "NCCL_FLOAT32",
                       "op": "NCCL_SUM", **s}),
        ("reduce", {**own, "op": "NCCL_MAX", "root": 0, **s}),
        ("allGather", {"sendbuf": a, "recvbuf": b, "count": 16, "datatype": "NCCL_UINT8", **s}),
        ("reduceScatter", {**own, "sendbuf": b, "op": "NCCL_MIN", **s}),
        "groupStart",
        ("send", {"sendbuf": a, "count": 16, "datatype": "NCCL_UINT8", "peer": 0, **s}),
        ("recv", {"recvbuf": b, "count": 48, "datatype": "NCCL_UINT8", "peer": 2, **s}),
        "groupEnd",
        ("destroy", {}),
    ]  # fmt: skip


def test_empty_buffers_are_not_sent(library: Library, end: Any, engine: Any) -> None:
    """They have no address."""
    x = Flat(engine, 0, cd.float32)
    end.broadcast(x, 0)
    end.all_reduce(x, "float32", "sum")
    end.reduce(x, "float32", "sum", 0)
    end.all_gather(x, x)
    end.reduce_scatter(x, x, "float32", "sum")
    end.exchange([Message(True, x, 0)])  # type: ignore[arg-type]
    assert library.calls == ["groupStart", "groupEnd"]


@pytest.mark.parametrize(("dtype", "op"), [("int16", "sum"), ("int64", "bxor"), ("complex128", "product")])
def test_reductions_that_nccl_lacks_are_gathered(
    dtype: str, op: str, library: Library, end: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And reduced on each rank."""
    gathered: list[str] = []
    monkeypatch.setattr(end, "reduce_gathered", lambda buffer, op: gathered.append(op))
    x = cd.ones(3, dtype=getattr(cd, dtype))
    end.all_reduce(x, dtype, op)
    end.reduce(x, dtype, op, 0)
    end.reduce_scatter(x, x[:1].clone(), dtype, op)
    assert gathered == [op] * 3
    assert library.calls == []


def test_ranks_agree_on_the_unique_id(library: Library) -> None:
    """Rank 0 creates it; the engine of the host's memory sends it. Each rank's device is current for the creation."""
    entered: list[int] = []
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(Device=lambda index: entered.append(index) or nullcontext())  # type: ignore[func-returns-value]
    )

    def program() -> tuple[int, int]:
        from candelabra import distributed as dist

        communicator = dist.group.WORLD.communicator  # type: ignore[union-attr]
        made = NCCLEngine(library, cupy).connect(communicator, f"cuda:{dist.get_rank()}")
        return made.rank, made.size

    assert threads.run(program, 3) == [(0, 3), (1, 3), (2, 3)]
    assert sorted(library.made) == [(3, bytes(range(128)), rank) for rank in range(3)]
    assert sorted(entered) == [0, 1, 2]
    NCCLEngine(library, cupy).connect(AloneCommunicator(), "cuda")
    assert entered[-1] == 0


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy or NCCL, with the extra that installs both."""
    monkeypatch.setattr(_engines, "_engines", {})
    advice = r'pip install "candelabra\[distributed-nccl\]"'
    library = ModuleType("cupy.cuda.nccl")
    library.available = False  # type: ignore[attr-defined]
    packages = {"cupy": ModuleType("cupy"), "cupy.cuda": ModuleType("cupy.cuda"), "cupy.cuda.nccl": library}
    packages["cupy.cuda"].nccl = library  # type: ignore[attr-defined]
    for name, module in packages.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(EngineUnavailable, match=f"'nccl' needs NCCL, whose library CuPy has not found: {advice}"):
        _engines.engine("nccl")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineUnavailable, match=f"the engine 'nccl' needs CuPy .*: {advice}"):
        _engines.engine("nccl")
    assert not cd.distributed.is_nccl_available()


def test_the_engine_serves_gpus(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default engine for the host's memory."""
    packages: dict[str, Any] = {"cupy": ModuleType("cupy"), "cupy.cuda": ModuleType("cupy.cuda")}
    packages["cupy.cuda"].nccl = library
    packages["cupy.cuda.nccl"] = library
    for name, module in packages.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(_engines, "_engines", {})
    chosen = _engines.engines("nccl", "threads")
    assert chosen.host.name == "threads"
    assert {kind: engine.name for kind, engine in chosen.devices.items()} == {"cuda": "nccl"}
    assert isinstance(nccl.candelabra_engine(), NCCLEngine)
    assert cd.distributed.is_nccl_available()


@pytest.mark.parametrize("size", [1, 2])
def test_the_checks_for_a_gpu_hold_on_the_fake_accelerator(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a failure of nccl_rank.py on a GPU is one of NCCL or of the device."""
    monkeypatch.setattr(_engines, "_engines", dict(_engines._engines))
    _engines.add_engine(Devices("glow"))

    def rank() -> None:
        cd.distributed.init_process_group("threads,devices", device_id="glow:0")
        for name, check in nccl_rank.CHECKS.items():
            if name not in nccl_rank.OF_THE_LIBRARY:
                check("glow:0")
        cd.distributed.destroy_process_group()

    with installed("glow"):
        threads.run(rank, size, init=False)

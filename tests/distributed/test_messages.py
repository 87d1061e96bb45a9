"""Messages between two ranks, and collectives of objects. Ranks are threads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra.distributed import threads


def test_a_message_arrives() -> None:
    """From the rank that is named, or from any, whose rank recv() returns."""

    def program() -> Any:
        x = cd.full((2, 3), 7.0) if dist.get_rank() == 0 else cd.zeros(2, 3)
        if dist.get_rank() == 0:
            dist.send(x, 1)
            dist.send(x.t(), group_dst=1, tag=4)
            return None
        assert dist.recv(x) == 0
        y = cd.zeros(3, 2, dtype=cd.float32)
        assert dist.recv(y, 0, tag=4) == 0
        return x.tolist() == y.t().tolist() == [[7.0] * 3] * 2

    assert threads.run(program, 2) == [None, True]


def test_both_ranks_may_receive_first() -> None:
    """irecv and isend do not block; batch_isend_irecv begins several."""

    def program() -> Any:
        rank = dist.get_rank()
        other, sent, got = 1 - rank, cd.full((4,), float(rank)), cd.empty(4)
        incoming = dist.irecv(got, other)
        outgoing = dist.isend(sent, other)
        assert incoming.wait()
        assert outgoing.wait()
        assert incoming.source_rank() == other
        again = cd.empty(4)
        works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, again, other), dist.P2POp(dist.isend, sent, other)])
        for work in works:
            work.wait()
        assert cd.equal(got, again)
        return got[0].item()

    assert threads.run(program, 2) == [1.0, 0.0]


def test_wrong_messages() -> None:
    """To oneself, of another size, or of an unknown kind."""

    def program() -> None:
        rank = dist.get_rank()
        x = cd.ones(3)
        with pytest.raises(
            ValueError, match="destination rank should not be the same as the rank of the current process"
        ):
            dist.send(x, rank)
        with pytest.raises(ValueError, match="source rank should not be the same as the rank of the current process"):
            dist.recv(x, rank)
        with pytest.raises(ValueError, match=r"Invalid ``op``\. Expected ``op`` to be of type"):
            dist.P2POp(dist.broadcast, x, 0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"Invalid ``p2p_op_list``\. Each op is expected to be of type"):
            dist.batch_isend_irecv([])
        if rank == 0:
            dist.send(x, 1)
        else:
            with pytest.raises(dist.DistBackendError, match=r"irecv\(float32\[2\], src=0\).*has sent 12 bytes"):
                dist.recv(x[:2], 0)

    threads.run(program, 2)


def test_a_monitored_barrier_names_the_missing_ranks() -> None:
    """Rank 0 raises within the timeout; the others go on."""

    def program() -> None:
        dist.monitored_barrier()
        limit = timedelta(seconds=0.2)
        if dist.get_rank() == 0:
            with pytest.raises(
                dist.DistBackendError, match=r"Rank 0 waited 0\.2 s in monitored_barrier for ranks 1, 2, which"
            ):
                dist.monitored_barrier(timeout=limit, wait_all_ranks=True)

    threads.run(program, 3)


def test_objects_are_json_and_tensors() -> None:
    """Containers, numbers, texts, None and tensors arrive as they are, from every rank."""

    def program() -> None:
        rank = dist.get_rank()
        own = {"rank": rank, "data": [1.5, (None, "ä" * rank)], "weights": cd.full((rank + 1,), float(rank))}
        found: list[Any] = [None] * 3
        dist.all_gather_object(found, own)
        for other, each in enumerate(found):
            assert each["rank"] == other
            assert each["data"] == [1.5, (None, "ä" * other)]
            assert each["weights"].tolist() == [float(other)] * (other + 1)
        gathered: list[Any] | None = [None] * 3 if rank == 2 else None
        dist.gather_object(rank * 2, gathered, dst=2)
        assert gathered is None or gathered == [0, 2, 4]
        shared = [{"lr": 0.1}, "text"] if rank == 1 else [None, None]
        dist.broadcast_object_list(shared, src=1)
        assert shared == [{"lr": 0.1}, "text"]
        output: list[Any] = [None]
        dist.scatter_object_list(output, ["a", [2, 3], None] if rank == 0 else None, src=0)
        assert output == [["a", [2, 3], None][rank]]

    threads.run(program, 3)


def test_wrong_objects() -> None:
    """Functions cannot be sent, and lists must have the right lengths."""

    def program() -> None:
        with pytest.raises(TypeError, match=r"obj\['object'\]\['hook'\]"):
            dist.all_gather_object([None, None], {"hook": print})
        with pytest.raises(ValueError, match="object_list must have 2 elements, got 1"):
            dist.all_gather_object([None], 1)
        root = dist.get_rank() == 0
        text = "must be specified on destination rank" if root else "must NOT be specified on non-destination ranks"
        with pytest.raises(ValueError, match=text):
            dist.gather_object(1, None if root else [None, None])
        with pytest.raises(ValueError, match="scatter_object_output_list to be a list of size at least 1"):
            dist.scatter_object_list([], [1, 2])
        if root:
            with pytest.raises(ValueError, match="scatter_object_input_list must have 2 elements on src"):
                dist.scatter_object_list([None], [1])
        objects = [1, 2] if root else [None]
        if root:
            dist.broadcast_object_list(objects)
        else:
            with pytest.raises(ValueError, match="rank 0 has sent 2 objects, this list has 1"):
                dist.broadcast_object_list(objects)

    threads.run(program, 2)

"""The loader: batches, orders and options, without workers and with them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
)
from candelabra.utils.data._utils import collate

from tests.nn.data.samples import Numbers, Stream


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_come_in_order_with_any_number_of_workers(workers: int) -> None:
    """Workers change neither order nor content, and a loader can be iterated several times."""
    loader = DataLoader(Numbers(10), batch_size=3, num_workers=workers)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert len(loader) == len(iter(loader)) == 4
    dropped = DataLoader(Numbers(10), batch_size=3, num_workers=workers, drop_last=True)
    assert [batch.tolist() for batch in dropped] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert len(dropped) == 3
    single = DataLoader(Numbers(2), batch_size=None, num_workers=workers)
    assert list(single) == [0, 1]
    assert len(single) == 2
    chosen = DataLoader(Numbers(9), batch_sampler=[[8, 1], [2]], num_workers=workers, collate_fn=list)
    assert list(chosen) == [[8, 1], [2]]
    assert list(DataLoader(Numbers(0), batch_size=2, num_workers=workers)) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_are_batched_and_divided_among_workers(workers: int) -> None:
    """Each worker reads its part of a stream, and each item occurs in one batch."""
    loader = DataLoader(Stream(7), batch_size=2, num_workers=workers)
    batches = [b.tolist() for b in loader]
    expected = [[0, 1], [2, 3], [4, 5], [6]] if workers == 0 else [[0, 2], [1, 3], [4, 6], [5]]
    assert batches == expected
    assert [b.tolist() for b in loader] == expected
    assert list(DataLoader(Stream(3), batch_size=None, num_workers=workers)) == [0, 1, 2]
    dropped = [b.tolist() for b in DataLoader(Stream(7), batch_size=2, drop_last=True, num_workers=workers)]
    assert dropped == ([[0, 1], [2, 3], [4, 5]] if workers == 0 else [[0, 2], [1, 3], [4, 6]])
    lengths = [len(DataLoader(Stream(7), batch_size=2, drop_last=drop)) for drop in (False, True)]
    assert lengths == [4, 3]
    assert len(DataLoader(Stream(7), batch_size=None)) == 7


def test_shuffling_repeats_with_the_seed() -> None:
    """The default generator, or the loader's own, determines the order, which differs between epochs."""
    loader = DataLoader(Numbers(50), batch_size=50, shuffle=True)
    cd.manual_seed(5)
    first, second = next(iter(loader)).tolist(), next(iter(loader)).tolist()
    assert sorted(first) == list(range(50))
    assert first != second
    cd.manual_seed(5)
    assert next(iter(loader)).tolist() == first
    own = [next(iter(DataLoader(Numbers(9), 9, True, generator=cd.Generator().manual_seed(2)))).tolist() for _ in "ab"]
    assert own[0] == own[1]


def test_the_order_does_not_depend_on_the_number_of_workers() -> None:
    """With one seed, loaders without and with workers shuffle alike, and leave the generator in the same state."""
    orders = []
    for workers in (0, 2):
        generator = cd.Generator().manual_seed(8)
        batches = list(DataLoader(Numbers(20), 4, True, num_workers=workers, generator=generator))
        orders.append(([batch.tolist() for batch in batches], generator.get_state().tolist()))
    assert orders[0] == orders[1]


def test_tensors_are_gathered_as_single_items_would_be_collated() -> None:
    """The batches of a data set of tensors, and of its subsets, are those of the single items; so are gradients."""
    x, y = cd.arange(12.0).reshape(6, 2).requires_grad_(), cd.arange(6)
    dataset = TensorDataset(x, y)

    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> tuple[Any, ...]:
            return tuple(tensor * 2 for tensor in super().__getitem__(index))

    for data in (dataset, Subset(dataset, [4, -1, 0]), Subset(Subset(dataset, range(1, 5)), [3, 0]), Doubled(x, y)):
        order = [i % len(data) for i in (1, 0, 1)]
        batch = next(iter(DataLoader(data, batch_sampler=[order])))
        expected = default_collate([data[i] for i in order])
        assert isinstance(batch, list)
        assert [t.tolist() for t in batch] == [t.tolist() for t in expected]
        assert [t.dtype for t in batch] == [cd.float32, cd.int64]
    cd.autograd.backward(next(iter(DataLoader(dataset, batch_sampler=[[1, 1]])))[0].sum())
    assert x.grad is not None
    assert x.grad.sum(1).tolist() == [0, 4, 0, 0, 0, 0]
    with pytest.raises(IndexError, match="out of bounds"):
        next(iter(DataLoader(dataset, batch_sampler=[[6]])))


def test_a_data_set_may_return_several_items_at_once() -> None:
    """A data set with __getitems__ is asked once for a batch."""
    asked = []

    class Several(Numbers):
        def __getitems__(self, indices: list[int]) -> list[int]:
            asked.append(indices)
            return [-i for i in indices]

    assert [b.tolist() for b in DataLoader(Several(3), 2)] == [[0, -1], [-2]]
    assert asked == [[0, 1], [2]]


def test_default_collation_depends_on_batching() -> None:
    """Batches are collated, and single items are converted."""
    assert DataLoader(Numbers(1)).collate_fn is default_collate
    assert DataLoader(Numbers(1), batch_size=None).collate_fn is default_convert
    item = next(iter(DataLoader([np.ones(2)], batch_size=None)))
    assert item.tolist() == [1, 1]


def test_options_are_attributes_with_pytorchs_defaults() -> None:
    """Every option can be read; those that determine the batches cannot be set later."""
    loader: DataLoader[Any] = DataLoader(Numbers(3))
    assert (loader.batch_size, loader.num_workers, loader.timeout, loader.prefetch_factor) == (1, 0, 0, None)
    assert (loader.pin_memory, loader.pin_memory_device, loader.in_order, loader.drop_last) == (False, "", True, False)
    assert loader.multiprocessing_context is None
    workers: DataLoader[Any] = DataLoader(Numbers(3), num_workers=2, multiprocessing_context="spawn")
    assert (workers.prefetch_factor, workers.multiprocessing_context.get_start_method()) == (2, "spawn")
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)
    loader.collate_fn = len
    assert list(loader) == [1, 1, 1]


def test_page_locked_memory_is_accepted() -> None:
    """pin_memory and its device change nothing."""
    batches = DataLoader(Numbers(2), batch_size=2, pin_memory=True, pin_memory_device="anything")
    assert [batch.tolist() for batch in batches] == [[0, 1]]


def test_programs_exchange_the_sampler_of_a_loader() -> None:
    """A sampler that never ends keeps an iterator, as programs do to keep workers over epochs."""

    class Repeated:
        def __init__(self, sampler: Any) -> None:
            self.sampler = sampler

        def __iter__(self) -> Iterator[Any]:
            while True:
                yield from self.sampler

    loader = DataLoader(Numbers(3), 2)
    object.__setattr__(loader, "batch_sampler", Repeated(loader.batch_sampler))
    batches = iter(loader)
    assert [next(batches).tolist() for _ in range(3)] == [[0, 1], [2], [0, 1]]
    loader._DataLoader__initialized = False  # type: ignore[attr-defined]
    loader.batch_sampler = [[2]]
    assert [b.tolist() for b in loader] == [[2]]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_longer_than_its_length_is_a_warning(workers: int) -> None:
    """After len(loader), a stream that yields more batches causes a warning."""

    class Longer(Stream):
        def __len__(self) -> int:
            return 2

    loader = DataLoader(Longer(3), num_workers=workers)
    assert sum(1 for _ in loader) == 3
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2 .* but 3 batches have been fetched"):
        assert sum(1 for _ in loader) == 3


def test_more_workers_than_cores_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning says how many workers the machine suggests."""
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="will create 5000 worker processes in total. Our suggested max number of"):
        DataLoader(Numbers(3), num_workers=5000)


def test_submodules_that_programs_import_exist() -> None:
    """The names stand where PyTorch has them."""
    places = {
        "dataloader": "DataLoader default_collate default_convert get_worker_info",
        "dataset": "Dataset IterableDataset TensorDataset StackDataset ConcatDataset ChainDataset Subset random_split",
        "sampler": "Sampler BatchSampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler",
        "distributed": "DistributedSampler",
        "_utils.collate": "default_collate default_collate_fn_map default_convert collate",
        "_utils.worker": "WorkerInfo get_worker_info",
    }
    for module, names in places.items():
        found = importlib.import_module(f"candelabra.utils.data.{module}")
        for name in names.split():
            assert hasattr(found, name), (module, name)
    assert cd.utils.data._utils.collate is collate
    assert cd.utils.data.dataloader.DataLoader is DataLoader


def test_outside_of_workers_there_is_no_worker_info() -> None:
    """get_worker_info() is None in the program, also while a loader without workers iterates."""
    seen = [get_worker_info()]
    list(DataLoader(Numbers(1), collate_fn=lambda _: seen.append(get_worker_info())))
    assert seen == [None, None]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing."),
        ({"num_workers": 1, "prefetch_factor": -1}, ValueError, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [0]}, ValueError, "sampler option is mutually exclusive with shuffle"),
        ({"batch_size": 2, "batch_sampler": [[0]]}, ValueError, "batch_sampler option is mutually exclusive with"),
        ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_size": 2.0}, ValueError, "batch_size should be a positive integer value, but got batch_size=2.0"),
        ({"drop_last": 1}, ValueError, "drop_last should be a boolean value, but got drop_last=1"),
        (
            {"multiprocessing_context": "fork"},
            ValueError,
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            "num_workers=0",
        ),
        (
            {"multiprocessing_context": "bad", "num_workers": 1},
            ValueError,
            "multiprocessing_context option should specify a valid start method in [",
        ),
        (
            {"multiprocessing_context": 3, "num_workers": 1},
            TypeError,
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            "but got multiprocessing_context=3",
        ),
    ],
)
def test_wrong_options_raise_an_error(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """Options that exclude each other, or have no valid value, raise PyTorch's class of error with the reason."""
    with pytest.raises(error, match=re.escape(text)):
        DataLoader(Numbers(3), **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shuffle": True}, "expected unspecified shuffle option, but got shuffle=True"),
        ({"sampler": [0]}, "expected unspecified sampler option, but got sampler=[0]"),
        ({"batch_sampler": [[0]]}, "expected unspecified batch_sampler option, but got batch_sampler=[[0]]"),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
    ],
)
def test_wrong_options_of_a_stream_raise_an_error(options: dict[str, Any], text: str) -> None:
    """A stream has no indices, so nothing may choose them."""
    with pytest.raises(ValueError, match=re.escape(text)):
        DataLoader(Stream(3), **options)
    assert len(list(DataLoader(Stream(3), shuffle=False))) == 3


def test_a_timeout_needs_workers() -> None:
    """Without workers nothing is waited for, and a timeout is refused when the iteration begins."""
    with pytest.raises(AssertionError, match="requires timeout == 0"):
        iter(DataLoader(Numbers(3), timeout=1))


def test_a_stream_without_a_length_gives_the_loader_none() -> None:
    """The length of a loader is that of its data set, or a TypeError."""

    class Endless(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(int, 1)

    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(Endless()))
    data: Dataset[Any] = Endless()
    batches = iter(DataLoader(data, batch_size=2))
    assert next(batches).tolist() == [0, 0]

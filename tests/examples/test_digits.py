"""The demo, end to end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import candelabra as cd
import pytest
from candelabra._plugins import registry

from examples import digits


def test_the_data_is_what_its_readme_says() -> None:
    """There are 1,797 images of 64 values from 0 to 1, and each digit occurs about equally often."""
    images, labels = digits.read_digits()
    assert len(images) == len(labels) == 1797
    assert {len(image) for image in images} == {64}
    assert min(map(min, images)) == 0
    assert max(map(max, images)) == 1
    counts = Counter(labels)
    assert sorted(counts) == list(range(10))
    assert min(counts.values()) == 174


def test_the_split_is_disjoint_and_the_same_every_time() -> None:
    """The model is tested on digits that it was not trained on."""
    data = digits.read_digits()
    train_x, train_y, test_x, test_y = digits.split_digits(*data)
    assert train_x.shape == (1437, 1, 8, 8)
    assert test_x.shape == (360, 1, 8, 8)
    assert (len(train_y), len(test_y)) == (1437, 360)
    assert digits.split_digits(*data)[3].tolist() == test_y.tolist()


def test_the_demo_trains_saves_loads_and_compares_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An epoch runs on every device; the table, the file and the predictions from the file are correct."""
    path = tmp_path / "digits.safetensors"
    assert digits.main(["--epochs", "1", "--save", str(path)]) == 0
    shown = capsys.readouterr().out
    reference = str(registry.reference_device())
    assert reference in shown
    assert "test accuracy" in shown
    assert "the same predictions" in shown
    assert "What to try next" in shown
    model = digits.make_model()
    assert sorted(cd.load(path)) == sorted(model.state_dict())


def test_one_seed_gives_one_result(tmp_path: Path) -> None:
    """Two runs with one seed are equal to the bit, and another seed differs."""
    paths = [tmp_path / f"{n}.safetensors" for n in range(3)]
    device = str(registry.reference_device())
    for path, seed in zip(paths, ("7", "7", "8"), strict=True):
        digits.main(["--epochs", "1", "--seed", seed, "--device", device, "--save", str(path)])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes() != paths[2].read_bytes()


def test_a_few_epochs_are_enough_to_read_most_digits() -> None:
    """Five epochs reach an accuracy that an untrained network never reaches; the full run reaches more than 97 %."""
    from rich.progress import Progress

    with Progress(disable=True) as progress:
        run = digits.train(str(registry.reference_device()), 5, 0, digits.read_digits(), progress)
    assert run.accuracy >= 0.95
    assert run.losses[-1] < run.losses[0] / 4

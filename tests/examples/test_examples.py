"""The examples, each in a small setting."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import candelabra as cd
import pytest

from examples import (
    carbon_dioxide,
    cartpole,
    character_gpt,
    display,
    gan,
    instruments,
    names,
    sunspots,
    transfer,
    tree_lstm,
    vae,
)


def test_a_curve_is_drawn_from_its_lowest_to_its_highest_value() -> None:
    """Lines of block characters show the values, with the range at their ends; many values are averaged."""
    assert display.chart([0.0, 1.0], height=2) == [" █ 1", "▁█ 0"]
    assert display.chart([3.0], height=1) == ["▁ 3 3"] or display.chart([3.0], height=1)[0].startswith("▁ 3")
    assert display.averaged([1.0, 3.0, 5.0, 9.0], 2) == [2.0, 7.0]


def test_the_curve_is_a_valid_svg_file(tmp_path: Path) -> None:
    """The document has a point for each value and the title."""
    with display.Display("title", 3) as shown:
        for value in (3.0, 1.0, 2.0):
            shown.add(value)
    shown.save(tmp_path / "curve.svg")
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    line = next(e for e in root.iter() if e.tag.endswith("polyline"))
    assert line.attrib["points"] == "70.0,40.0 345.0,280.0 620.0,160.0"
    assert "title: loss" in "".join(root.itertext())


def test_an_autoencoder_lowers_its_bound_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three epochs lower the loss below that of the mean image; five digits are printed."""
    assert vae.main(["--epochs", "3", "--curve", str(tmp_path / "curve.svg")]) == 0
    assert "nats per image" in capsys.readouterr().out
    assert (tmp_path / "curve.svg").is_file()
    assert vae.drawn(cd.ones(2, 64)).splitlines() == ["████████████████  ████████████████"] * 8


def test_two_networks_compete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One epoch trains both; images have values from 0 to 1."""
    assert gan.main(["--epochs", "1", "--curve", str(tmp_path / "curve.svg")]) == 0
    assert "adversarial networks" in capsys.readouterr().out
    cd.manual_seed(0)
    game = gan.Game("cpu")
    before = [p.clone() for p in game.generator.parameters()]
    judged, fooled = game.round(cd.rand(8, 1, 8, 8))
    assert judged == pytest.approx(2 * math.log(2), abs=0.4)
    assert 0 < fooled < 3
    assert all((a != b).any() for a, b in zip(before, game.generator.parameters(), strict=True))


def test_carbon_dioxide_grows_and_cycles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fit has the residual, the growth of 2001 and the cycle that are known of these data."""
    times, values = carbon_dioxide.read_concentrations()
    assert (len(times), times[0], values[0]) == (2225, pytest.approx(0.24, abs=0.005), 316.1)
    assert carbon_dioxide.main(["--curve", str(tmp_path / "curve.svg")]) == 0
    shown = capsys.readouterr().out
    assert "residual 0.86 ppm" in shown
    assert "1.89 ppm in the last year, yearly cycle of ± 2.82 ppm" in shown


def test_names_are_classified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One epoch classifies most of the names that it has not seen."""
    assert names.encoded(["ada"]).tolist() == [[0] * 9 + [1, 4, 1]]
    assert names.main(["--epochs", "1", "--curve", str(tmp_path / "curve.svg")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "has not seen" in line]
    assert float(line.split("%")[0]) > 75


def test_a_language_model_learns_which_character_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thirty steps use the frequencies of characters; the written text continues the prompt."""
    curve = tmp_path / "curve.svg"
    options = ["--steps", "30", "--batch", "8", "--context", "16", "--length", "20", "--curve", str(curve)]
    assert character_gpt.main([*options, "--prompt", "class "]) == 0
    lines = capsys.readouterr().out
    assert "\nclass " in lines
    cd.manual_seed(0)
    text = character_gpt.Text(20000)
    model = character_gpt.GPT(len(text.characters), 16, width=32, blocks=1)
    with display.Display("test", 40) as shown:
        character_gpt.train(model, text, 40, 8, shown)
    assert shown.values[0] == pytest.approx(math.log2(len(text.characters)), abs=0.3)
    assert min(shown.values[-5:]) < 5


def test_the_next_character_depends_on_no_later_one() -> None:
    """The mask is causal: a change at the end changes only the last logits."""
    cd.manual_seed(0)
    model = character_gpt.GPT(10, 8, width=16, blocks=2).eval()
    a, b = model(cd.tensor([[1, 2, 3, 4]])), model(cd.tensor([[1, 2, 3, 9]]))
    assert cd.equal(a[:, :3], b[:, :3])
    assert not cd.equal(a[:, 3], b[:, 3])


def test_an_lstm_forecasts_better_than_the_year_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error from 1950 on is well below the naive one, and eleven years are forecast."""
    assert sunspots.main(["--epochs", "60", "--curve", str(tmp_path / "curve.svg")]) == 0
    error, forecast, _ = capsys.readouterr().out.splitlines()[-3:]
    assert error.endswith("as in the year before: 33.2")
    assert float(error.split("on: ")[1].split()[0]) < 28
    assert len(forecast.split(": ")[1].split(", ")) == 11


def test_a_pole_is_balanced_by_rewards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Episodes are played and learned from; returns are discounted sums."""
    assert cartpole.returns([1.0, 1.0, 2.0], 0.5).tolist() == [2.0, 2.0, 2.0]
    assert cartpole.main(["--episodes", "5", "--curve", str(tmp_path / "curve.svg")]) == 0
    assert "in the last 5 episodes" in capsys.readouterr().out


def test_instruments_are_recognized(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sound font has notes of each instrument; an epoch at one speed recognizes more than chance would."""
    monkeypatch.setattr(instruments, "SPEEDS", (1.0,))
    heard = [name for name, _ in instruments.recordings(instruments.sound_font())]
    assert all(any(part in name for name in heard) for parts in instruments.INSTRUMENTS.values() for part in parts)
    assert instruments.main(["--epochs", "1", "--curve", str(tmp_path / "curve.svg")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "has not heard" in line]
    assert float(line.split("%")[0]) > 30


def test_weights_of_pytorch_are_of_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch's network reads the digits that it was trained on, and its features help where images are few."""
    assert transfer.main(["--steps", "30", "--curve", str(tmp_path / "curve.svg")]) == 0
    assert "0 to 4, as PyTorch left it: 100.0%" in capsys.readouterr().out


def test_trees_are_batched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Expressions have their values in Python; the losses are those of one tree at a time; training helps."""
    options = ["--epochs", "6", "--trees", "256", "--hidden", "48", "--curve", str(tmp_path / "curve.svg")]
    assert tree_lstm.main(options) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "has not seen" in line]
    assert float(line.split("%")[0]) > 25
    trees = tree_lstm.draw_trees(8, 0, most=5)
    assert all(tree.value == tree_lstm.OPERATORS[int(tree.symbol)](c.value for c in tree.children) for tree in trees)
    model = tree_lstm.TreeLSTM(6).double()
    found = []
    for batched in (False, True):
        loss = tree_lstm.loss_of(model, trees, batched)
        found.append([loss, *cd.autograd.grad(loss, list(model.parameters()))])
    for one, other in zip(*found, strict=True):
        assert cd.allclose(one, other, rtol=1e-10, atol=1e-12)

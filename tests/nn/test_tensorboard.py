"""`utils.tensorboard`: what SummaryWriter writes is what TensorBoard reads."""

from __future__ import annotations

import io
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.utils.tensorboard import SummaryWriter
from google.protobuf import text_format
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig


def read(folder: Path) -> Any:
    """Return what TensorBoard reads from a folder."""
    found = EventAccumulator(str(folder), size_guidance={"images": 0, "histograms": 0, "tensors": 0})
    found.Reload()
    return found


def test_scalars(tmp_path: Path) -> None:
    """Tensors of any dtype, numbers, and several in one chart; a vector is an error."""
    with SummaryWriter(tmp_path) as writer:
        for step, loss in enumerate((cd.tensor(0.5, requires_grad=True), cd.tensor(0.25).bfloat16(), 1)):
            writer.add_scalar("loss", loss, step)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 3, walltime=7.0)
        with pytest.raises(ValueError, match=r"a scalar has one element, got shape \[2\] for 'loss'"):
            writer.add_scalar("loss", [1.0, 2.0])
        assert writer.get_logdir() == str(tmp_path)
    assert [(e.step, e.value) for e in read(tmp_path).Scalars("loss")] == [(0, 0.5), (1, 0.25), (2, 1.0)]
    (event,) = read(tmp_path / "both_b").Scalars("both")
    assert (event.step, event.value, event.wall_time) == (3, 2.0, 7.0)


def test_histograms(tmp_path: Path) -> None:
    """Number, sum and limits are those of the values; bins are merged down to `max_bins`."""
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", cd.tensor([-1.0, 0.5, 2.0]), 1)
        writer.add_histogram("merged", np.arange(100.0), 1, bins=10, max_bins=4)
        with pytest.raises(ValueError, match="the histogram 'w' has no values"):
            writer.add_histogram("w", cd.ones(0))
    (event,) = read(tmp_path).Histograms("w")
    value = event.histogram_value
    assert (value.min, value.max, value.num, value.sum) == (-1.0, 2.0, 3.0, 1.5)
    assert sum(value.bucket) == 3
    (event,) = read(tmp_path).Histograms("merged")
    assert event.histogram_value.bucket == [30.0, 30.0, 30.0, 10.0]


def test_images(tmp_path: Path) -> None:
    """Pixels survive, whatever the order of the dims; several pictures become a grid; figures are pictures."""
    pixels = np.arange(2 * 3 * 3, dtype="u1").reshape(2, 3, 3)

    class Canvas:
        def draw(self) -> None:
            """Do nothing."""

        def buffer_rgba(self) -> Any:
            return np.concatenate([pixels, np.full((2, 3, 1), 255, "u1")], 2)

    class Figure:
        canvas = Canvas()

    with SummaryWriter(tmp_path) as writer:
        writer.add_image("hwc", cd.tensor(pixels), 0, dataformats="HWC")
        writer.add_image("chw", cd.tensor(pixels.transpose(2, 0, 1) / 255.0), 0)
        writer.add_image("hw", pixels[..., 0], 0, dataformats="HW")
        writer.add_images("grid", cd.ones(9, 1, 2, 3), 0)
        writer.add_figure("figures", [Figure()], 0, close=False)
        with pytest.raises(ValueError, match=r"an image of shape \[2, 3\] does not have the dims 'CHW'"):
            writer.add_image("hw", cd.ones(2, 3))
    found = read(tmp_path)

    def shown(tag: str) -> Any:
        (event,) = found.Images(tag)
        return np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))

    assert (shown("hwc") == pixels).all()
    assert (shown("figures/0") == pixels).all()
    assert abs(shown("chw").astype(int) - pixels).max() <= 1
    assert (shown("hw") == pixels[..., 0]).all()
    assert shown("grid").shape == (4, 24)


def test_text_and_hyperparameters(tmp_path: Path) -> None:
    """Text is a tensor of the plugin; hyperparameters and results stand in a folder of their own."""
    with SummaryWriter(tmp_path, purge_step=2) as writer:
        writer.add_text("note", "# Title", 1)
        writer.add_hparams({"lr": 0.1, "name": "sgd", "bias": True}, {"accuracy": cd.tensor(0.75)}, run_name="first")
        writer.flush()
    assert read(tmp_path).Tensors("note/text_summary")[0].tensor_proto.string_val == [b"# Title"]
    found = read(tmp_path / "first")
    assert found.Scalars("accuracy")[0].value == 0.75
    assert {"_hparams_/experiment", "_hparams_/session_start_info"} <= set(found.summary_metadata)


def test_what_is_not_supported_says_so(tmp_path: Path) -> None:
    """Graphs raise."""
    with (
        SummaryWriter(tmp_path) as writer,
        pytest.raises(NotImplementedError, match=r"use candelabra\.autograd\.make_dot"),
    ):
        writer.add_graph(None)


def test_embeddings(tmp_path: Path) -> None:
    """Vectors, labels and pictures are the files that TensorBoard's projector reads; an entry is written once."""
    vectors, pictures = cd.tensor([[1.0, 2.0], [3.0, 4.5]]), cd.ones(2, 1, 4, 5)
    with SummaryWriter(tmp_path) as writer:
        for _ in range(2):
            writer.add_embedding(vectors, ["a", cd.tensor(7)], pictures, global_step=3, tag="the words")
        writer.add_embedding(vectors, [[1, 2], [3, 4]], metadata_header=["x", "y"])
        for mat, labels, images, text in (
            (cd.ones(2), None, None, r"mat should be 2D.*got \[2\]"),
            (vectors, ["a"], None, "#labels should equal with #data points, got 1 and 2"),
            (vectors, None, pictures[:1], "#images should equal with #data points, got 1 and 2"),
            (vectors, None, np.ones((2, 1, 1, 5000)), "2 pictures of 1x5000 pixels take more than 8192 pixels"),
        ):
            with pytest.raises(ValueError, match=text):
                writer.add_embedding(mat, labels, images)
    config = ProjectorConfig()
    text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), config)
    first, second = config.embeddings
    assert (tmp_path / first.tensor_path).read_text() == "1.0\t2.0\n3.0\t4.5\n"
    assert (tmp_path / first.metadata_path).read_text() == "a\n7\n"
    assert list(first.sprite.single_image_dim) == [5, 4]
    with Image.open(tmp_path / first.sprite.image_path) as sprite:
        assert sprite.size == (10, 8)
    assert (tmp_path / second.metadata_path).read_text() == "x\ty\n1\t2\n3\t4\n"


def test_sounds(tmp_path: Path) -> None:
    """Samples are 16-bit numbers of a WAV file; one channel is supported."""
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("tone", cd.tensor([[0.0, 0.5, -2.0]]), 1, sample_rate=8000)
        with pytest.raises(ValueError, match=r"a sound has the shape \(1, samples\), got \[2, 3\] for 'tone'"):
            writer.add_audio("tone", cd.ones(2, 3))
    (event,) = read(tmp_path).Audio("tone")
    with wave.open(io.BytesIO(event.encoded_audio_string)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (8000, 1, 3)
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [0, 16383, -32767]


def test_curves_of_precision_and_recall(tmp_path: Path) -> None:
    """At each threshold: true and false positives, true and false negatives, precision, recall."""
    with SummaryWriter(tmp_path) as writer:
        labels, scores = cd.tensor([1, 0, 1, 0]), cd.tensor([0.9, 0.6, 0.4, 0.1])
        writer.add_pr_curve("curve", labels, scores, 1, num_thresholds=3)
        writer.add_pr_curve("weighted", labels, scores, 1, num_thresholds=3, weights=[2, 1, 1, 1])
        with pytest.raises(ValueError, match="as many predictions as labels, got 4 and 1 for 'curve'"):
            writer.add_pr_curve("curve", [1], scores)
    found = read(tmp_path)
    (event,) = found.Tensors("curve")
    values = np.array(event.tensor_proto.float_val).reshape(6, 3)
    np.testing.assert_allclose(values[:4], [[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2]])
    np.testing.assert_allclose(values[4:], [[0.5, 0.5, 0], [1, 0.5, 0]])
    (event,) = found.Tensors("weighted")
    assert list(event.tensor_proto.float_val)[:3] == [3, 2, 0]


def test_default_folder_and_missing_package(tmp_path: Path) -> None:
    """The folder is `runs/<time>_<host><comment>`; without the package the error says what to install."""
    program = (
        "from candelabra.utils.tensorboard import SummaryWriter\n"
        "writer = SummaryWriter(comment='_test'); writer.close(); print(writer.log_dir)\n"
        "import sys; sys.modules['tensorboard'] = None\n"
        "import candelabra.utils.tensorboard as t\n"
        "try: t.SummaryWriter\n"
        "except ModuleNotFoundError as error: print(error)\n"
        "try: t.nonsense\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    folder, missing, unknown = done.stdout.splitlines()
    assert (tmp_path / folder).is_dir()
    assert folder.endswith("_test")
    assert missing == 'TensorBoard is not installed: pip install "candelabra[tensorboard]"'
    assert unknown == "module 'candelabra.utils.tensorboard' has no attribute 'nonsense'"

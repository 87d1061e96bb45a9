"""``SummaryWriter``, which writes event files by the package ``tensorboard``."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from urllib.parse import quote

from candelabra.typing import Any
from candelabra.utils.tensorboard import embeddings, summaries

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.event_file_writer import EventFileWriter


class SummaryWriter:
    """Write scalars, histograms, images, sounds, text, embeddings and hyperparameters for TensorBoard.

    ``log_dir`` is by default ``runs/<time>_<host><comment>``. ``max_queue`` and ``flush_secs`` say how many events wait
    for how long before they are written; ``purge_step`` hides what an earlier run wrote from that step on.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self._options = max_queue, flush_secs, filename_suffix
        self._writers: dict[str, Any] = {}
        if purge_step is not None:
            from tensorboard.compat.proto.event_pb2 import SessionLog

            self._event(Event(step=purge_step, file_version="brain.Event:2"))
            self._event(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))
        self._writer()

    def _writer(self, folder: str = "") -> Any:
        where = os.path.join(self.log_dir, folder) if folder else self.log_dir
        if where not in self._writers:
            max_queue, flush_secs, suffix = self._options
            self._writers[where] = EventFileWriter(where, max_queue, flush_secs, suffix)
        return self._writers[where]

    def _event(self, event: Any, walltime: float | None = None, folder: str = "") -> None:
        event.wall_time = time.time() if walltime is None else walltime
        self._writer(folder).add_event(event)

    def _add(self, summary: Any, step: int | None, walltime: float | None, folder: str = "") -> None:
        event = Event(summary=summary)
        if step is not None:
            event.step = int(step)
        self._event(event, walltime, folder)

    def get_logdir(self) -> str:
        """Return the folder of the event files."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Add one number. Raises ``ValueError`` if the value has another number of elements."""
        self._add(summaries.scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add several numbers, which are drawn in one chart: each has a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{main_tag.replace('/', '_')}_{tag}"
            self._add(summaries.scalar(main_tag, value), global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Add the histogram of all elements. ``bins`` are limits, or a rule of ``numpy.histogram``."""
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Add a picture, uint8 in 0 … 255 or floats in 0 … 1, whose dims ``dataformats`` names."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Add pictures in rows of eight."""
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Add a figure of Matplotlib, or a list of them, as pictures. With ``close``, close the figures."""
        import numpy as np

        for number, one in enumerate(figure if isinstance(figure, list) else [figure]):
            one.canvas.draw()
            pixels = np.asarray(one.canvas.buffer_rgba())[..., :3]
            name = f"{tag}/{number}" if isinstance(figure, list) else tag
            self.add_image(name, pixels, global_step, walltime, "HWC")
            if close:
                from matplotlib import pyplot

                pyplot.close(one)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add text, which is shown as Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Add the hyperparameters of a run with its results, in a folder of their own."""
        folder = run_name or str(time.time())
        for message in summaries.hyperparameters(hparam_dict, list(metric_dict)):
            self._add(message, None, None, folder)
        for name, value in metric_dict.items():
            self._add(summaries.scalar(name, value), global_step, None, folder)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, **options: Any) -> None:
        """Raise NotImplementedError: drawings of graphs are written by ``candelabra.autograd.make_dot``."""
        raise NotImplementedError(
            "SummaryWriter.add_graph(): use candelabra.autograd.make_dot(model(input)) for a drawing"
        )

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Add vectors (n, features) for the projector, with n labels and n pictures (n, channels, height, width).

        With ``metadata_header``, the names of columns, each label is a row. Raises ``ValueError`` for another number of
        labels or pictures.
        """
        name = f"{0 if global_step is None else global_step:05d}/{quote(tag, safe='')}"
        embeddings.write(Path(self.log_dir), name, tag, mat, metadata, metadata_header, label_img)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add a sound: amplitudes from -1 to 1, of shape (1, samples) or (samples,). Others are clipped."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Add precision and recall of binary ``labels`` at thresholds of ``predictions``, probabilities."""
        message = summaries.precision_recall(tag, labels, predictions, num_thresholds, weights)
        self._add(message, global_step, walltime)

    def flush(self) -> None:
        """Write what waits to the files."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits and close the files. Another call of a method opens new ones."""
        for writer in self._writers.values():
            writer.flush()
            writer.close()
        self._writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["SummaryWriter"]


def __dir__() -> list[str]:
    return sorted(__all__)

"""The messages of TensorBoard's event files: a value of one kind under a tag."""

from __future__ import annotations

import io
import wave

import numpy as np
from candelabra.typing import Any, Tensor

from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

Array = np.ndarray[Any, Any]


def as_array(value: Any) -> Array:
    """Return a tensor, array or nested sequence of numbers as an array on the host."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    found = value.detach()
    found = found.float() if found.dtype.is_half else found
    array: Array = np.asarray(found.tolist())
    return array


def scalar(tag: str, value: Any) -> Summary:
    """Return one number. Raises ``ValueError`` if the value has another number of elements."""
    numbers = as_array(value)
    if numbers.size != 1:
        raise ValueError(f"a scalar has one element, got shape {list(numbers.shape)} for {tag!r}")
    return Summary(value=[Summary.Value(tag=tag, simple_value=float(numbers.reshape(())))])


def histogram(tag: str, values: Any, bins: str | int | Array, max_bins: int | None) -> Summary:
    """Return the histogram of all elements. Raises ``ValueError`` if there is none."""
    numbers = as_array(values).reshape(-1).astype("f8")
    if not numbers.size:
        raise ValueError(f"the histogram {tag!r} has no values")
    counts, limits = np.histogram(numbers, default_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        # Merge neighbouring bins; the last merged bin may be narrower.
        starts = np.arange(0, len(counts), -(-len(counts) // max_bins))
        counts, limits = np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])
    message = HistogramProto(
        min=numbers.min(), max=numbers.max(), num=numbers.size, sum=numbers.sum(), sum_squares=numbers.dot(numbers),
        bucket_limit=limits[1:].tolist(), bucket=counts.tolist(),
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, histo=message)])


def default_bins() -> Array:
    """Return TensorBoard's limits: growing by a tenth from 1e-12 to 1e20, for both signs."""
    positive = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-positive[::-1], [0.0], positive])


def image(tag: str, values: Any, dataformats: str, rescale: float = 1.0) -> Summary:
    """Return a picture, or several in a grid, of uint8 in 0 … 255 or floats in 0 … 1.

    ``dataformats`` names the dims: ``"CHW"``, ``"HWC"``, ``"HW"``, ``"NCHW"`` or ``"NHWC"``. Raises ``ValueError`` if
    the rank is another.
    """
    pixels = as_array(values)
    if len(dataformats) != pixels.ndim or not set(dataformats) <= set("NCHW"):
        raise ValueError(f"an image of shape {list(pixels.shape)} does not have the dims {dataformats!r}")
    is_bytes = getattr(values, "dtype", None) is not None and "uint8" in str(values.dtype)
    pixels = pixels.astype("f8") * (1.0 if is_bytes else 255.0)
    for name in "NHWC":
        if name not in dataformats:
            pixels, dataformats = np.expand_dims(pixels, 0), name + dataformats
    pixels = pixels.transpose([dataformats.index(name) for name in "NHWC"])
    return _encoded(tag, _grid(np.clip(pixels, 0, 255).astype("u1")), rescale)


def _grid(images: Array, columns: int = 8) -> Array:
    """Return (N, H, W, C) pictures in rows of ``columns``, as (H', W', C)."""
    count, height, width, channels = images.shape
    columns = min(columns, count)
    rows = -(-count // columns)
    filled = np.zeros((rows * columns, height, width, channels), "u1")
    filled[:count] = images
    return filled.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4).reshape(
        rows * height, columns * width, channels
    )  # fmt: skip


def _encoded(tag: str, pixels: Array, rescale: float) -> Summary:
    from PIL import Image

    height, width, channels = pixels.shape
    picture = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    if rescale != 1.0:
        picture = picture.resize((max(int(width * rescale), 1), max(int(height * rescale), 1)))
    data = io.BytesIO()
    picture.save(data, format="PNG")
    message = Summary.Image(
        height=picture.height, width=picture.width, colorspace=channels, encoded_image_string=data.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=message)])


def audio(tag: str, values: Any, rate: int) -> Summary:
    """Return a sound as a WAV file of 16-bit samples. Raises ``ValueError`` for more than one channel."""
    samples = as_array(values).astype("f8").squeeze()
    if samples.ndim != 1:
        raise ValueError(f"a sound has the shape (1, samples), got {list(samples.shape)} for {tag!r}")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    sound = Summary.Audio(
        sample_rate=rate, num_channels=1, length_frames=len(samples), encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=sound)])


def precision_recall(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> Summary:
    """Return the counts of a precision-recall curve at thresholds from 0 to 1, with precision and recall.

    Raises ``ValueError`` unless there are as many predictions as labels.
    """
    from tensorboard.plugins.pr_curve.metadata import create_summary_metadata

    truth, scores = as_array(labels).reshape(-1).astype(bool), as_array(predictions).reshape(-1).astype("f8")
    if truth.shape != scores.shape:
        raise ValueError(f"a curve has as many predictions as labels, got {len(scores)} and {len(truth)} for {tag!r}")
    counted = np.ones(len(scores)) if weights is None else as_array(weights).reshape(-1).astype("f8")
    bins = np.floor(np.clip(scores, 0, 1) * (thresholds - 1)).astype(int)
    true = np.bincount(bins, counted * truth, thresholds)[::-1].cumsum()[::-1]  # at least each threshold
    false = np.bincount(bins, counted * ~truth, thresholds)[::-1].cumsum()[::-1]
    found, tiny = true[0], 1e-7
    data = np.stack([
        true, false, false[0] - false, found - true, true / np.maximum(tiny, true + false), true / max(tiny, found),
    ]).astype("f4")  # fmt: skip
    dims = [TensorShapeProto.Dim(size=size) for size in data.shape]
    tensor = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=TensorShapeProto(dim=dims))
    metadata = create_summary_metadata(display_name=tag, description="", num_thresholds=thresholds)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def text(tag: str, words: str) -> Summary:
    """Return text, which TensorBoard shows as Markdown."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype="DT_STRING", string_val=[words.encode()], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor)])


def hyperparameters(values: dict[str, Any], metrics: list[str]) -> list[Summary]:
    """Return the messages of one run: its hyperparameters, the names of its results, and its end."""
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    plain = {k: v.item() if hasattr(v, "item") and callable(v.item) else v for k, v in values.items()}
    kinds = {bool: api_pb2.DATA_TYPE_BOOL, str: api_pb2.DATA_TYPE_STRING}
    infos = [api_pb2.HParamInfo(name=k, type=kinds.get(type(v), api_pb2.DATA_TYPE_FLOAT64)) for k, v in plain.items()]
    names = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metrics]
    start = plugin_data_pb2.SessionStartInfo()
    for name, value in plain.items():
        field = {bool: "bool_value", str: "string_value"}.get(type(value), "number_value")
        setattr(start.hparams[name], field, value)
    data = plugin_data_pb2.HParamsPluginData
    messages = {
        metadata.EXPERIMENT_TAG: data(experiment=api_pb2.Experiment(hparam_infos=infos, metric_infos=names)),
        metadata.SESSION_START_INFO_TAG: data(session_start_info=start),
        metadata.SESSION_END_INFO_TAG: data(
            session_end_info=plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
        ),
    }
    return [
        Summary(value=[Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(message))])
        for tag, message in messages.items()
    ]


__all__ = [
    "as_array", "audio", "default_bins", "histogram", "hyperparameters", "image", "precision_recall", "scalar", "text",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

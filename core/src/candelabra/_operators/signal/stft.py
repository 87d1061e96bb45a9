"""The short-time Fourier transform: the spectra of the windows of a signal, and the inverse."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any, Final, NoReturn
from candelabra._operators.creation.filled import new_full
from candelabra._operators.fft.primitives import fft_c2c, fft_c2r, fft_r2c
from candelabra._operators.fft.transforms import spectrum
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.views import view_as_real
from candelabra._operators.shapes.windows import overlap_add
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import by_arguments, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Ints = tuple[int, ...]
SMALLEST: Final = 1e-11
"""The smallest weight of a sample. With a smaller one, windows do not cover the sample, and it cannot be recovered."""


class _Frames:
    """The division of a signal into windows of ``n_fft`` samples, and the checks of its arguments."""

    def __init__(self, name: str, input: Tensor, n_fft: int, hop_length: Any, win_length: Any, window: Any) -> None:
        for argument, value in (("n_fft", n_fft), ("hop_length", hop_length), ("win_length", win_length)):
            if not hasattr(value, "__index__") and (value is not None or argument == "n_fft"):
                raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}")
        self.name = name
        self.input = input
        self.n_fft = n_fft
        self.hop = n_fft // 4 if hop_length is None else hop_length
        self.win_length = n_fft if win_length is None else win_length
        self.window = window

    def described(self, text: str) -> str:
        """Return the text of an error with the call prepended."""
        window = "None" if self.window is None else f"{self.window.dtype.title}{list(self.window.shape)}"
        return (
            f"{self.name}({self.input.dtype.title}{list(self.input.shape)}, n_fft={self.n_fft}, "
            f"hop_length={self.hop}, win_length={self.win_length}, window={window}): {text}"
        )

    def fail(self, text: str) -> NoReturn:
        """Raise ``RuntimeError`` with the call prepended to the text."""
        raise RuntimeError(self.described(text))

    def has_complex(self) -> bool:
        """Return whether the signal or the window is complex."""
        return self.input.is_complex() or (self.window is not None and self.window.is_complex())

    def full_window(self) -> Tensor | None:
        """Return the window centred in ``n_fft`` points, padded with zeros, or None if all points have weight 1."""
        window = self.window
        if self.win_length == self.n_fft:
            return window
        if window is None:
            window = new_full(self.input, (self.win_length,), 1, dtype=self.input.dtype.to_real())
        left = (self.n_fft - self.win_length) // 2
        right = self.n_fft - self.win_length - left
        pieces = [window.new_zeros((left,)), window, window.new_zeros((right,))]
        return cat(tuple(p for p in pieces if p.shape[0]), 0)


# -- padding ----------------------------------------------------------------------------------------------------------
def _check_padding(frames: _Frames, mode: str) -> None:
    shape = shape_of(frames.input)
    length, pad = shape[-1], frames.n_fft // 2
    if mode not in ("constant", "replicate", "reflect", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "reflect" and pad >= length:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({pad}, {pad}) at dimension 2 of input {list(shape if len(shape) == 2 else (1, *shape))}"
        )
    if mode == "circular" and pad > length:
        raise RuntimeError("Padding value causes wrapping around more than once.")


def _padded(x: Tensor, pad: int, mode: str) -> Tensor:
    """Return a (batch, length) signal with ``pad`` more samples on both sides."""
    length = x.shape[1]
    if mode == "constant":
        before = after = x.new_zeros((x.shape[0], pad))
    elif mode == "replicate":
        before, after = x.narrow(1, 0, 1).expand(-1, pad), x.narrow(1, length - 1, 1).expand(-1, pad)
    elif mode == "reflect":
        before, after = x.narrow(1, 1, pad).flip(1), x.narrow(1, length - 1 - pad, pad).flip(1)
    else:
        before, after = x.narrow(1, length - pad, pad), x.narrow(1, 0, pad)
    return cat((before, x, after), 1)


# -- forward ----------------------------------------------------------------------------------------------------------
@by
def _stft_shape(
    input: Tensor, n_fft: int, hop_length: Any, win_length: Any, window: Tensor | None, center: bool, pad_mode: str,
    normalized: bool, onesided: bool | None, return_complex: bool | None, align_to_window: bool | None,
) -> Ints:  # fmt: skip
    frames = _Frames("stft", input, n_fft, hop_length, win_length, window)
    shape, has_complex = shape_of(input), frames.has_complex()
    if return_complex is None and not has_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future release."
        )
    if input.dtype.category < FLOATING:
        frames.fail("expected a floating point or complex tensor")
    if len(shape) not in (1, 2):
        frames.fail(f"expected a 1D or 2D tensor, but got {len(shape)}D")
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false.")
    length = shape[-1]
    if center:
        _check_padding(frames, pad_mode)
        length += n_fft // 2 * 2
    if align_to_window and frames.win_length < n_fft:
        length += (n_fft - frames.win_length) // 2 * 2
    if not 0 < n_fft <= length:
        frames.fail(f"expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if frames.hop <= 0:
        frames.fail(f"expected hop_length > 0, but got hop_length={frames.hop}")
    if not 0 < frames.win_length <= n_fft:
        frames.fail(f"expected 0 < win_length <= n_fft, but got win_length={frames.win_length}")
    if window is not None and shape_of(window) != (frames.win_length,):
        frames.fail(
            f"expected a 1D window tensor of size equal to win_length={frames.win_length}, but got window with size "
            f"{list(window.shape)}"
        )
    if has_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frequencies = n_fft if has_complex or onesided is False else n_fft // 2 + 1
    pair = (2,) if return_complex is False else ()
    return (*shape[:-1], frequencies, 1 + (length - n_fft) // frames.hop, *pair)


@operator(_stft_shape, promote=unpromoted, result=by_arguments, out=False, autocast=Autocast(host="float32"))
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return the Fourier transforms of the windows of a signal: (…, frequencies, windows) from (…, samples).

    Windows of ``n_fft`` samples start every ``hop_length`` (n_fft // 4 by default) and are multiplied by ``window``, of
    ``win_length`` centred points (ones by default). ``center`` pads n_fft // 2 samples on both sides, by ``pad_mode``;
    ``normalized`` divides by the root of n_fft; ``onesided``, the default for real input, gives n_fft // 2 + 1
    frequencies. ``return_complex=False`` returns pairs of reals in a last dim, and is deprecated. Raises
    ``RuntimeError`` for sizes that are not valid.
    """
    _stft_shape(
        stft,
        (input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex,
         align_to_window),
    )  # fmt: skip
    frames = _Frames("stft", input, n_fft, hop_length, win_length, window)
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    if align_to_window and frames.win_length < n_fft:
        x = _padded(x, (n_fft - frames.win_length) // 2, "constant")
    pieces, weights = x.unfold(1, n_fft, frames.hop), frames.full_window()
    pieces = pieces if weights is None else pieces * weights
    norm = "ortho" if normalized else "backward"
    if frames.has_complex() or onesided is False:
        out = spectrum(pieces, (2,), norm, True).transpose(1, 2)
    else:
        out = fft_r2c(pieces, (2,), norm, True).transpose(1, 2)
    out = out if len(shape_of(input)) == 2 else out.squeeze(0)
    if return_complex is not False:
        return out
    warnings.warn(
        "stft with return_complex=False is deprecated. In a future release it will return complex tensors for all "
        "inputs: use view_as_real on the result of return_complex=True.",
        UserWarning,
        stacklevel=3,
    )
    return view_as_real(out.contiguous())


# -- inverse ----------------------------------------------------------------------------------------------------------
def _check_spectrum(frames: _Frames, onesided: bool | None, return_complex: bool) -> None:
    """Raise ``RuntimeError`` unless the input can be a spectrum of such windows."""
    shape, n_fft = shape_of(frames.input), frames.n_fft
    if not frames.input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if 0 in shape:
        frames.fail("input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        frames.fail(f"expected a tensor with 2 or 3 dimensions, but got {len(shape)}")
    half = _is_half(frames, onesided)
    points = n_fft // 2 + 1 if half else n_fft
    if shape[-2] != points:
        name = "n_fft / 2 + 1 when onesided=True" if half else "n_fft when onesided=False"
        frames.fail(
            f"expected the frequency dimension (2nd to the last) of the input tensor to match {name}, but got "
            f"{shape[-2]}"
        )
    if not 0 < frames.hop <= frames.win_length:
        frames.fail("expected 0 < hop_length <= win_length")
    if not 0 < frames.win_length <= n_fft:
        frames.fail("expected 0 < win_length <= n_fft")
    window = frames.window
    if window is not None and shape_of(window) != (frames.win_length,):
        frames.fail("Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.is_complex():
        frames.fail("Complex windows are incompatible with return_complex=False")


def _is_half(frames: _Frames, onesided: bool | None) -> bool:
    """Return whether the input is half of a spectrum, which is the default unless it has all frequencies."""
    return shape_of(frames.input)[-2] != frames.n_fft if onesided is None else onesided


def _extent(frames: _Frames, center: bool, length: int | None) -> tuple[int, int, int]:
    """Return the number of samples that the windows cover, and the first and the last sample of the result among
    them.
    """
    total = frames.n_fft + frames.hop * (shape_of(frames.input)[-1] - 1)
    start = frames.n_fft // 2 if center else 0
    return total, start, total - start if length is None else start + length


@by
def _istft_shape(
    input: Tensor, n_fft: int, hop_length: Any, win_length: Any, window: Tensor | None, center: bool,
    normalized: bool, onesided: bool | None, length: int | None, return_complex: bool,
) -> Ints:  # fmt: skip
    frames = _Frames("istft", input, n_fft, hop_length, win_length, window)
    _check_spectrum(frames, onesided, return_complex)
    _, start, end = _extent(frames, center, length)
    return (*shape_of(input)[:-2], end - start)


@operator(_istft_shape, promote=unpromoted, result=by_arguments, out=False)
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """Return the signal whose :func:`candelabra.stft` is nearest to ``input`` in the least-squares sense: (…, samples).

    The inverse transforms are multiplied by the window, added up where they overlap, and divided by the sum of the
    squared windows (Griffin and Lim, IEEE ASSP 32, 1984). ``length`` trims the signal, or pads it with zeros. Raises
    ``RuntimeError`` if windows do not cover all samples, and for sizes that do not match.
    """
    frames = _Frames("istft", input, n_fft, hop_length, win_length, window)
    _check_spectrum(frames, onesided, return_complex)
    x = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        pieces = fft_c2c(x, (2,), norm, False)
    else:
        x = x if _is_half(frames, onesided) else x.narrow(2, 0, n_fft // 2 + 1)
        pieces = fft_c2r(x, (2,), norm, n_fft)
    batch, count = pieces.shape[:2]
    weights = frames.full_window()
    if weights is None:
        weights = new_full(input, (n_fft,), 1, dtype=input.dtype.to_real())
    total, start, end = _extent(frames, center, length)
    signal = overlap_add(pieces * weights, (batch, total), 1, frames.hop)
    envelope = overlap_add((weights * weights).expand(1, count, n_fft), (1, total), 1, frames.hop)
    inside = min(end, total) - start
    signal, envelope = signal.narrow(1, start, inside), envelope.narrow(1, start, inside)
    uncovered = (envelope.detach().abs() < SMALLEST).any()
    raise_if_nonzero(uncovered, frames.described("window overlap add min: 1"), RuntimeError)
    out = signal / envelope
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings",
            UserWarning,
            stacklevel=3,
        )
        out = cat((out, out.new_zeros((batch, end - total))), 1)
    return out if input.ndim == 3 else out.squeeze(0)

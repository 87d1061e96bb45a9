"""The short-time Fourier transform: spectra of the windows of a signal, and the signal of such spectra."""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any, NoReturn
from candelabra._operators.fft.primitives import fft_c2c, fft_c2r, fft_r2c
from candelabra._operators.fft.transforms import spectrum
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.primitives.creation import full
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.views import view_as_real
from candelabra._operators.shapes.windows import overlap_add
from candelabra._records.callables import public
from candelabra._records.rules import shape_of
from candelabra.dtypes import FLOATING, PYTHON_NAMES

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

SMALLEST = 1e-11
"""Below this the windows do not cover a sample, and it cannot be had back."""


class _Frames:
    """How a signal is cut: checked sizes, and the window in the middle of ``n_fft`` points."""

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

    def fail(self, text: str) -> NoReturn:
        """Raise, with the call before the text."""
        window = "None" if self.window is None else f"{PYTHON_NAMES[self.window.dtype.name]}{list(self.window.shape)}"
        raise RuntimeError(
            f"{self.name}({PYTHON_NAMES[self.input.dtype.name]}{list(self.input.shape)}, n_fft={self.n_fft}, "
            f"hop_length={self.hop}, win_length={self.win_length}, window={window}): {text}"
        )

    def check_sizes(self) -> None:
        """Refuse hops and windows of no length, and windows longer than the transform."""
        if self.hop <= 0:
            self.fail(f"expected hop_length > 0, but got hop_length={self.hop}")
        if not 0 < self.win_length <= self.n_fft:
            self.fail(f"expected 0 < win_length <= n_fft, but got win_length={self.win_length}")
        if self.window is not None and tuple(self.window.shape) != (self.win_length,):
            self.fail(
                f"expected a 1D window tensor of size equal to win_length={self.win_length}, but got window with size "
                f"{list(self.window.shape)}"
            )

    def full_window(self) -> Tensor | None:
        """The window with zeros round it; None where all points count alike."""
        window = self.window
        if self.win_length == self.n_fft:
            return window
        real = self.input.dtype.to_real()
        if window is None:
            window = full((self.win_length,), 1, dtype=real, device=self.input.device)
        left = (self.n_fft - self.win_length) // 2
        right = self.n_fft - self.win_length - left
        parts = [_zeros((left,), window), window, _zeros((right,), window)]
        return cat(tuple(p for p in parts if p.shape[0]), 0)


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    made: Tensor = full(shape, 0, dtype=like.dtype, device=like.device)
    return made


# -- padding ----------------------------------------------------------------------------------------------------------
def _edges(x: Tensor, pad: int, mode: str) -> tuple[Tensor, Tensor]:
    """What is put before and after a (batch, length) signal."""
    length = shape_of(x)[1]
    if mode == "constant":
        zeros = _zeros((shape_of(x)[0], pad), x)
        return zeros, zeros
    if mode == "replicate":
        return x.narrow(1, 0, 1).expand(-1, pad), x.narrow(1, length - 1, 1).expand(-1, pad)
    if mode not in ("reflect", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "reflect":
        if pad >= length:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({pad}, {pad}) at dimension 2 of input {list(shape_of(x))}"
            )
        return x.narrow(1, 1, pad).flip(1), x.narrow(1, length - 1 - pad, pad).flip(1)
    if pad > length:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    return x.narrow(1, length - pad, pad), x.narrow(1, 0, pad)


# -- forward ----------------------------------------------------------------------------------------------------------
@public
@takes_tensors("stft")
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of the windows of a signal: (…, frequencies, windows) from (…, samples).

    Windows of ``n_fft`` samples start every ``hop_length`` (n_fft // 4 by default) and are multiplied by ``window``, of
    ``win_length`` points in the middle (ones by default). ``center`` pads n_fft // 2 samples on both sides, by
    ``pad_mode``; ``normalized`` divides by the root of n_fft; ``onesided``, the default for real input, gives
    n_fft // 2 + 1 frequencies. ``return_complex=False`` gives pairs of reals, as long ago. ``RuntimeError`` for sizes
    that make no sense.
    """
    frames = _Frames("stft", input, n_fft, hop_length, win_length, window)
    rank = len(shape_of(input))
    has_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not has_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future release."
            )
        return_complex = True
    if input.dtype.category < FLOATING:
        frames.fail("expected a floating point or complex tensor")
    if rank not in (1, 2):
        frames.fail(f"expected a 1D or 2D tensor, but got {rank}D")
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false.")
    x = input if rank == 2 else input.unsqueeze(0)
    if center:
        before, after = _edges(x, n_fft // 2, pad_mode)
        x = cat((before, x, after), 1)
    if align_to_window and frames.win_length < n_fft:
        pad = (n_fft - frames.win_length) // 2
        x = cat((_zeros((shape_of(x)[0], pad), x), x, _zeros((shape_of(x)[0], pad), x)), 1)
    length = shape_of(x)[1]
    if not 0 < n_fft <= length:
        frames.fail(f"expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    frames.check_sizes()
    out = _transformed(frames, x, has_complex, normalized, onesided)
    out = out if rank == 2 else out.squeeze(0)
    if return_complex:
        return out
    warnings.warn(
        "stft with return_complex=False is deprecated. In a future release it will return complex tensors for all "
        "inputs: use view_as_real on the result of return_complex=True.",
        UserWarning,
        stacklevel=2,
    )
    return view_as_real(out.contiguous())


def _transformed(frames: _Frames, x: Tensor, has_complex: bool, normalized: bool, onesided: bool | None) -> Tensor:
    whole = has_complex if onesided is None else not onesided
    if has_complex and not whole:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    pieces = x.unfold(1, frames.n_fft, frames.hop)
    window = frames.full_window()
    pieces = pieces if window is None else pieces * window
    norm = "ortho" if normalized else "backward"
    if whole:
        return spectrum(pieces, (2,), norm, True).transpose(1, 2)
    found: Tensor = fft_r2c(pieces, (2,), norm, True).transpose(1, 2)
    return found


# -- inverse ----------------------------------------------------------------------------------------------------------
@public
@takes_tensors("istft")
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose :func:`stft` is nearest to ``input`` in the least-squares sense: (…, samples).

    The inverse transforms are multiplied by the window, added up where they overlap, and divided by the sum of the
    squared windows (Griffin and Lim, IEEE ASSP 32, 1984). ``length`` cuts the signal, or pads it with zeros.
    ``RuntimeError`` where windows leave samples out, and for sizes that do not fit.
    """
    frames = _Frames("istft", input, n_fft, hop_length, win_length, window)
    onesided = _check_spectrum(frames, onesided, return_complex)
    rank = len(shape_of(input))
    x = input if rank == 3 else input.unsqueeze(0)
    norm = "ortho" if normalized else "backward"
    x = x.transpose(1, 2)
    if return_complex:
        pieces = fft_c2c(x, (2,), norm, False)
    else:
        x = x if onesided else x.narrow(2, 0, n_fft // 2 + 1)
        pieces = fft_c2r(x, (2,), norm, n_fft)
    count = shape_of(pieces)[1]
    total = n_fft + frames.hop * (count - 1)
    weights = frames.full_window()
    if weights is None:
        weights = full((n_fft,), 1, dtype=input.dtype.to_real(), device=input.device)
    signal = overlap_add(pieces * weights, (shape_of(pieces)[0], total), 1, frames.hop)
    squares = (weights * weights).expand(1, count, n_fft)
    envelope = overlap_add(squares, (1, total), 1, frames.hop)
    out = _cut(frames, signal, envelope, n_fft // 2 if center else 0, center, length)
    return out if rank == 3 else out.squeeze(0)


def _check_spectrum(frames: _Frames, onesided: bool | None, return_complex: bool) -> bool:
    """Refuse what is no spectrum of such windows; whether it is the half of one."""
    shape, n_fft = shape_of(frames.input), frames.n_fft
    if not frames.input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if 0 in shape:
        frames.fail("input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        frames.fail(f"expected a tensor with 2 or 3 dimensions, but got {len(shape)}")
    half = shape[-2] != n_fft if onesided is None else onesided
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
    if window is not None and tuple(window.shape) != (frames.win_length,):
        frames.fail("Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.is_complex():
        frames.fail("Complex windows are incompatible with return_complex=False")
    return half


def _cut(frames: _Frames, signal: Tensor, envelope: Tensor, start: int, center: bool, length: int | None) -> Tensor:
    """The samples that were asked for, divided by the weight that each has got."""
    total = shape_of(signal)[1]
    end = start + length if length is not None else total - start if center else total
    inside = min(end, total) - start
    signal, envelope = signal.narrow(1, start, inside), envelope.narrow(1, start, inside)
    if inside and float(envelope.detach().abs().amin().item()) < SMALLEST:
        frames.fail("window overlap add min: 1")
    out = signal / envelope
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings",
            UserWarning,
            stacklevel=3,
        )
        out = cat((out, _zeros((shape_of(out)[0], end - total), out)), 1)
    return out

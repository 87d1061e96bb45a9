"""Recognize instruments by their sound: spectrograms and a convolutional network.

The recordings are single notes of seven instruments in the sound font of the package ``pretty_midi``.
The network learns from pieces of a tenth of a second, and is tested on notes of which it has heard nothing.
``python examples/instruments.py --help`` lists the options.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator, Sequence
from importlib.metadata import files
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import nn, optim
from candelabra.nn import functional as F
from candelabra.utils.data import DataLoader, TensorDataset

if __package__:
    from examples.display import Display
else:
    from display import Display

INSTRUMENTS = {
    "flute": ("Flute",), "trumpet": ("Trump",), "oboe": ("Oboe",), "saxophone": ("Alto", "Sop", "Bari"),
    "horn": ("FRHORN", "FrenchHorn"), "strings": ("ensstrings", "Str1"), "choir": ("Choir",),
}  # fmt: skip
"""Parts of the names of each instrument's recordings."""
SPEEDS = (0.7, 0.8, 0.9, 1.0, 1.12, 1.25, 1.4)
"""The network also hears the training notes slower and faster, so at other pitches."""
PIECE = 2048
"""Samples per piece: a tenth of a second at the font's 22,050 Hz."""
WINDOW = 256


def sound_font() -> Path:
    """Return the path of the package's sound font."""
    for file in files("pretty_midi") or ():
        if file.name.endswith(".sf2"):
            return Path(str(file.locate()))
    raise FileNotFoundError("the package pretty_midi has no sound font")


def recordings(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the samples, from -1 to 1, of each recording (SoundFont 2.04, section 7.10)."""
    content = path.read_bytes()
    data = content.index(b"smpl") + 8
    headers = content.index(b"shdr")
    (size,) = struct.unpack_from("<I", content, headers + 4)
    for at in range(headers + 8, headers + 8 + size - 46, 46):  # the last header only ends the list
        name = content[at : at + 20].partition(b"\0")[0].decode("latin-1")
        start, end = struct.unpack_from("<II", content, at + 20)
        samples = cd.frombuffer(bytearray(content[data + 2 * start : data + 2 * end]), dtype=cd.int16)
        yield name, samples.float() / 2**15


def pieces(path: Path) -> tuple[Any, Any, Any]:
    """Return pieces of sound (N, 2048), their instruments (N,), and whether each is for the test (N,).

    Every fourth note of an instrument is for the test.
    """
    sounds, kinds, tests = [], [], []
    heard = dict.fromkeys(INSTRUMENTS, 0)
    for name, samples in recordings(path):
        kind = next((k for k, parts in INSTRUMENTS.items() if any(part in name for part in parts)), None)
        if kind is None or len(samples) < 3 * PIECE:
            continue
        heard[kind] += 1
        test = heard[kind] % 4 == 0
        for speed in (1.0,) if test else SPEEDS:
            played = F.interpolate(samples[None, None], scale_factor=1 / speed, mode="linear")[0, 0]
            found = played[PIECE // 2 :].unfold(0, PIECE, PIECE)  # without the attack
            sounds.append(found / found.abs().amax(1, keepdim=True).clamp(min=1e-3))
            kinds += [list(INSTRUMENTS).index(kind)] * len(found)
            tests += [test] * len(found)
    return cd.cat(sounds), cd.tensor(kinds), cd.tensor(tests)


def spectrograms(sounds: Any) -> Any:
    """Return log-magnitudes (N, 1, 129, 33) of short-time Fourier transforms."""
    window = cd.hann_window(WINDOW, device=sounds.device)
    spectra = cd.stft(sounds, WINDOW, hop_length=WINDOW // 4, window=window, return_complex=True)
    return spectra.abs().clamp(min=1e-4).log()[:, None]


def make_model() -> nn.Sequential:
    """Map spectrograms to logits of the instruments (N, 7)."""
    return nn.Sequential(
        nn.InstanceNorm2d(1),
        nn.Conv2d(1, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d((8, 1)), nn.Flatten(), nn.Dropout(0.3), nn.Linear(256, len(INSTRUMENTS)),
    )  # fmt: skip


def train(model: nn.Module, x: Any, y: Any, epochs: int, display: Display) -> None:
    """Train with AdamW; each instrument has the same weight."""
    weights = 1 / cd.bincount(y, minlength=len(INSTRUMENTS)).clamp(min=1).float()
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model.train()
    for _ in range(epochs):
        total = 0.0
        for batch, kinds in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), kinds, weight=weights)
            loss.backward()
            optimizer.step()
            total += loss.item()
        display.add(total / len(loader))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, then print how many pieces of new notes are recognized. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8, help="passes over the pieces (default 8)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("instruments.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    sounds, kinds, tests = (t.to(options.device or cd.get_default_device()) for t in pieces(sound_font()))
    x = spectrograms(sounds)
    model = make_model().to(x.device)
    with Display("instruments", options.epochs) as display:
        train(model, x[~tests], kinds[~tests], options.epochs, display)
    display.save(options.curve)
    model.eval()
    with cd.no_grad():
        right = model(x[tests]).argmax(1) == kinds[tests]
    print(f"{right.float().mean().item():.1%} of {len(right)} pieces of notes that it has not heard are recognized")
    for number, name in enumerate(INSTRUMENTS):
        own = right[kinds[tests] == number].float()
        print(f"  {name:<10} {own.mean().item():.0%} of {len(own)}")
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Core, operators, nn and conformance name no backend: our devices have no privilege over a vendor's."""

import io
import tokenize
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("core/src", "operators/src", "nn/src", "conformance/src")
FILES = sorted(p for part in PARTS for p in (ROOT / part).rglob("*.py"))
NAMES = {
    entry.name for group in ("candelabra.device_names", "candelabra.backends") for entry in entry_points(group=group)
}
# Files of other programs contain the device names of those programs.
FOREIGN = {"core/src/candelabra/_serialization/torch_writer.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_device_is_named(path: Path) -> None:
    """No string literal except in examples is the name of a device type, with or without an index."""
    if any(path.is_relative_to(ROOT / folder) for folder in FOREIGN):
        return
    found = []
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.STRING:
            text = token.string.strip("rbfuRBFU").strip("\"'")
            if text.partition(":")[0] in NAMES:
                found.append((token.start[0], text))
    assert found == []

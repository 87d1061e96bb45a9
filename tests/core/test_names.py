"""Core, nn, distributed and conformance name no backend: our devices have no privilege over a vendor's."""

import ast
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("core/src", "nn/src", "distributed/src", "conformance/src")
NAMES = {
    entry.name for group in ("candelabra.device_names", "candelabra.backends") for entry in entry_points(group=group)
}
# PyTorch's files contain its name of the host's memory.
FOREIGN = {"core/src/candelabra/_serialization/stored.py"}


def test_no_device_is_named() -> None:
    """No string literal except in examples is the name of a device type, with or without an index."""
    files = {path.relative_to(ROOT).as_posix(): path for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert files
    assert {name: found for name, path in files.items() if name not in FOREIGN and (found := named_devices(path))} == {}


def test_a_named_device_is_found(tmp_path: Path) -> None:
    """The search sees a name in any kind of quotes, with and without an index, and none inside a longer text."""
    name = min(NAMES)
    (tmp_path / "example.py").write_text(f"a = '{name}'\nb = f\"{name}:{{a}}\"\nc = '{name} and more'\n")
    assert named_devices(tmp_path / "example.py") == [(1, name), (2, f"{name}:")]


def named_devices(path: Path) -> list[tuple[int, str]]:
    """Return the line and text of each string literal that names a device. Only files that contain a name are read."""
    text = path.read_text(encoding="utf-8")
    if not any(name in text for name in NAMES):
        return []
    constants = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    literals = [(node.lineno, node.value) for node in constants if isinstance(node.value, str)]
    return sorted((line, literal) for line, literal in literals if literal.partition(":")[0] in NAMES)

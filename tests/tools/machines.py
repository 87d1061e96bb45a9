"""A double of a machine with a GPU and without a package index: a Python with some of this one's packages."""

from __future__ import annotations

import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path


def machine(folder: Path, names: Iterable[str]) -> Path:
    """Create a virtual environment with links to these distributions only, and return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in names:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            link = packages / top
            if not link.exists():
                link.symlink_to(str(found.locate_file(top)))
    return folder / "bin" / "python"


def wheel(name: str, folder: Path) -> Path:
    """Pack an installed distribution as a wheel again, as far as its files are present."""
    found = distribution(name)
    description = found.read_text("WHEEL") or ""
    tags = [line.split()[1].split("-") for line in description.splitlines() if line.startswith("Tag:")]
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags))
    files = [file for file in found.files or () if ".." not in file.parts and file.suffix != ".pyc"]
    (info,) = {file.parts[0] for file in files if file.parts[0].endswith(".dist-info")}
    path = folder / f"{info.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            if file.name not in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
                archive.write(str(found.locate_file(file)), str(file))
        record = [f"{member.filename},," for member in archive.infolist()]
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return path

"""Generate files from the operators' declarations: the index of the core, and type stubs for editors.

``python tools/generate`` writes, for each distribution that declares public names, ``_index/<distribution>.py`` (the
module of each name), ``_functions.pyi`` (the functions of ``candelabra``), ``_methods.pyi`` (Tensor's methods) and a
stub for each namespace, and for packages of kernels ``_index/tables.py`` (the module of each kernel). It reads the
syntax trees of the sources without importing them, so it needs no installed packages; builds call it too
(``hatch_build.py``). ``--check`` only reports files that are not current.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generate.declarations import Distribution, read
from generate.index import index_source
from generate.stubs import functions_source, methods_source, namespaces_of
from generate.tables import packages, tables_source

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def without_collections() -> Iterator[None]:
    """Do not collect garbage in the block: syntax trees have no cycles, and visiting them takes most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@without_collections()
def distributions(root: Path = ROOT) -> list[Distribution]:
    """Return every distribution of the repository that declares public names, the core first."""
    folders = [root / "core", *sorted(p.parent for p in root.glob("*/pyproject.toml") if p.parent.name != "core")]
    read_all = read({folder.name: folder / "src" / "candelabra" for folder in folders})
    return [distribution for distribution in read_all if distribution.declared]


@without_collections()
def generated(root: Path = ROOT, only: Path | None = None) -> dict[Path, str]:
    """Return every generated file with its text, or those of the distribution in a folder."""
    with_names = only is None or (only / "src" / "candelabra").is_dir()
    everything = distributions(root) if with_names else []  # reading all sources takes seconds
    files: dict[Path, str] = {}
    for distribution in everything:
        suffix = distribution.suffix
        files[distribution.root / "_index" / f"{distribution.name}.py"] = index_source(distribution)
        files[distribution.root / f"_functions{suffix}.pyi"] = functions_source(distribution, everything)
        files[distribution.root / f"_methods{suffix}.pyi"] = methods_source(distribution, everything)
        for namespace, path in namespaces_of(distribution).items():
            files[path] = functions_source(distribution, everything, namespace)
    for package in packages(root):
        files[package / "_index" / "tables.py"] = tables_source(package)
    return {path: text for path, text in files.items() if only is None or path.is_relative_to(only)}


def write(root: Path = ROOT, only: Path | None = None) -> list[Path]:
    """Write the missing and outdated files, of the distribution in a folder or of all, and return them."""
    written = []
    for path, text in generated(root, only).items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            written.append(path)
    return written

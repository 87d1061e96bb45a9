"""``candelabra new-backend acme``: write a small, complete package that passes its tests, for a vendor to extend.

There are two kinds. The *strided* one has an array class of its own, whose memory the vendor replaces; the one *over a
namespace* has the kernels of candelabra-arrayapi over an existing array library. The templates are the packages of a
device type ``acme``. The new name replaces that word; nothing else in them is computed, except the requirements.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import keyword
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Final

import candelabra
from candelabra.backend import API_VERSION
from candelabra.library import device_names, plugins

COMMON: Final[dict[str, str]] = {
    "pyproject.toml.in": "pyproject.toml",
    "gitignore.in": ".gitignore",
    "conformance.yml.in": ".github/workflows/conformance.yml",
    "plugin.py.in": "src/candelabra_acme/__init__.py",
    "expected_failures.toml.in": "src/candelabra_acme/expected_failures.toml",
    "test_conformance.py.in": "tests/test_conformance.py",
}
"""Each template of both kinds, and the path in the package that it becomes."""

STRIDED: Final[dict[str, str]] = COMMON | {
    "strided/README.md.in": "README.md",
    "strided/backend.py.in": "src/candelabra_acme/backend.py",
    "strided/array.py.in": "src/candelabra_acme/array.py",
    "strided/kernels.py.in": "src/candelabra_acme/kernels.py",
}
"""The templates of a package with an array class of its own."""

OVER_NAMESPACE: Final[dict[str, str]] = COMMON | {
    "arrayapi/README.md.in": "README.md",
    "arrayapi/backend.py.in": "src/candelabra_acme/backend.py",
    "arrayapi/kernels.py.in": "src/candelabra_acme/kernels.py",
}
"""The templates of a package over a namespace of the Array API standard."""

WRAPPED: Final[dict[str, str]] = OVER_NAMESPACE | {"arrayapi/namespace.py.in": "src/candelabra_acme/namespace.py"}
"""The templates of a package over a namespace whose arrays it puts into a class."""

PLACEHOLDER: Final = "numpy"
"""The namespace of a package over a namespace, unless another is given."""

WRAPPED_ROW: Final = "| `src/candelabra_{}/namespace.py` | the class around the library's arrays, and its functions |\n"
"""The row of README.md for the module that only a package with :data:`WRAPPED` has."""

RESERVED: Final = ("arrayapi", "clike", "conformance", "core", "distributed", "native", "nn", "operators")
"""The distributions ``candelabra-<name>`` of the project that are no devices, also where they are not installed."""


class InvalidName(ValueError):
    """Raised for an invalid device type; the text contains the reason."""


def write_backend(
    name: str, directory: Path, author: str | None = None, namespace: str | None = None, wrapped: bool = False
) -> Path:
    """Write the package ``candelabra-<name>`` into a new folder in ``directory`` and return the folder.

    With ``namespace``, the module of an array library such as ``"jax.numpy"``, the package has the kernels of
    candelabra-arrayapi over it; the module need not be installed. With ``wrapped``, it also has a class around the
    library's arrays, for a library whose shapes are no tuples or whose arrays lack operators.

    The write is atomic: the files go to a temporary folder in ``directory``, which is then renamed. Raises
    :class:`InvalidName` for an invalid device type or namespace, ``FileExistsError`` if the folder exists,
    ``FileNotFoundError`` if ``directory`` does not.
    """
    check_name(name)
    if namespace is not None:
        check_namespace(namespace)
    folder = directory / distribution(name)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already: move it away, or give another --directory")
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is not a directory: create it first, or give another --directory")
    texts = package(name, author or f"The {name} developers", namespace, wrapped)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=directory))
    try:
        for path, text in texts.items():
            target = unfinished / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        unfinished.chmod(0o755)  # by default only its owner can read a temporary folder
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return folder


def check_name(name: str) -> None:
    """Raise :class:`InvalidName` unless a new device type can have this name."""
    if not (name.isascii() and name.isidentifier() and name == name.lower() and name[0] != "_"):
        raise InvalidName(
            f"{name!r} cannot be a device type: it has to be a lower-case Python identifier that begins with a letter, "
            "as in device('acme:0')"
        )
    if keyword.iskeyword(name):
        raise InvalidName(f"{name!r} cannot be a device type: it is a keyword of Python")
    plugin = plugins.plugins().get(name)
    if plugin is not None:
        raise InvalidName(f"device type {name!r} is taken: {plugin.distribution or 'a plugin'} implements it")
    if name in device_names():
        raise InvalidName(f"device type {name!r} is taken: it is the name of another device in existing programs")
    owner = _owner(name)
    if owner is not None:
        raise InvalidName(
            f"device type {name!r} is taken: {owner}, and installing the new package would overwrite that one"
        )


def check_namespace(namespace: str) -> None:
    """Raise :class:`InvalidName` unless this can be the name of a module."""
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in namespace.split(".")):
        raise InvalidName(f"{namespace!r} cannot be a namespace: it has to be the name of a module, such as jax.numpy")


def _owner(name: str) -> str | None:
    """Return who owns the distribution or the module of a new package of this name, or None."""
    own = distribution(name)
    if name in RESERVED:
        return f"{own} is a distribution of candelabra itself"
    with contextlib.suppress(metadata.PackageNotFoundError):
        return f"{own} {metadata.version(own)} is installed"
    if importlib.util.find_spec(f"candelabra_{name}") is not None:
        return f"a module candelabra_{name} is installed"
    return None


def distribution(name: str) -> str:
    """Return the name of the package on an index, and of its folder."""
    return "candelabra-" + name.replace("_", "-")


def package(name: str, author: str, namespace: str | None = None, wrapped: bool = False) -> dict[str, str]:
    """Return ``{path: text}`` of every file of the package."""
    version = candelabra.__version__
    major, minor = version.split(".")[:2]
    window = f">={version},<{major}.{int(minor) + 1}"
    requirements = [f"candelabra{window}"]
    if namespace is not None:
        requirements += [f"candelabra-arrayapi{window}", "numpy>=2.1"]
        requirements += [library for library in _libraries(namespace) if library != "numpy"]
    words = {
        "@api@": str(API_VERSION),
        "@requirements@": ", ".join(map(json.dumps, requirements)),
        "@namespace@": namespace or "",
        "@xp@": f"candelabra_{name}.namespace" if wrapped else namespace or "",
        "@files@": WRAPPED_ROW.format(name) if wrapped else "",
        "@suite@": f"candelabra-conformance{window}",
        "@author@": json.dumps(author, ensure_ascii=False),  # a JSON string is a TOML string, too
        "candelabra-acme": distribution(name),
        "Acme": "".join(part.capitalize() for part in name.split("_")),
        "acme": name,
    }
    kind = STRIDED if namespace is None else WRAPPED if wrapped else OVER_NAMESPACE
    templates = files("candelabra_conformance.scaffold") / "templates"
    return {
        path.replace("acme", name): _replaced((templates / template).read_text("utf-8"), words)
        for template, path in kind.items()
    }


def _libraries(namespace: str) -> list[str]:
    """Return the distributions with the namespace's module, or its first name if it is not installed."""
    first = namespace.partition(".")[0]
    with contextlib.suppress(metadata.PackageNotFoundError):
        return [metadata.distribution(first).name]
    return sorted(set(metadata.packages_distributions().get(first, [first])))


def _replaced(text: str, words: dict[str, str]) -> str:
    """Return the template with the words replaced, in their order. Inserted text is not replaced again."""
    marks = {word: f"\0{position}\0" for position, word in enumerate(words)}
    for word, mark in marks.items():
        text = text.replace(word, mark)
    for word, mark in marks.items():
        text = text.replace(mark, words[word])
    return text


def main(argv: Sequence[str]) -> int:
    """Run the command ``candelabra new-backend``. Return 0 if the package was written, 2 if it was refused."""
    parser = argparse.ArgumentParser(
        prog="candelabra new-backend",
        description="Write the package of a new device: complete, small, and green in the conformance suite.",
    )
    parser.add_argument("name", help="the device type, as in device('NAME:0')")
    parser.add_argument(
        "--arrayapi",
        action="store_true",
        help="over an array library with a namespace of the Array API standard; its arrays may be immutable",
    )
    parser.add_argument(
        "--namespace",
        metavar="MODULE",
        help=f"the library's module, such as jax.numpy; implies --arrayapi (default: {PLACEHOLDER}, to be replaced)",
    )
    words = "with a class around the library's arrays: their shapes need not be tuples; implies --arrayapi"
    parser.add_argument("--wrapped", action="store_true", help=words)
    parser.add_argument(
        "--directory", type=Path, default=Path(), help="where the package's folder goes (default: here)"
    )
    parser.add_argument("--author", help="who stands in pyproject.toml")
    arguments = parser.parse_args(argv)
    namespace = arguments.namespace or (PLACEHOLDER if arguments.arrayapi or arguments.wrapped else None)
    try:
        folder = write_backend(arguments.name, arguments.directory, arguments.author, namespace, arguments.wrapped)
    except (InvalidName, OSError) as error:
        sys.stderr.write(f"candelabra new-backend: {error}\n")
        return 2
    sys.stdout.write(
        f"{folder} is written. Next:\n\n"
        f"    cd {folder}\n"
        '    pip install -e ".[test]"\n'
        "    pytest\n\n"
        "README.md in it says what comes then.\n"
    )
    return 0

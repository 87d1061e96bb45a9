"""The package that ``candelabra new-backend`` writes: complete, small, and correct."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.dtypes import ALL, BY_NAME
from candelabra.errors import FallbackWarning, OutOfMemoryError
from candelabra.library import OPERATORS, plugins
from candelabra_conformance.scaffold import InvalidName, write, write_backend

from tests.conformance.generated import installed

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a package and return its folder."""
    return write_backend("acme", tmp_path_factory.mktemp("vendor"))


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[Any]:
    """Install the generated backend in this process."""
    with installed(folder) as made:
        yield made


@pytest.fixture(autouse=True)
def _fallbacks_are_expected() -> Iterator[None]:
    """Silence the warnings of fallbacks: the device has only a few kernels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield


# -- the generated files ----------------------------------------------------------------------------------------------
def test_the_package_is_complete(folder: Path) -> None:
    """It has a project file, README, workflow, list of expected failures, four modules and a test, but nothing else."""
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert files == set(write.STRIDED.values())


def test_the_python_of_the_package_is_under_150_lines(folder: Path) -> None:
    """Tests, docstrings and comments count, empty lines do not."""
    texts = [path.read_text() for path in folder.rglob("*.py")]
    assert 0 < sum(bool(line.strip()) for text in texts for line in text.splitlines()) < 150


def test_the_project_file_announces_the_device(folder: Path) -> None:
    """The entry point is the one that the core searches, and the versions are those of this release."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "candelabra-acme"
    assert project["entry-points"]["candelabra.backends"] == {"acme": "candelabra_acme"}
    assert project["authors"] == [{"name": "The acme developers"}]
    assert project["dependencies"] == [f"candelabra>={cd.__version__},<0.2"]
    assert "license" not in project


def test_the_author_stands_in_the_project_file_whatever_the_name(tmp_path: Path) -> None:
    """Quotes and letters of any script are preserved."""
    author = 'Zoë "the \\ lamp" Ōta'
    made = write_backend("acme", tmp_path, author)
    assert tomllib.loads((made / "pyproject.toml").read_text("utf-8"))["project"]["authors"] == [{"name": author}]


def test_the_list_of_expected_failures_is_empty_and_explained(folder: Path) -> None:
    """The list is TOML without an entry, and the entry in its comment is valid TOML, too."""
    text = (folder / "src/candelabra_acme/expected_failures.toml").read_text()
    assert tomllib.loads(text) == {}
    example = "\n".join(line.removeprefix("#     ") for line in text.splitlines() if line.startswith("#     "))
    (entry,) = tomllib.loads(example).values()
    assert entry[0]["reason"]


def test_no_placeholder_is_left(tmp_path: Path) -> None:
    """The chosen name replaces the example's name in every spelling."""
    made = write_backend("my_chip2", tmp_path)
    assert made.name == "candelabra-my-chip2"
    for path in made.rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert "acme" not in f"{path.relative_to(tmp_path)} {text}".lower()
        assert not re.search(r"@\w+@|\0", text)
    assert "class MyChip2Backend(Backend):" in (made / "src/candelabra_my_chip2/backend.py").read_text()


def test_every_template_is_used(folder: Path) -> None:
    """Every template file is the source of a generated file."""
    templates = Path(write.__file__).parent / "templates"
    found = {p.relative_to(templates).as_posix() for p in templates.rglob("*.in")}
    assert found == set(write.STRIDED) | set(write.WRAPPED)


# -- refusals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("2fast", "'2fast' cannot be a device type: it has to be a lower-case Python identifier"),
        ("my-chip", "'my-chip' cannot be a device type: it has to be a lower-case Python identifier"),
        ("Acme", "'Acme' cannot be a device type: it has to be a lower-case Python identifier"),
        ("_chip", "'_chip' cannot be a device type: it has to be a lower-case Python identifier"),
        ("chîp", "'chîp' cannot be a device type: it has to be a lower-case Python identifier"),
        ("", "'' cannot be a device type: it has to be a lower-case Python identifier"),
        ("../chip", "cannot be a device type: it has to be a lower-case Python identifier"),
        ("lambda", "'lambda' cannot be a device type: it is a keyword of Python"),
        (cd.device(plugins.reference_device()).type, "is taken: candelabra-.* implements it"),
        ("xpu", "device type 'xpu' is taken: it is the name of another device in existing programs"),
        ("nn", "device type 'nn' is taken: candelabra-nn is a distribution of candelabra itself, and installing"),
    ],
)
def test_a_bad_name_is_refused_and_nothing_is_written(name: str, words: str, tmp_path: Path) -> None:
    """The error says what a valid name is, or who uses the name."""
    with pytest.raises(InvalidName, match=words):
        write_backend(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_names_of_the_projects_distributions_are_reserved() -> None:
    """Each distribution of the repository is reserved or a device, so that no generated package overwrites it."""
    root = Path(__file__).parents[2]
    projects = [tomllib.loads(path.read_text())["project"] for path in root.glob("**/src/../pyproject.toml")]
    names = {p["name"].removeprefix("candelabra-") for p in projects if p["name"].startswith("candelabra-")}
    assert {"nn", "conformance"} <= names
    devices = {name for p in projects for name in p.get("entry-points", {}).get("candelabra.backends", ())}
    assert {n for n in names if not n.endswith("-example")} - devices <= set(write.RESERVED)


@pytest.mark.parametrize(
    ("metadata_name", "module", "words"),
    [
        (
            "candelabra-glow-worm",
            "other",
            "candelabra-glow-worm 2.5 is installed, and installing the new package would",
        ),
        ("something", "candelabra_glow_worm", "a module candelabra_glow_worm is installed, and installing the new"),
    ],
)
def test_the_name_of_an_installed_package_is_refused(
    metadata_name: str, module: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of the same name, or one with the same module, would be overwritten by the installation."""
    found = tmp_path / "site" / f"{metadata_name.replace('-', '_')}-2.5.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {metadata_name}\nVersion: 2.5\n")
    (tmp_path / "site" / f"{module}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(InvalidName, match=f"device type 'glow_worm' is taken: {words}"):
        write_backend("glow_worm", tmp_path)


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    """An existing folder is not overwritten."""
    taken = tmp_path / "candelabra-acme"
    taken.mkdir()
    with pytest.raises(FileExistsError, match="candelabra-acme exists already: move it away"):
        write_backend("acme", tmp_path)
    assert [p.name for p in tmp_path.rglob("*")] == ["candelabra-acme"]


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    """A misspelled --directory does not create folders."""
    with pytest.raises(FileNotFoundError, match="nowhere is not a directory: create it first"):
        write_backend("acme", tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command creates the whole package or nothing."""
    kept = Path.write_text

    def full(path: Path, *args: Any, **options: Any) -> int:
        if path.name == "kernels.py":
            raise OSError("no space left on the disk")
        return kept(path, *args, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space left on the disk"):
        write_backend("acme", tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- the command ------------------------------------------------------------------------------------------------------
def test_the_command_says_what_comes_next(tmp_path: Path, capsys: Output) -> None:
    """The command prints the three commands from the package to its first passing test."""
    assert write.main(["acme", "--directory", str(tmp_path), "--author", "Acme Inc."]) == 0
    shown = capsys.readouterr().out
    assert f"cd {tmp_path / 'candelabra-acme'}" in shown
    assert 'pip install -e ".[test]"' in shown
    assert 'name = "Acme Inc."' in (tmp_path / "candelabra-acme/pyproject.toml").read_text()


def test_the_command_refuses_in_one_line(tmp_path: Path, capsys: Output) -> None:
    """A refusal is exit status 2 and a reason, without a traceback."""
    assert write.main(["my-chip", "--directory", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("candelabra new-backend: 'my-chip' cannot be a device type")
    assert shown.err.count("\n") == 1


# -- the generated backend --------------------------------------------------------------------------------------------
def test_the_backend_is_not_the_reference_of_other_devices(backend: Any) -> None:
    """The generated backend is slow and must not become the device that others fall back to."""
    assert cd.device(plugins.reference_device()).type != backend.name


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_every_dtype_goes_there_and_back(backend: Any, d: Any) -> None:
    """Copies to the device and back preserve bits, for strided views and overlapping copies too."""
    values = cd.tensor([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 0]]).to(d)
    there = values.to("acme:0")
    assert there.cpu().tolist() == values.tolist()
    assert there.t()[1:, ::2].cpu().tolist() == values.t()[1:, ::2].tolist()
    there[1:].copy_(there[:2])
    values[1:].copy_(values[:2].clone())
    assert there.cpu().tolist() == values.tolist()


KERNEL_DTYPES = [d for d in ALL if d.name not in ("float16", "bfloat16", "complex64", "complex128")]


@pytest.mark.parametrize("name", ["add", "mul", "eq"])
@pytest.mark.parametrize("d", KERNEL_DTYPES, ids=lambda d: d.name)
def test_the_kernels_agree_with_the_reference(backend: Any, name: str, d: Any) -> None:
    """Results are equal bit for bit: strided, broadcast, 0-d and empty tensors, Python numbers, and dtype limits."""
    assert d in backend.capabilities.arithmetic
    function: Any = getattr(cd, name)
    ends = [0, 1] if d.name == "bool" else [0.1, -3.7, 1e30, float("inf"), float("nan"), -0.0]
    if d.category == BY_NAME["int8"].category:
        ends = [cd.iinfo(d).min, cd.iinfo(d).max, 0, 1, 2, 100]
    x = cd.tensor([ends, list(reversed(ends))]).to(d) if d.is_floating_point else cd.tensor([ends, ends[::-1]], dtype=d)
    y = x.t()
    for a, b in [(x, x), (y, y), (x, x[0]), (y[:, :1], x[:1]), (x[1, 1], x), (x[:, :0], x[:, :0]), (y[1::2], y[1::2])]:
        with cd.fallback("error", [name]):
            got = function(a.to("acme:0"), b.to("acme:0"))
            number = function(a.to("acme:0"), True if d.name == "bool" else 1)
        for there, here in [(got, function(a, b)), (number, function(a, True if d.name == "bool" else 1))]:
            assert there.dtype is here.dtype
            assert repr(there.cpu().tolist()) == repr(here.tolist())


def test_shapes_that_do_not_fit_are_refused_in_the_words_of_every_device(backend: Any) -> None:
    """A kernel only raises; the text is the core's."""
    x, y = cd.zeros(2, 3, device="acme:0"), cd.zeros(2, 4, device="acme:0")
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\)"):
        x + y


def test_no_room_is_the_typed_error(backend: Any) -> None:
    """More bytes than the machine can address raise an error with the shape."""
    with pytest.raises(OutOfMemoryError, match=r"acme is out of memory: tried to allocate \[1125899906842624, 4096\]"):
        cd.empty(2**50, 4096, device="acme:0")


def test_every_primitive_is_served_as_generated(backend: Any) -> None:
    """Kernels, strides, bodies and the reference device together serve every operator."""
    from candelabra.library import explain_key, open_device

    instance = open_device("acme:0")
    routes = {}
    for name, op in list(OPERATORS.items()):
        tried = (explain_key(op, instance, d, False).route for d in (cd.float32, cd.int64, cd.complex64, cd.bool))
        routes[name] = next((route for route in tried if route != "unsupported"), "unsupported")
    assert [name for name, route in routes.items() if route == "unsupported"] == []
    native = [name for name, route in routes.items() if route == "native"]
    assert sorted(native) == ["add", "eq", "mul", "view_as_complex", "view_as_real", "view_dtype"]


def test_views_that_change_the_dtype_share_memory(backend: Any) -> None:
    """A write through one view is visible in the other, also with an offset and with strides."""
    z = cd.zeros(3, 4, dtype=cd.complex64, device="acme:0")
    pairs = cd.view_as_real(z.t()[1:, ::2])
    assert pairs.shape == (3, 2, 2)
    pairs[0, 1, 1] = 5.0
    assert z.cpu()[2, 1].item() == 5j
    cd.view_as_complex(pairs)[2, 0] = 1 - 2j
    assert z.cpu()[0, 3].item() == 1 - 2j
    words = cd.tensor([[1.0, -2.0], [0.5, 3.0]], device="acme:0")[1:].view(cd.uint8)
    assert words.tolist() == [[0, 0, 0, 63, 0, 0, 64, 64]]
    assert words.view(cd.float32).tolist() == [[0.5, 3.0]]
    assert words.view(cd.int8).dtype is cd.int8


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.t().view(cd.int8), r"self.stride\(-1\) must be 1"),
        (lambda x: x[0, :3].view(cd.float64), r"self.size\(-1\) must be divisible by 2"),
        (lambda x: x[:, 1:3].view(cd.float64), r"self.storage_offset\(\) must be divisible by 2"),
        (lambda x: cd.view_as_complex(x), "must have a last dimension of size 2"),
        (lambda x: cd.view_as_complex(x[:, ::2]), "must have a last dimension with stride 1"),
        (lambda x: x[0, 0].view(cd.int8), r"self.dim\(\) cannot be 0"),
    ],
)
def test_views_that_cannot_be_are_refused_in_the_words_of_every_device(backend: Any, call: Any, words: str) -> None:
    """The kernel raises, and the message is the record's."""
    with pytest.raises(RuntimeError, match=words):
        call(cd.zeros(2, 4, device="acme:0"))


def test_a_network_learns_on_the_device_as_on_the_reference(backend: Any) -> None:
    """The losses of a few steps are equal: the kernels round as the reference does."""

    def losses(device: str) -> list[float]:
        cd.manual_seed(3)
        x = cd.randn(16, 3).to(device)
        y = (x * cd.tensor([1.0, -2.0, 0.5], device=device)).sum(1, keepdim=True)
        model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).to(device)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        found = []
        for _ in range(8):
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    expected = losses(str(plugins.reference_device()))
    assert losses("acme:0") == pytest.approx(expected, rel=1e-5)
    assert expected[-1] < expected[0] / 2

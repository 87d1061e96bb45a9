"""The example for vendors: JAX on the CPU as a separate package, with immutable arrays."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra._plugins import registry
from candelabra.dtypes import ALL
from candelabra.errors import OutOfMemoryError
from candelabra_conformance.running import Options, run

FOLDER = Path(__file__).parents[2] / "examples" / "jax-backend"
EVERYDAY = ("div", "sum", "matmul", "index_put", "basic_index")
"""An operator of each family, but few, since JAX compiles each for every shape."""


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[str]:
    """Register JAX as a device of this process without installing it."""
    sys.path.insert(0, str(FOLDER / "src"))
    try:
        import candelabra_jax_example

        remove = registry.add_backend(candelabra_jax_example.candelabra_backend())
        try:
            yield "jax:0"
        finally:
            remove()
    finally:
        sys.path.remove(str(FOLDER / "src"))
        for name in [n for n in sys.modules if n.partition(".")[0] == "candelabra_jax_example"]:
            del sys.modules[name]


def test_the_backend_is_a_hundred_odd_lines() -> None:
    """A backend for an array library is short."""
    texts = [path.read_text() for path in (FOLDER / "src").rglob("*.py")]
    assert sum(bool(line.strip()) for text in texts for line in text.splitlines()) < 150


def test_the_device_is_found_by_its_entry_point(tmp_path: Path) -> None:
    """The core needs only the metadata that pip writes."""
    entries = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["entry-points"]["candelabra.backends"]
    metadata = tmp_path / "candelabra_jax_example-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: candelabra-jax-example\nVersion: 0.1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (metadata / "entry_points.txt").write_text(f"[candelabra.backends]\n{lines}")
    program = (
        "import candelabra as cd, jax; x = cd.ones(2, dtype=cd.float64, device='jax'); print((x + 1).tolist(), x.dtype)"
    )
    program += "; print(jax.numpy.ones(1).dtype)"
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(FOLDER / "src")])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=surroundings, check=False
    )
    assert done.returncode == 0, done.stderr
    # Candelabra uses 64 bits, other code JAX's default.
    assert done.stdout == "[2.0, 2.0] candelabra.float64\nfloat32\n"


@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_every_dtype_goes_there_and_back(device: str, d: Any) -> None:
    """Copies to JAX and back preserve bits."""
    values = cd.tensor([[0, 1, 1], [1, 0, 1]]).to(d)
    assert values.to(device).dtype is d
    assert values.to(device).t().cpu().tolist() == values.t().tolist()


@pytest.mark.thorough
def test_a_write_to_a_view_reaches_its_base_and_its_siblings(device: str) -> None:
    """No array changes: the base gets another payload, and its views are computed again."""
    x = cd.arange(12.0, device=device).reshape(3, 4)
    diagonal, column = x.diagonal(), x[:, 1]
    x[1:, :2].mul_(10)
    assert x.tolist() == [[0, 1, 2, 3], [40, 50, 6, 7], [80, 90, 10, 11]]
    assert (diagonal.tolist(), column.tolist()) == ([0, 50, 10], [1, 50, 90])
    diagonal.zero_()
    assert x.unfold(1, 2, 2).tolist() == [[[0, 1], [2, 3]], [[40, 0], [6, 7]], [[80, 90], [0, 11]]]


def test_views_that_change_the_dtype(device: str) -> None:
    """Complex numbers as pairs and back, and bytes as another dtype, are correct."""
    z = cd.tensor([1 + 2j, complex("inf-nanj")], device=device)
    assert repr(cd.view_as_complex(cd.view_as_real(z)).tolist()) == repr(z.tolist())
    assert cd.tensor([1.0], device=device).view(cd.int32).tolist() == [0x3F800000]
    with pytest.raises(RuntimeError, match="must have a last dimension of size 2"):
        cd.view_as_complex(cd.zeros(3, device=device))
    with pytest.raises(RuntimeError, match="view_as_complex is only supported for float and double tensors"):
        cd.view_as_complex(cd.zeros(2, dtype=cd.float16, device=device))


@pytest.mark.thorough
def test_places_that_are_named_twice_count_twice(device: str) -> None:
    """Rows are added in order, as on every device."""
    index = cd.tensor([1, 0, 1, 1], device=device)
    added = cd.zeros(2, device=device).index_add(0, index, cd.tensor([1.0, 2.0, 3.0, 4.0], device=device))
    assert added.tolist() == [2.0, 8.0]
    put = cd.zeros(2, device=device).scatter(0, index, cd.tensor([1.0, 2.0, 3.0, 4.0], device=device))
    assert put.tolist() == [2.0, 4.0]


def test_quotients_are_rounded_once(device: str) -> None:
    """Results equal the reference's bit for bit, broadcast or with a number: no rounded reciprocal is used."""
    x = cd.linspace(0.1, 3.0, 23).reshape(23, 1)
    y = cd.linspace(0.3, 7.0, 19)
    there, here = x.to(device), y.to(device)
    assert (there / here).tolist() == (x / y).tolist()
    assert (there / 3.0).tolist() == (x / 3.0).tolist()
    assert (3.0 / there).tolist() == (3.0 / x).tolist()


def test_remainders_are_exact(device: str) -> None:
    """Results equal the reference's bit for bit, including the sign of zero."""
    x = cd.tensor([7.3, -7.3, 7.3, -7.3, -6.0, 0.1])
    y = cd.tensor([0.7, 0.7, -0.7, -0.7, 2.0, -1e9])
    got = cd.fmod(x.to(device), y.to(device)).cpu()
    assert got.view(cd.int32).tolist() == cd.fmod(x, y).view(cd.int32).tolist()


def test_bits_of_half_numbers_survive_every_move(device: str) -> None:
    """A signalling NaN of bfloat16 is copied unchanged, which XLA's own copies would not do."""
    bits = cd.arange(12, dtype=cd.int16).reshape(3, 4) + 0x7F81
    x, there = bits.view(cd.bfloat16), bits.to(device).view(cd.bfloat16)
    for name, move in {
        "transposed": lambda t: t.t(),
        "sliced": lambda t: t[1:, ::2],
        "picked": lambda t: t[[2, 0]],
        "joined": lambda t: cd.cat([t, t]),
    }.items():
        got, want = move(there).cpu().contiguous(), move(x).contiguous()
        assert got.view(cd.int16).tolist() == want.view(cd.int16).tolist(), name


def test_conjugates_of_bools_are_bools(device: str) -> None:
    """A tensor without an imaginary part is copied in its own dtype."""
    assert cd.conj_physical(cd.tensor([True, False], device=device)).tolist() == [True, False]


@pytest.mark.thorough
def test_long_sums_of_products_keep_their_digits(device: str) -> None:
    """A sequential sum of these 7,161 equal products, whose rounding errors have one sign, would be off by 6e-5."""
    x, y = cd.full((9, 7161), 0.1, device=device), cd.full((7161, 5), 0.1, device=device)
    exact = 7161 * x[0, 0].item() ** 2
    for product in (x @ y, x @ y[:, 0], x[0] @ y, x[0] @ y[:, 0]):
        assert product.amin().item() == pytest.approx(exact, rel=2e-5)
        assert product.amax().item() == pytest.approx(exact, rel=2e-5)
    assert (cd.ones(2, 0, device=device) @ cd.ones(0, 3, device=device)).tolist() == [[0.0] * 3] * 2


def test_out_of_memory_is_the_typed_error(device: str) -> None:
    """JAX's own error is its cause."""
    with pytest.raises(OutOfMemoryError, match=r"JAX has no room for \[1125899906842624\] of candelabra.float32"):
        cd.empty(2**50, device=device)


def test_a_network_trains_to_the_losses_of_the_reference(device: str) -> None:
    """Convolution, normalization and an optimizer with state run without a fallback."""

    def losses(where: str) -> list[float]:
        cd.manual_seed(1)
        x = cd.randn(6, 1, 5, 5).to(where)
        y = cd.tensor([0, 1, 2, 0, 1, 2], device=where)
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.LayerNorm(18), nn.Linear(18, 3)).to(where)
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        found = []
        for _ in range(3):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    with cd.fallback("error"):
        got = losses(device)
    expected = losses(str(registry.reference_device()))
    assert got == pytest.approx(expected, rel=1e-4)
    assert got[-1] < got[0]


def test_memory_of_a_dtype_conforms(device: str) -> None:
    """Level 0 passes in a dtype that NumPy does not have."""
    done = run(device, Options(level=0, patterns=("device/*/bfloat16*",)))
    assert len(done.results) > 2
    assert [(r.case.id, r.message) for r in done.results if r.verdict != "passed"] == []


@pytest.mark.thorough
def test_memory_conforms(device: str) -> None:
    """Level 0 passes in every dtype."""
    done = run(device, Options(level=0))
    assert [(r.case.id, r.message) for r in done.results if r.verdict != "passed"] == []
    assert done.level == 0


@pytest.mark.thorough
@pytest.mark.parametrize("operator", EVERYDAY)
def test_everyday_operators_conform_in_training(device: str, operator: str) -> None:
    """The suite's values and gradients pass in float32, by kernels of the device or composite bodies."""
    patterns = ("*/value/float32/contiguous", "*/gradient/float32/contiguous")
    done = run(device, Options(level=2, operators=(operator,), patterns=patterns, forbid_fallback=True))
    assert [(r.case.id, r.verdict, r.message) for r in done.results if r.verdict not in ("passed", "skipped")] == []
    assert {r.case.operator for r in done.results} == {operator}
    assert {r.route for r in done.results} <= {"native", "composite"}


def test_compiled_functions_are_programs_of_xla() -> None:
    """Nodes that XLA can trace become one program; those that check indices stay with the core."""
    compiled = cd.compile(lambda x, i: (x * 2 + x).gather(0, i).exp() + x, fullgraph=True)
    x, i = cd.ones(2, 2, device="jax"), cd.tensor([[0, 1], [1, 0]], device="jax")
    for _ in range(2):
        assert cd.allclose(compiled(x, i), compiled.function(x, i))
    (run,) = compiled.programs[0].runs
    assert {"mul+add", "gather", "exp+add"} <= {node.name for node in run.graph}
    with pytest.raises(RuntimeError, match="index 5 is out of bounds"):
        compiled(x, i + 5)

"""The report of ``make bench`` says which marks hold, and shows the compilers that ran."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cases import Case
from benchmarks.report import write


def test_the_report_has_a_row_for_each_case_and_says_which_marks_hold(tmp_path: Path) -> None:
    """Times are in microseconds. A case without a mark says nothing, and bars in names do not divide cells."""
    fast, slow, plain = Case("a | b", "", "a | b", mark=1.0), Case("c", "", "c", mark=0.5, goal=0.4), Case("d", "", "d")
    path = tmp_path / "cpu.md"
    results = [{"case": case, "ours": 2e-6, "peer": 3e-6} for case in (fast, slow, plain)]
    write(path, results, "PyTorch 2.13.0, 2 threads", (0.25, 1.5))
    text = path.read_text()
    assert r"| a \| b | 2.00 | 3.00 | 0.67 | 1.00 |  | yes |" in text
    assert "| c | 2.00 | 3.00 | 0.67 | 0.50 | 0.40 | **no** |" in text
    assert "| d | 2.00 | 3.00 | 0.67 |  |  |  |" in text
    assert "| peer | PyTorch 2.13.0, 2 threads |" in text
    assert "| load before and after | 0.2 and 1.5 |" in text


def test_a_compiler_has_a_column_if_it_ran_a_case(tmp_path: Path) -> None:
    """Its ratio is to the peer's time, as ours is. A cell of a case that it did not run is empty."""
    path = tmp_path / "cpu.md"
    times = [{"jax.jit": 6e-6, "tinygrad": 1.5e-6}, {"jax.jit": 3e-6}, {}]
    results = [
        {"case": Case(name, "", name), "ours": 2e-6, "peer": 3e-6, "compilers": each}
        for name, each in zip("abc", times, strict=True)
    ]
    write(path, results, "PyTorch 2.13.0, 2 threads", (0.25, 1.5))
    text = path.read_text()
    assert "| holds | jax.jit | tinygrad |" in text
    assert "| a | 2.00 | 3.00 | 0.67 |  |  |  | 2.00 | 0.50 |" in text
    assert "| b | 2.00 | 3.00 | 0.67 |  |  |  | 1.00 |  |" in text
    assert "| c | 2.00 | 3.00 | 0.67 |  |  |  |  |  |" in text

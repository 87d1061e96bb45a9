"""The benchmark of all operators: its calls, and the list of operators that are known to be slow."""

from __future__ import annotations

from fnmatch import fnmatchcase

import candelabra as cd
import pytest
from candelabra._namespace import index

from benchmarks import operator_calls, operators


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    """Return the names that the setup of small inputs defines, once."""
    made: dict[str, object] = {"xp": cd}
    exec(operator_calls.SMALL + operator_calls.SETUP, made)
    return made


@pytest.mark.parametrize("form", operator_calls.FORMS)
def test_each_form_is_an_argument_list(form: str, names: dict[str, object]) -> None:
    """Each form is an expression over the setup's names, without misspelt ones."""
    assert eval(f"[{form}]", dict(names)) != []


@pytest.mark.parametrize("name", operator_calls.CALLS)
def test_each_call_is_one_of_an_operator(name: str, names: dict[str, object]) -> None:
    """The arguments that are listed for an operator are accepted."""
    exec(f"result = xp.{name}({operator_calls.CALLS[name]})", scope := dict(names))
    assert "result" in scope


def test_gradients_are_measured_with_respect_to_the_leaves_of_a_call(names: dict[str, object]) -> None:
    """The timed statement computes one gradient for each differentiable tensor in the call, and no other."""
    (case,) = operators.cases("nn.functional.prelu", operators.Work(small=True, gradients=True))
    exec(case.setup + "\nresult = " + case.statement, scope := {"xp": cd})
    assert [tuple(each.shape) for each in scope["result"]] == [(1, 32, 4, 4), (32,)]  # type: ignore[attr-defined]


def test_only_slow_operators_that_exist_are_listed() -> None:
    """Each line of known_slow.md names a public function and says why it is slow."""
    for name, reason in operators.known().items():
        assert any(fnmatchcase(each, name) for each in index.FUNCTIONS_IN), name
        assert len(reason) > 20, name


def test_slow_without_a_reason_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """An operator over the limit without a line fails the run, and is named with its ratio."""
    fast = {"name": "add", "call": "xp.add(x, y)", "ours": 1e-3, "peer": 1e-3, "ratio": 1.0}
    slow = {"name": "no_such", "call": "xp.no_such(x)", "ours": 9e-3, "peer": 1e-3, "ratio": 9.0}
    assert operators.show([fast], [])
    assert not operators.show([slow, fast], ["conv9d"])
    out = capsys.readouterr().out
    assert "these: no_such (9.0)" in out
    assert "known_slow.md: no_such (9.0)" in out
    assert "fits both: conv9d" in out


def test_the_limit_of_what_is_listed_can_be_lower(capsys: pytest.CaptureFixture[str]) -> None:
    """An operator below the usual limit is listed where a lower one is given."""
    row = {"name": "no_such", "call": "xp.no_such(x)", "ours": 2.5e-3, "peer": 1e-3, "ratio": 2.5}
    assert operators.show([row], [])
    assert not operators.show([row], [], limit=2.0)
    assert "1 slower than 2 times" in capsys.readouterr().out


def test_a_reason_holds_for_every_name_of_an_operator() -> None:
    """Aliases and patterns are resolved; other operators are not affected."""
    assert operators.explained("special.expm1", {"expm1": "slow"})
    assert operators.explained("arccos", {"acos": "slow"})
    assert operators.explained("special.hermite_polynomial_h", {"special.*_polynomial_*": "slow"})
    assert not operators.explained("add", {"addmm": "slow"})

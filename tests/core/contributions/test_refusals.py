"""Contributions that are refused."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import BackendError, DeviceUnavailable
from candelabra.library import (
    add_contribution,
    plugins,
)

from tests.core.contributions.contributed import Make


def test_the_table_that_a_contribution_gets_is_read_only(contribute: Any) -> None:
    """A hook cannot write to the owner's kernels; its error is the contribution's."""

    def make(_: str, kernels: Any) -> dict[str, Any]:
        kernels["exp"] = None
        return {}

    with pytest.raises(BackendError, match="'acme-fast' contributes no kernels to device type 'cpu': TypeError"):
        contribute(make)
    assert cd.zeros(2).exp().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda *_: {"expp": len}, "distribution 'acme-fast' has a kernel for 'expp', but no operator has that name"),
        (lambda *_: {"exp": 3}, "distribution 'acme-fast': the kernel of 'exp' is not callable: 3"),
        (lambda *_: {3: len}, "has a kernel for 3, which is not the name of an operator"),
        (lambda *_: {"exp": lambda: 0}, "the kernel of 'exp' does not accept 1 positional argument: input"),
        (lambda *_: None, r"candelabra_kernels\(\) returned None, not a mapping"),
        (lambda *_: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_wrong_contribution_is_refused_as_a_whole(contribute: Any, make: Make, text: str) -> None:
    """One wrong kernel refuses all of a contribution, and the other ones stay in force."""
    contribute(lambda *_: {"exp": lambda x: x + 2}, "beta")

    def with_another(*arguments: Any) -> Any:
        made: Any = make(*arguments)
        return {"exp": lambda x: x + 3, **made} if isinstance(made, dict) else made

    with pytest.raises(BackendError, match=text):
        contribute(with_another)
    assert cd.zeros(1).exp().tolist() == [2.0]
    assert [each.distribution for each in plugins.plugins()["cpu"].contributions] == ["beta"]


def test_objects_without_the_hook_and_odd_precedences_are_refused(contribute: Any) -> None:
    """A contribution needs the hook, an int for its precedence, and a device type that a distribution owns."""
    with pytest.raises(BackendError, match="'object' implements no hook candelabra_kernels: define it with"):
        add_contribution("cpu", object())
    with pytest.raises(BackendError, match="the precedence of its kernels must be an int, got 'high'"):
        contribute(lambda *_: {}, precedence="high")
    with pytest.raises(
        BackendError, match="device type 'meta' belongs to the core, which takes no contributed kernels"
    ):
        contribute(lambda *_: {}, device="meta")
    with pytest.raises(BackendError, match="no backend is installed for device type 'nowhere'"):
        contribute(lambda *_: {}, device="nowhere")


def test_the_reason_of_a_contribution_that_does_not_fit_the_machine_is_raised(contribute: Any) -> None:
    """DeviceUnavailable is the reason of a contribution that does not fit the machine."""

    def make(*_: Any) -> Any:
        raise DeviceUnavailable("no vector unit")

    with pytest.raises(BackendError, match="contributes no kernels to device type 'cpu': no vector unit"):
        contribute(make)

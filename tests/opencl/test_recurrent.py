"""Steps of recurrent networks on an OpenCL device: networks as on the reference device, launches, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra_clike import Engine
from candelabra_clike.kernels import recurrent

pytestmark = pytest.mark.rounding

CASES = [("LSTM", "packed"), ("GRU", "padded"), ("LSTM", "second derivative"), ("GRU", "second derivative")]


def trained(kind: str, form: str, where: cd.device | str) -> list[Any]:
    """Return results and gradients of a network with fixed parameters."""
    network = getattr(nn, kind)(3, 5, 2, bidirectional=True, dtype=cd.float32)
    with cd.no_grad():
        for number, p in enumerate(network.parameters()):
            p.copy_((cd.arange(p.numel(), dtype=cd.float32) * 0.7 + number).sin().reshape(p.shape) * 0.5)
    network = network.to(where)
    x = (cd.arange(54.0).reshape(6, 3, 3) * 0.3).cos().to(where).requires_grad_()
    given: Any = x
    if form == "packed":
        given = nn.utils.rnn.pack_padded_sequence(x, [6, 4, 1])
    out, hidden = network(given)
    state = hidden[-1] if isinstance(hidden, tuple) else hidden
    loss = ((out.data if form == "packed" else out) ** 2).sum() + state.sum()
    if form == "second derivative":
        [g] = cd.autograd.grad(loss, [x], create_graph=True)
        loss = (g * g).sum()
    loss.backward()
    return [t.detach().cpu() for t in (loss, x.grad, *(p.grad for p in network.parameters()))]


def same(kind: str, form: str, where: cd.device) -> bool:
    """Return whether a network on a device agrees with the reference device."""
    pairs = zip(trained(kind, form, where), trained(kind, form, "cpu"), strict=True)
    return all(cd.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in pairs)


@pytest.mark.parametrize(("kind", "form"), CASES)
def test_networks_agree_with_the_reference_device(device: cd.device, kind: str, form: str) -> None:
    """Packed and padded sequences, first and second derivatives."""
    assert same(kind, form, device)


@pytest.mark.parametrize(("kind", "form"), CASES[:2])
def test_the_forms_for_gpus_agree_with_the_reference_device(lanes: cd.device, kind: str, form: str) -> None:
    """There is one work-item for each element instead of one for each row."""
    assert same(kind, form, lanes)


def test_a_step_is_one_launch(lanes: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of T steps launches T step kernels, and as many for its gradient."""
    names: list[str] = []
    run = recurrent.run
    monkeypatch.setattr(recurrent, "run", lambda step, *arrays: names.append(step.name) or run(step, *arrays))
    network = nn.GRU(2, 3).to(lanes)
    network(cd.ones(4, 1, 2, device=lanes))[0].sum().backward()
    assert names == ["gru_step"] * 4 + ["gru_step_backward"] * 4


def test_a_step_and_its_product_are_one_launch_on_processors(
    device: cd.device, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The products of all gates with the state stay in registers until the gates are computed."""
    launched: list[Any] = []
    launch = recurrent.StepLaunch.__call__

    def counted(self: recurrent.StepLaunch, rows: recurrent.Rows, *before: recurrent.Rows) -> None:
        launched.append(rows)
        launch(self, rows, *before)

    monkeypatch.setattr(recurrent.StepLaunch, "__call__", counted)
    network = nn.LSTM(2, 3).to(device)
    network(cd.ones(4, 1, 2, device=device))[0].sum().backward()
    steps = [(0, 1), (1, 1), (2, 1), (3, 1)] if engine.traits.serial else []
    assert [rows for rows in launched if rows[1]] == [*steps, *steps[::-1]]


def test_kernels_refuse_other_shapes(device: cd.device) -> None:
    """The error of the kernel lets the operator's rule describe what is wrong."""
    matrix, row = (cd.zeros(*shape, device=device)._payload for shape in ((2, 8), (2,)))
    with pytest.raises(ValueError, match="lstm_step: expected a matrix, got shape"):
        recurrent.KERNELS["lstm_step"](matrix, row)
    with pytest.raises(ValueError, match=r"lstm_step: expected s of shape \(2, 32\), got \(2, 8\)"):
        recurrent.KERNELS["lstm_step"](matrix, matrix)

"""A problem to optimize, and schedules to follow, whose results in PyTorch are in ``figures.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
from candelabra import nn, optim

EPOCHS = (0, 1, 5, 9, 20, 49)

SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 3, 20], 0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 9),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.8, 11),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 30, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 12, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "CosineAnnealingWarmRestarts of equal length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "CyclicLR": lambda s, o: s.CyclicLR(o, [0.01, 0.1], 1.0, 7, 4),
    "CyclicLR, triangular2": lambda s, o: s.CyclicLR(o, 0.01, [1.0, 2.0], 5, mode="triangular2"),
    "CyclicLR, exp_range": lambda s, o: s.CyclicLR(o, 0.01, 1.0, 5, mode="exp_range", gamma=0.97),
    "CyclicLR, scale_fn": lambda s, o: s.CyclicLR(o, 0.01, 1.0, 5, scale_fn=lambda x: 1 / x),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [0.1, 1.0], 50),
    "OneCycleLR, three phases": lambda s, o: s.OneCycleLR(o, 1.0, epochs=6, steps_per_epoch=9, three_phase=True),
    "OneCycleLR, linear": lambda s, o: s.OneCycleLR(o, 1.0, 50, anneal_strategy="linear"),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1, min_lr=[0.1, 0.0]),
    "ReduceLROnPlateau, max": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.5, 3, 0.01, "abs"),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 8), s.CosineAnnealingLR(o, 20)], [8]),
    "SequentialLR of three": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [4, 20]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
    "SWALR": lambda s, o: optim.swa_utils.SWALR(o, 0.05, 8),
    "SWALR, linear": lambda s, o: optim.swa_utils.SWALR(o, [0.05, 2.0], 8, "linear"),
}


def problem(name: str, is_complex: bool = False) -> tuple[list[Any], Callable[[], Any]]:
    """Return parameters, and a closure that computes a loss of them and its gradients."""
    unit = 1 + 0.5j if is_complex else 1.0
    dtype = cd.complex128 if is_complex else cd.float64
    w = nn.Parameter(cd.tensor([[0.5 * unit, -1.0], [2.0, 0.25 * unit]], dtype=dtype))
    b = nn.Parameter(cd.tensor([[1.5, -0.5 * unit]] if name == "Muon" else [1.5, -0.5 * unit], dtype=dtype))

    def closure() -> Any:
        w.grad = b.grad = None
        distance = (w * b - 0.3 * unit).abs() ** 2 + 0.1 * (w + b).abs() ** 3
        loss = distance.sum()
        loss.backward()
        return loss

    return [w, b], closure


def final_values(name: str, options: dict[str, Any], is_complex: bool) -> list[float]:
    """Return the elements of the parameters after 20 steps; of complex ones, the real and imaginary parts."""
    parameters, closure = problem(name, is_complex)
    optimizer = getattr(optim, name)(parameters, **options)
    for _ in range(20):
        optimizer.step(closure)
    flat = cd.cat([p.detach().flatten() for p in parameters])
    found: list[float] = (cd.view_as_real(flat).flatten() if is_complex else flat).tolist()
    return found


def two_groups() -> Any:
    """Return an optimizer with two groups, of rates 1 and 0.5."""
    groups = [{"params": [nn.Parameter(cd.ones(1))]}, {"params": [nn.Parameter(cd.ones(1))], "lr": 0.5}]
    return optim.SGD(groups, lr=1.0, momentum=0.9)


def rates(name: str) -> list[float]:
    """Return the rates of the first group in EPOCHS."""
    optimizer = two_groups()
    scheduler = SCHEDULES[name](optim.lr_scheduler, optimizer)
    found = []
    for epoch in range(50):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if epoch < 49:
            scheduler.step(*([(5.0, 4.0, 4.5, 4.5, 4.5)[epoch % 5]] if "Plateau" in name else []))
    return [found[epoch] for epoch in EPOCHS]

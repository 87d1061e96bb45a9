"""Hold the optimizers and schedulers against PyTorch's, on one problem in both.

``python tools/oracle_optimizers.py`` (a Python that has both: ``make oracle`` makes one) runs every input of PyTorch's
``optim_db`` for 20 steps in float64, and for complex parameters where PyTorch has them, and compares the parameters and
the keys of the state. Then it runs schedulers for 50 steps, and compares the rates and momenta. It loads each
state of one library in the other, and goes on, and provokes the errors of ``optim_db``. Exit status 1 if something
differs.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import torch
from oracle_journal import Journal
from torch.testing._internal.common_optimizers import optim_db

STEPS = 20
RATES = 50
TOLERANCE = 1e-9
HALF_TOLERANCE = 1e-2
"""Muon computes in bfloat16, whose products round in an order of their own."""


def numbers(library: Any, value: Any) -> Any:
    """Return a tensor of another library, or a container of them, as one of ``library``."""
    if isinstance(value, (torch.Tensor, cd.Tensor)) and value.is_sparse:
        indices, values = numbers(library, value._indices()), numbers(library, value._values())
        return library.sparse_coo_tensor(indices, values, tuple(value.shape))
    if isinstance(value, (torch.Tensor, cd.Tensor)):
        array = value.detach().numpy()
        return (
            library.from_numpy(array.copy())
            if array.shape
            else library.tensor(array.item(), dtype=getattr(library, array.dtype.name))
        )
    if isinstance(value, dict):
        return {key: numbers(library, part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(numbers(library, part) for part in value)
    return value


class Problem:
    """A regression with a matrix, a vector and a scalar, which is not quadratic."""

    def __init__(self, library: Any, cplx: bool, matrices: bool, sparse: bool = False) -> None:
        rng = np.random.default_rng(7)

        def draw(*shape: int) -> Any:
            made = rng.normal(size=shape)
            return made + 1j * rng.normal(size=shape) if cplx else made

        self.library, self.sparse = library, sparse
        self.x, self.y = (library.from_numpy(np.asarray(draw(*s))) for s in ((6, 3), (6, 4)))
        shapes = [(3, 4), (4, 4)] if matrices else [(3, 4), (4,), ()]
        self.parameters = [
            library.nn.Parameter(numbers(library, library.from_numpy(np.array(draw(*s))))) for s in shapes
        ]

    def loss(self) -> Any:
        """Return the loss, with gradients set."""
        w, b, *s = self.parameters
        for p in self.parameters:
            p.grad = None
        error = (self.x @ w @ b if b.ndim == 2 else self.x @ w + b * s[0]) - self.y
        loss = (error.abs() ** 2 + 0.1 * error.abs() ** 3).mean()
        loss.backward()
        if self.sparse:
            for p in self.parameters:
                p.grad = p.grad.to_sparse()
        return loss


def run(
    library: Any, name: str, kwargs: dict[str, Any], cplx: bool, steps: int, state: Any = None, start: Any = None
) -> Any:
    """Return the problem and its optimizer after some steps, from a state of either library."""
    problem = Problem(library, cplx, name == "Muon", name == "SparseAdam")
    if start is not None:
        problem.parameters = [library.nn.Parameter(numbers(library, p)) for p in start]
    optimizer = getattr(library.optim, name)(problem.parameters, **numbers(library, kwargs))
    if state is not None:
        optimizer.load_state_dict(numbers(library, state))
    for _ in range(steps):
        optimizer.step(problem.loss) if name == "LBFGS" else (problem.loss(), optimizer.step())
    return problem, optimizer


def distance(a: list[Any], b: list[Any]) -> float:
    """Return the largest difference of the parameters over the largest parameter."""
    arrays = [(x.detach().numpy(), y.detach().numpy()) for x, y in zip(a, b, strict=True)]
    return max(float(np.abs(x - y).max() / max(1.0, np.abs(y).max())) for x, y in arrays)


def state_shape(optimizer: Any) -> Any:
    """Return what the state has: keys in order, shapes and dtypes, and the options."""
    saved = optimizer.state_dict()

    def look(value: Any) -> Any:
        if isinstance(value, (torch.Tensor, cd.Tensor)):
            return str(value.dtype).split(".")[-1], tuple(value.shape)
        if isinstance(value, (list, tuple)):
            return [look(part) for part in value]
        return type(value).__name__

    # LBFGS: the step "t" is a tensor if the rate is one; candelabra's is a number.
    state = {n: {k: look(v) for k, v in kept.items() if k != "t"} for n, kept in saved["state"].items()}
    groups = [{k: v.item() if hasattr(v, "item") else v for k, v in g.items()} for g in saved["param_groups"]]
    return state, [list(g.items()) for g in groups]


def judge(info: Any) -> tuple[int, float, list[str]]:
    """Return the number of inputs of an optimizer, the largest difference, and all differences as text."""
    name = info.optim_cls.__name__
    worst, inputs, notes = 0.0, 0, []
    for given in info.optim_inputs_func(device="cpu"):
        for cplx in (False, True) if info.supports_complex else (False,):
            inputs += 1
            try:
                apart, found = input_differs(name, given.kwargs, cplx)
                worst = max(worst, apart)
            except Exception as error:  # the table says what went wrong, and the others are compared
                found = [f"{type(error).__name__}: {error}"]
            notes += [f"{given.kwargs} {'complex ' if cplx else ''}{note}" for note in found]
    return inputs, worst, notes


def input_differs(name: str, kwargs: dict[str, Any], cplx: bool) -> tuple[float, list[str]]:
    """Return the distance of the parameters after the steps, and all differences as text, for one input."""
    notes = []
    theirs, their_optimizer = run(torch, name, kwargs, cplx, STEPS)
    ours, our_optimizer = run(cd, name, kwargs, cplx, STEPS)
    apart = distance(ours.parameters, theirs.parameters)
    bound = HALF_TOLERANCE if name == "Muon" else TOLERANCE
    if name == "LBFGS":  # hundreds of ill-conditioned iterations: how far PyTorch is from itself
        nudged = [p.detach() * (1 + 2e-15) for p in Problem(torch, cplx, False).parameters]
        theirs_nudged, _ = run(torch, name, kwargs, cplx, STEPS, start=nudged)
        bound = max(bound, 10 * distance(theirs_nudged.parameters, theirs.parameters))
    if apart > bound:
        notes.append(f"{apart:.1e}")
    if state_shape(our_optimizer) != state_shape(their_optimizer):
        notes.append(f"state {state_shape(our_optimizer)} is not {state_shape(their_optimizer)}")
    start = theirs.parameters
    theirs, _ = run(torch, name, kwargs, cplx, 5, their_optimizer.state_dict(), start)
    ours, _ = run(cd, name, kwargs, cplx, 5, their_optimizer.state_dict(), start)
    back, _ = run(torch, name, kwargs, cplx, 5, our_optimizer.state_dict(), start)
    crossed = max(distance(p.parameters, theirs.parameters) for p in (ours, back))
    if crossed > bound:
        notes.append(f"loaded: {crossed:.1e}")
    return apart, notes


def optimizers(journal: Journal) -> int:
    """Compare all optimizers, except those in the journal. Return the number of those that differ."""
    for info in optim_db:
        name = info.optim_cls.__name__
        if name not in journal.verdicts:
            journal.record(name, judge(info))
        inputs, worst, notes = journal.verdicts[name]
        print(f"{name:12} {inputs:2} inputs, largest difference {worst:.1e} {'FAILED' if notes else ''}")
        for note in notes:
            print("    ", note)
    wrong = sum(bool(notes) for *_, notes in journal.verdicts.values())
    total = len(journal.verdicts)
    print(f"of {total} optimizers, {total - wrong} wholly right ({100 * (total - wrong) / total:.1f} %)")
    return wrong


def same_objects(value: Any, converted_by_id: dict[int, Any]) -> Any:
    """Return ``value`` with tensors of candelabra; a tensor that occurs twice does so in the result."""
    if isinstance(value, torch.Tensor):
        if id(value) not in converted_by_id:
            converted = numbers(cd, value)
            converted_by_id[id(value)] = cd.nn.Parameter(converted) if value.requires_grad else converted
            if value.grad is not None:
                converted_by_id[id(value)].grad = numbers(cd, value.grad)
        return converted_by_id[id(value)]
    if isinstance(value, dict):
        return {key: same_objects(part, converted_by_id) for key, part in value.items()}
    return (
        type(value)(same_objects(part, converted_by_id) for part in value)
        if isinstance(value, (list, tuple))
        else value
    )


def errors() -> int:
    """Provoke the errors and warnings of ``optim_db``. Return the number that candelabra does not give."""
    failures, total = 0, 0
    for info in optim_db:
        name = info.optim_cls.__name__
        for case in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            given, total = case.optimizer_error_input, total + 1
            converted_by_id: dict[int, Any] = {}
            params, kwargs = same_objects(given.params, converted_by_id), same_objects(given.kwargs, converted_by_id)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    optimizer = getattr(cd.optim, name)(params, **kwargs)
                    optimizer.step(lambda: None)
            except Exception as error:
                if isinstance(error, case.error_type) and re.search(case.error_regex, str(error)):
                    continue
                print(f"    {name}, {given.desc}: {type(error).__name__}: {error}")
            else:
                print(f"    {name}, {given.desc}: no error")
            failures += 1
    print(f"{total - failures} of {total} errors and warnings are PyTorch's")
    return failures


def schedulers(s: Any, w: Any) -> dict[str, Callable[[Any], Any]]:
    """Return schedulers by name, of either library's ``lr_scheduler`` and ``swa_utils``."""
    by_hand = [lambda e: 0.95**e, lambda e: 1 / (1 + e)]
    return {
        "LambdaLR": lambda o: s.LambdaLR(o, by_hand),
        "MultiplicativeLR": lambda o: s.MultiplicativeLR(o, lambda e: 0.95),
        "StepLR": lambda o: s.StepLR(o, 7, 0.5),
        "MultiStepLR": lambda o: s.MultiStepLR(o, [3, 3, 20], 0.5),
        "ConstantLR": lambda o: s.ConstantLR(o, 0.3, 9),
        "LinearLR": lambda o: s.LinearLR(o, 0.2, 0.8, 11),
        "ExponentialLR": lambda o: s.ExponentialLR(o, 0.9),
        "PolynomialLR": lambda o: s.PolynomialLR(o, 30, 2.0),
        "CosineAnnealingLR": lambda o: s.CosineAnnealingLR(o, 12, 0.01),
        "CosineAnnealingWarmRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
        "CosineAnnealingWarmRestarts, T_mult=1": lambda o: s.CosineAnnealingWarmRestarts(o, 7),
        "CyclicLR": lambda o: s.CyclicLR(o, [0.01, 0.1], 1.0, 7, 4),
        "CyclicLR, triangular2": lambda o: s.CyclicLR(o, 0.01, [1.0, 2.0], 5, mode="triangular2"),
        "CyclicLR, exp_range": lambda o: s.CyclicLR(
            o, 0.01, 1.0, 5, mode="exp_range", gamma=0.97, cycle_momentum=False
        ),
        "CyclicLR, scale_fn": lambda o: s.CyclicLR(o, 0.01, 1.0, 5, scale_fn=lambda x: 1 / x),
        "OneCycleLR": lambda o: s.OneCycleLR(o, [0.1, 1.0], 51),
        "OneCycleLR, three phases": lambda o: s.OneCycleLR(o, 1.0, epochs=6, steps_per_epoch=9, three_phase=True),
        "OneCycleLR, linear": lambda o: s.OneCycleLR(o, 1.0, 51, anneal_strategy="linear", cycle_momentum=False),
        "ReduceLROnPlateau": lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1, min_lr=[0.1, 0.0]),
        "ReduceLROnPlateau, max": lambda o: s.ReduceLROnPlateau(o, "max", 0.5, 3, 0.01, "abs"),
        "SequentialLR": lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 8), s.CosineAnnealingLR(o, 20)], [8]),
        "SequentialLR of three": lambda o: s.SequentialLR(
            o, [s.ConstantLR(o, 0.5, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [4, 20]
        ),
        "ChainedScheduler": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
        "two on one": lambda o: (s.StepLR(o, 5, 0.5), s.CosineAnnealingLR(o, 30, 0.05)),
        "SWALR": lambda o: w.SWALR(o, 0.05, 8),
        "SWALR, linear": lambda o: w.SWALR(o, [0.05, 2.0], 8, "linear"),
        "SWALR after another": lambda o: (s.ExponentialLR(o, 0.9), w.SWALR(o, 0.05, 60)),
    }


def rates(library: Any, name: str, disturbed: bool, optimizer: str) -> list[Any]:
    """Return the rates and momenta of all steps, and the final state; ``disturbed``: with changes on the way."""
    groups = [
        {"params": [library.nn.Parameter(library.ones(1))]},
        {"params": [library.nn.Parameter(library.ones(1))], "lr": 0.5},
    ]
    o = getattr(library.optim, optimizer)(groups, lr=1.0, **({"momentum": 0.9} if optimizer == "SGD" else {}))
    made = schedulers(library.optim.lr_scheduler, library.optim.swa_utils)[name](o)
    found: list[Any] = []
    for step in range(RATES):
        found.append([(g["lr"], g.get("momentum", g.get("betas"))) for g in o.param_groups])
        o.step()
        if disturbed and step == 10:
            o.param_groups[0]["lr"] = 3.0
        if disturbed and step == 15:
            o.add_param_group(
                {"params": [library.nn.Parameter(library.ones(1))], "lr": 0.7, "initial_lr": 0.7, "swa_lr": 0.1}
            )
        for scheduler in made if isinstance(made, tuple) else (made,):
            scheduler.step(*([[5.0, 4.0, 4.5, 4.5, 4.5][step % 5]] if "Plateau" in name else []))
            found.append(scheduler.get_last_lr())
    found.append([scheduler.state_dict() for scheduler in (made if isinstance(made, tuple) else (made,))])
    return found


def flat(value: Any) -> list[Any]:
    """Return the leaves of containers, with the keys of dicts."""
    if isinstance(value, dict):
        return [part for key in sorted(value, key=str) for part in (str(key), *flat(value[key]))]
    return [part for item in value for part in flat(item)] if isinstance(value, (list, tuple)) else [value]


def compare_schedulers() -> int:
    """Compare all schedulers. Return the number of those that differ."""
    failures = 0
    for name in schedulers(torch.optim.lr_scheduler, torch.optim.swa_utils):
        notes, worst = [], 0.0
        for optimizer in ("SGD", "Adam"):
            for disturbed in (False, True):
                try:
                    theirs: Any = flat(rates(torch, name, disturbed, optimizer))
                except (ValueError, KeyError, RuntimeError):  # PyTorch has no rate for groups that were added later
                    continue
                try:
                    ours: Any = flat(rates(cd, name, disturbed, optimizer))
                except Exception as error:
                    ours = [f"{type(error).__name__}: {error}"]
                if len(ours) != len(theirs):
                    notes.append(f"{optimizer}, {disturbed}: {ours[-80:]} is not {theirs[-80:]}")
                    continue
                for a, b in zip(ours, theirs):
                    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
                        worst = max(worst, abs(a - b) if a != b else 0.0)
                        if a != b and abs(a - b) > 1e-13:
                            notes.append(f"{optimizer}, {disturbed}: {a} is not {b}")
                    elif a != b and type(a) is type(b):
                        notes.append(f"{optimizer}, {disturbed}: {a} is not {b}")
        failures += bool(notes)
        print(f"{name:38} largest difference {worst:.1e} {'FAILED' if notes else ''}")
        for note in notes[:3]:
            print("    ", note)
    return failures


def main() -> None:
    """Compare everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write each verdict there as it comes, and go on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.exit(bool(optimizers(Journal(options.journal, {})) + errors() + compare_schedulers()))


if __name__ == "__main__":
    main()

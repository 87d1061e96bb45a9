"""Compiled modules and optimizers against eager ones, on the samples of ``module_db`` and ``optim_db``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

import candelabra as cd
import torch
from oracle_compiled_checks import Broken, Form, Verdict, compare, differentiated, is_break, reason_of
from oracle_modules import COPIES, converted, seeded
from oracle_optimizers import Problem, numbers
from oracle_peer import CALLS, leaves, namesake, translate
from oracle_values import attempt, words

STEPS: Final = 5
Case = tuple[str, Callable[[Verdict], Iterator[str]]]


# -- modules -----------------------------------------------------------------------------------------------------------
def module_cases(most: int) -> Iterator[Case]:
    """Yield all modules of ``module_db``. ``most``: the number of samples of each mode."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        yield info.module_cls.__name__, lambda verdict, info=info: module_differs(info, most, verdict)


def module_differs(info: Any, most: int, verdict: Verdict) -> Iterator[str]:
    """Yield the differences of one module: for training and for evaluation."""
    dtype = next(d for d in (torch.float32, torch.float64, *info.dtypes) if d in info.dtypes)
    for training in (True, False):
        samples = info.module_inputs_func(info, "cpu", dtype, requires_grad=True, training=training)
        samples = [sample for sample in samples if sample.forward_input is not None]
        for sample in samples[:: max(1, -(-len(samples) // most))]:
            for difference in sample_differs(info, sample, dtype, training, verdict):
                yield f"{'training' if training else 'evaluation'}, {sample.desc or 'defaults'}: {difference}"
    CALLS.clear()


def sample_differs(info: Any, sample: Any, dtype: torch.dtype, training: bool, verdict: Verdict) -> Iterator[str]:
    """Yield the differences of one sample. The backward pass runs after the call, and in the compiled function."""
    arguments = sample.forward_input.args, sample.forward_input.kwargs

    def module_of_sample() -> Any:
        COPIES.clear()
        seeded(0)
        given = converted((sample.constructor_input.args, sample.constructor_input.kwargs))
        module = namesake(info.module_cls)(*given[0], **given[1]).to(translate(dtype)).train(training)
        if info.is_lazy:
            inputs = new(arguments)
            module(*inputs[0], **inputs[1])
        return module

    def after() -> Form:
        module = module_of_sample()
        parameters = list(module.parameters())
        call = called(module)
        return Form(call, lambda call: with_buffers(differentiated(call, parameters), module))

    def inside() -> Form:
        module = module_of_sample()
        step = differentiated(called(module), list(module.parameters()))
        return Form(step, lambda step: with_buffers(step, module))

    _, error = attempt(lambda: info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs))
    if error is None:
        verdict.samples += 1
        yield from compare(after, arguments, verdict, new)
        yield from (f"step: {difference}" for difference in compare(inside, arguments, verdict, new))


def new(arguments: Any) -> Any:
    """Return new tensors for a call; one that is two arguments remains one."""
    COPIES.clear()
    return converted(arguments)


def called(module: Any) -> Callable[[Any, Any], Any]:
    """Return a function that calls the module."""
    return lambda args, kwargs: module(*args, **kwargs)


def with_buffers(call: Any, module: Any) -> Callable[[Any, Any], Any]:
    """Return a function of the result and of the buffers after the call."""
    return lambda args, kwargs: (call(args, kwargs), [b.detach().clone() for b in module.buffers()])


# -- optimizers --------------------------------------------------------------------------------------------------------
def optimizer_cases() -> Iterator[Case]:
    """Yield all optimizers of ``optim_db``."""
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        yield info.optim_cls.__name__, lambda verdict, info=info: optimizer_differs(info, verdict)


def variants(info: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield keyword arguments, and whether the parameters are complex: PyTorch's inputs with each ``foreach`` and
    ``fused``, and the rate as a number and as a tensor."""
    known = inspect.signature(getattr(cd.optim, info.optim_cls.__name__)).parameters
    flags: list[dict[str, Any]] = [{}]
    flags += [{"foreach": value} for value in (False, True) if "foreach" in known]
    flags += [{"fused": True}] if "fused" in known else []
    for given, chosen in product(info.optim_inputs_func(device="cpu"), flags):
        kwargs = {**given.kwargs, **chosen}
        yield kwargs, False
        if info.supports_complex and not chosen:
            yield kwargs, True
        rate = kwargs.get("lr", known["lr"].default)
        if isinstance(rate, float):
            yield {**kwargs, "lr": torch.tensor(rate, dtype=torch.float64)}, False


def optimizer_differs(info: Any, verdict: Verdict) -> Iterator[str]:
    """Yield the differences of one optimizer, whose step alone is compiled, and with the loss and its backward pass."""
    name = info.optim_cls.__name__
    for kwargs, cplx in variants(info):
        expected, refusal = attempt(lambda: list(steps(name, kwargs, cplx, lambda step: step)))  # noqa: B023
        if refusal is not None:
            continue
        verdict.samples += 1
        for whole in (False, True):
            for difference in compiled_steps_differ(name, kwargs, cplx, whole, expected, verdict):
                yield f"{kwargs}{' complex' * cplx}{', whole step' * whole}: {difference}"


def compiled_steps_differ(
    name: str, kwargs: dict[str, Any], cplx: bool, whole: bool, expected: list[Any], verdict: Verdict
) -> Iterator[str]:
    """Yield the first difference of the steps of a compiled optimizer."""

    def compared(**options: Any) -> Iterator[str]:
        found = steps(name, kwargs, cplx, lambda step: cd.compile(step, **options), whole)
        for number, due in enumerate(expected):
            got, error = attempt(lambda: next(found))
            if is_break(error):
                raise Broken(reason_of(error))
            difference = words(error) if error is not None else verdict.compared(got, due)
            if difference is not None:
                yield f"after step {number + 1}: {difference}"
                return

    try:
        yield from compared(fullgraph=True)
    except Broken as broken:
        verdict.breaks_for(str(broken))
        yield from (f"in segments: {difference}" for difference in compared())


def steps(
    name: str, kwargs: dict[str, Any], cplx: bool, compiled: Callable[[Any], Any], whole: bool = False
) -> Iterator[Any]:
    """Yield the parameters, the gradients and the tensors of the state after each step."""
    problem = Problem(cd, cplx, name == "Muon", name == "SparseAdam")
    optimizer = getattr(cd.optim, name)(problem.parameters, **numbers(cd, kwargs))
    closure = (problem.loss,) if name == "LBFGS" else ()

    def everything() -> None:
        problem.loss()
        optimizer.step(*closure)

    call = compiled(everything) if whole else compiled(optimizer.step)
    for _ in range(STEPS):
        if whole:
            call()
        else:
            problem.loss()
            call(*closure)
        gradients = [p.grad for p in problem.parameters]
        state = leaves(optimizer.state_dict()["state"], cd.Tensor)
        found = [*problem.parameters, *gradients, *state]
        yield [(t.to_dense() if t.is_sparse else t).detach().clone() for t in found if t is not None]

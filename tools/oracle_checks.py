"""What is compared of one operator: results, gradients, in-place and ``out=`` forms, aliases, errors.

PyTorch's own answer is the standard. Where values differ by more than PyTorch's tolerance in a narrow dtype, both are
held against PyTorch's answer in double precision: candelabra is right when no further from it than PyTorch (twice).
"""

from __future__ import annotations

import signal
import time
import unittest
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import candelabra as cd
import torch
from oracle_peer import UNSUPPORTED, Missing, counterpart, each, leaves, lookup, sharing, to_torch, translate
from oracle_values import (
    DTYPES,
    KNOWN,
    WIDE,
    Slow,
    attempt,
    described,
    structure_differs,
    torch_leaves,
    values_differ,
    widened,
    words,
)

GRADIENTS = (torch.float32, torch.float64, torch.complex64, torch.complex128)
"""Gradients in half precision are only noise in another order."""
RANDOM = frozenset({
    "bernoulli", "multinomial", "normal", "randn", "rand", "randint", "randperm", "randn_like", "rand_like",
    "randint_like", "uniform", "cauchy", "exponential", "geometric", "log_normal", "poisson", "binomial",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
})  # fmt: skip
"""Drawn from another generator: only dtype and shape are compared."""
UNINITIALISED = frozenset({
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"
})  # fmt: skip
"""Only dtype and shape are compared."""

TIED = frozenset({"sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian"})
"""Which of several equal elements an index means is left open unless ``stable=True``: what it picks is compared."""

RANDOMISED = frozenset({"svd_lowrank", "pca_lowrank"})
"""How near they come depends on numbers that are drawn: compared in double precision, where the rank is q for sure."""


@dataclass
class Limits:
    """How much is compared of each operator."""

    dtypes: tuple[str, ...] = DTYPES
    samples: int = 40
    seconds: float = 30.0
    differences: int = 8
    reference: bool = False
    """With PyTorch's larger sets: extremal values, other layouts, more shapes; they are not made for gradients."""


@dataclass
class Verdict:
    """What came out for one OpInfo."""

    name: str
    operator: str
    status: str = "right"
    """``right``, ``wrong``, ``missing``, ``unsupported``, or ``peer`` (PyTorch itself gives no answer)."""
    samples: int = 0
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0


def full_name(op: Any) -> str:
    """``norm.nuc``: the name and the variant of the test."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def judge(op: Any, limits: Limits) -> Verdict:
    """Compare one operator, within its time."""
    verdict = Verdict(full_name(op), op.name)
    if op.name.startswith(UNSUPPORTED) or type(op.op).__module__ == "torch._ops":  # a kernel by its ATen name
        verdict.status = "unsupported"
        return verdict
    started = time.monotonic()

    def ring(*_: object) -> None:
        raise Slow

    found: dict[str, tuple[dict[str, None], str]] = {}
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limits.seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype, difference, sample in differences(op, limits, verdict):
                known = found.get(difference)
                if known is None and len(found) >= limits.differences:
                    break
                found[difference] = (known[0] | {dtype: None}, known[1]) if known else ({dtype: None}, sample)
    except Missing as error:
        verdict.status = "missing"
        verdict.differences.append(f"no candelabra.{error}")
    except Slow:
        verdict.differences.append(f"not done within {limits.seconds:g} s")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    verdict.differences[:0] = [
        f"{', '.join(filter(None, dtypes))}: {difference}{sample and '; '}{sample}".removeprefix(": ")
        for difference, (dtypes, sample) in found.items()
    ]
    verdict.seconds = time.monotonic() - started
    if verdict.status == "right":
        verdict.status = "wrong" if verdict.differences else "right" if verdict.samples else "peer"
    return verdict


def differences(op: Any, limits: Limits, verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Every difference of one operator, in words: the dtype, the difference, the sample."""
    public = op.aten_name if op.name.startswith("_") and lookup(cd, op.name) is None else op.name
    ours = counterpart(op.op, op.name) if public == op.name or not lookup(cd, public) else lookup(cd, public)
    yield from (("", text, "") for text in missing_names(op))
    method = op.method_variant and counterpart(op.method_variant, f"Tensor.{op.name}")
    inplace = op.inplace_variant and counterpart(op.inplace_variant, f"Tensor.{op.name}_")
    backward = op.supported_backward_dtypes("cpu") if op.supports_autograd else ()
    for name in limits.dtypes:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu") or (op.name in RANDOMISED and dtype in WIDE):
            continue
        differentiable = (
            dtype in backward and dtype in GRADIENTS and not fails_itself(op, dtype) and not limits.reference
        )
        made = op.reference_inputs if limits.reference else op.sample_inputs
        samples = list(made("cpu", dtype, requires_grad=differentiable))
        for number, sample in enumerate(samples[:: max(1, -(-len(samples) // limits.samples))]):
            wanted, error = attempt(lambda: op.op(sample.input, *sample.args, **sample.kwargs))  # noqa: B023
            if error is not None or any(t.dtype not in KNOWN for t in torch_leaves(wanted)):
                continue  # PyTorch has no answer either, or one in complex32
            verdict.samples += 1
            checks = [lambda: result_differs(op, ours, sample, wanted)]  # noqa: B023
            if differentiable:
                checks.append(lambda: gradient_differs(op, ours, sample))  # noqa: B023
            if number < 3 and method:
                checks.append(lambda: method_differs(op, ours, method, sample, wanted))  # noqa: B023
            if number < 12 and inplace:
                checks.append(lambda: inplace_differs(op, ours, inplace, sample))  # noqa: B023
            if number < 6 and op.supports_out and op.name not in RANDOM:
                checks.append(lambda: out_differs(op, ours, sample, wanted))  # noqa: B023
            found, error = attempt(lambda: next(filter(None, (check() for check in checks)), None))  # noqa: B023
            found = found if error is None else f"compared with an error: {words(error)}"
            if found is not None:
                yield name, found, described(sample)
    yield from error_differs(op, ours)


def fails_itself(op: Any, dtype: torch.dtype) -> bool:
    """Whether PyTorch's gradient is known to be wrong: its own test against differences is expected to fail."""
    marks = [mark for mark in op.decorators if getattr(mark, "cls_name", "") == "TestBwdGradients"]
    return any(
        unittest.expectedFailure in mark.decorators
        and mark.is_active("TestBwdGradients", "test_fn_grad", "cpu", dtype, {})
        for mark in marks
    )


def missing_names(op: Any) -> Iterator[str]:
    """Aliases, methods and in-place methods that candelabra lacks."""
    for form in (op, *op.aliases):
        for theirs, path in ((form.method_variant, form.name), (form.inplace_variant, form.name + "_")):
            if theirs is not None and lookup(torch.Tensor, path) is not None and lookup(cd.Tensor, path) is None:
                yield f"Tensor.{path} is missing"
        if form is not op and lookup(cd, form.name.removeprefix("torch.")) is None:
            yield f"alias {form.name} is missing"


def result_differs(op: Any, ours: Any, sample: Any, wanted: Any) -> str | None:
    """Compare the result of a call."""
    got, error = attempt(lambda: ours(*translate((sample.input, *sample.args)), **translate(sample.kwargs)))
    if error is not None:
        return words(error)
    found = structure_differs(got, wanted)
    if found is None and has_values(op, sample):
        process = sample.output_process_fn_grad

        def reference() -> Any:
            return leaves(
                process(op.op(*widened((sample.input, *sample.args)), **widened(sample.kwargs))), torch.Tensor
            )

        found = values_differ(counterpart(process)(got), process(wanted), reference, tied(op, sample))
        if found is not None and as_its_reference(op, got, sample):
            found = None
    return found


def has_values(op: Any, sample: Any) -> bool:
    """Whether the result is determined by the arguments."""
    return op.name not in RANDOM | UNINITIALISED and (op.name not in RANDOMISED or sample.kwargs.get("M") is None)


def method_differs(op: Any, ours: Any, method: Any, sample: Any, wanted: Any) -> str | None:
    """Compare the method with PyTorch, unless it gives what the function gives."""
    arguments, keywords = (sample.input, *sample.args), sample.kwargs
    got, error = attempt(lambda: method(*translate(arguments), **translate(keywords)))
    if error is None and structure_differs(got, wanted) is None and as_function(ours, arguments, keywords, got):
        return None
    found = result_differs(op, method, sample, wanted)
    return None if found is None else "method: " + found


def as_its_reference(op: Any, got: Any, sample: Any) -> bool:
    """Whether the result is that of the function of NumPy or SciPy that PyTorch itself is tested against."""
    if op.ref is None or not isinstance(got, cd.Tensor):
        return False
    plain = sample.transform(lambda v: v.detach().double() if isinstance(v, torch.Tensor) else v).numpy()
    said, error = attempt(lambda: op.ref(plain.input, *plain.args, **plain.kwargs))
    if error is not None:
        return False
    mine = to_torch(got)
    truth, error = attempt(lambda: torch.as_tensor(said).to(mine.dtype).reshape(mine.shape))
    return error is None and torch.allclose(mine, truth, rtol=1e-5, atol=1e-7, equal_nan=True)


def tied(op: Any, sample: Any) -> torch.Tensor | None:
    """The input whose equal elements may be exchanged, None where the order is documented."""
    return sample.input if op.name in TIED and not sample.kwargs.get("stable") else None


def weights(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A gradient of the result that no symmetry hides behind."""
    count = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)
    return (torch.polar(1 + 0 * count, count) if dtype.is_complex else count.cos()).to(dtype)


def gradient_differs(op: Any, ours: Any, sample: Any) -> str | None:
    """Compare the gradients of a weighted sum of the result with respect to all inputs that ask for one."""

    def theirs(arguments: Any, keywords: Any) -> Any:
        inputs = [t for t in leaves((arguments, keywords), torch.Tensor) if t.requires_grad]
        out = sample.output_process_fn_grad(op.gradcheck_wrapper(op.op, *arguments, **keywords))
        outs = [t for t in leaves(out, torch.Tensor) if t.requires_grad]
        seeds = [weights(tuple(t.shape), t.dtype) for t in outs]
        grads = torch.autograd.grad(outs, inputs, seeds, allow_unused=True) if outs else [None] * len(inputs)
        return [torch.zeros_like(t) if g is None else g for g, t in zip(grads, inputs)]

    def mine() -> Any:
        arguments, keywords = translate((sample.input, *sample.args)), translate(sample.kwargs)
        inputs = [t for t in leaves((arguments, keywords), cd.Tensor) if t.requires_grad]
        out = counterpart(sample.output_process_fn_grad)(
            counterpart(op.gradcheck_wrapper)(ours, *arguments, **keywords)
        )
        outs = [t for t in leaves(out, cd.Tensor) if t.requires_grad]
        seeds = [translate(weights(tuple(t.shape), to_torch(t.dtype))) for t in outs]
        grads = cd.autograd.grad(outs, inputs, seeds, allow_unused=True) if outs else [None] * len(inputs)
        return [cd.zeros_like(t) if g is None else g for g, t in zip(grads, inputs)]

    wanted, error = attempt(lambda: theirs((sample.input, *sample.args), sample.kwargs))
    if error is not None:
        return None
    got, error = attempt(mine)
    if error is not None:
        return "gradient: " + words(error)
    found = structure_differs(got, wanted)
    if found is None and has_values(op, sample):
        found = values_differ(
            got, wanted, lambda: theirs(widened((sample.input, *sample.args)), widened(sample.kwargs))
        )
    return None if found is None else "gradient: " + found


def plain(value: Any) -> Any:
    """Arguments that do not ask for a gradient, in memory of their own."""
    return each(value, lambda t: t.detach().clone())


def inplace_differs(op: Any, ours: Any, inplace: Any, sample: Any) -> str | None:
    """Compare what the in-place method leaves in its tensor, or that it refuses where PyTorch's does."""
    arguments, keywords = (sample.input, *sample.args), sample.kwargs
    wanted, refusal = attempt(lambda: op.inplace_variant(*plain(arguments), **plain(keywords)))
    mine = translate(plain(arguments))
    got, error = attempt(lambda: inplace(*mine, **translate(plain(keywords))))
    if refusal is not None:
        return None if error is not None else f"in-place: PyTorch refuses: {words(refusal)}"
    if error is not None:
        return "in-place: " + words(error)
    if got is not mine[0]:
        return "in-place: does not return its tensor"
    found = structure_differs(got, wanted)
    if found is None and has_values(op, sample) and not as_function(ours, arguments, keywords, got):
        found = values_differ(got, wanted, lambda: torch_leaves(op.op(*widened(arguments), **widened(keywords))))
    return None if found is None else "in-place: " + found


def as_function(ours: Any, arguments: Any, keywords: Any, mine: Any) -> bool:
    """Whether another form gives what the function gives, which has been compared already."""
    again, error = attempt(lambda: ours(*translate(plain(arguments)), **translate(plain(keywords))))
    pairs = [] if error is not None else list(zip(leaves(again, cd.Tensor), leaves(mine, cd.Tensor)))
    values = [(to_torch(a), to_torch(b)) for a, b in pairs]
    return bool(values) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-6, atol=1e-12, equal_nan=True)
        for a, b in values
    )


def out_differs(op: Any, ours: Any, sample: Any, wanted: Any) -> str | None:
    """Compare what ``out=`` holds: of the right shape, of none yet, and that a wrong dtype is refused."""
    arguments, keywords = plain((sample.input, *sample.args)), plain(sample.kwargs)
    forms = [lambda t: torch.zeros_like(t), lambda t: t.new_empty(0)]
    if all(t.is_floating_point() for t in leaves(wanted, torch.Tensor)):
        forms.append(lambda t: torch.zeros_like(t, dtype=torch.int64))
    for form in forms:
        theirs = each(plain(wanted), form)
        mine = translate(theirs)
        _, refusal = attempt(lambda: op.op(*arguments, **keywords, out=theirs))  # noqa: B023
        got, error = attempt(lambda: ours(*translate(arguments), **translate(keywords), out=mine))  # noqa: B023
        if refusal is not None:
            if isinstance(refusal, RuntimeError) and error is None:
                return f"out=: PyTorch refuses: {words(refusal)}"
            continue
        if structure_differs(translate(theirs), wanted) is not None:
            continue  # PyTorch's own out= is not as its function
        if error is not None:
            return "out=: " + words(error)
        if isinstance(mine, cd.Tensor) and got is not mine:
            return "out=: does not return its tensor"
        found = structure_differs(mine, theirs)
        if found is None and has_values(op, sample) and not as_function(ours, arguments, keywords, mine):
            process = sample.output_process_fn_grad
            found = values_differ(
                counterpart(process)(mine),
                process(theirs),
                lambda: torch_leaves(sample.output_process_fn_grad(op.op(*widened(arguments), **widened(keywords)))),
                tied(op, sample),
            )
        if found is not None:
            return "out=: " + found
    return None


def error_differs(op: Any, ours: Any) -> Iterator[tuple[str, str, str]]:
    """Compare the class of the error that wrong arguments give."""
    if op.error_inputs_func is None:
        return
    for case in op.error_inputs("cpu"):
        sample, wanted = case.sample_input, case.error_type
        wanted = wanted if wanted.__module__ == "builtins" else RuntimeError
        arguments, unknown = attempt(lambda: sharing(((sample.input, *sample.args), sample.kwargs)))  # noqa: B023
        _, refusal = attempt(lambda: op.op(sample.input, *sample.args, **sample.kwargs))  # noqa: B023
        if unknown is not None or refusal is None:
            continue
        _, error = attempt(lambda: ours(*arguments[0], **arguments[1]))  # noqa: B023
        if not isinstance(error, wanted):
            found = "no error" if error is None else words(error)
            yield "errors", f"{found}, PyTorch: {words(refusal)}", described(sample)

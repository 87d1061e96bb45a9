"""The comparisons for one operator: results, gradients, in-place and ``out=`` forms, aliases, errors.

PyTorch's result is the standard. If values differ by more than PyTorch's tolerance in a narrow dtype, both are compared
with PyTorch's result in double precision: candelabra is right if its error is at most twice that of PyTorch
(``oracle_values.as_near``).
"""

from __future__ import annotations

import signal
import time
import unittest
import warnings
from collections.abc import Callable, Iterator
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
"""The dtypes of gradients. In half precision, rounding errors dominate."""
RANDOM = frozenset({
    "bernoulli", "multinomial", "normal", "randn", "rand", "randint", "randperm", "randn_like", "rand_like",
    "randint_like", "uniform", "cauchy", "exponential", "geometric", "log_normal", "poisson", "binomial",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout", "nn.functional.rrelu", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
})  # fmt: skip
"""Operators with random results of another generator: only dtype and shape are compared."""
DROPOUT: dict[str, Callable[[Any], float]] = {
    "nn.functional.scaled_dot_product_attention": lambda sample: sample.kwargs.get("dropout_p", 0.0),
    "nn.functional.multi_head_attention_forward": lambda sample: sample.args[9] if sample.kwargs["training"] else 0.0,
}
"""The probability of dropout in a sample. If it is positive, the results are random."""
UNINITIALISED = frozenset({
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"
})  # fmt: skip
"""Only dtype and shape are compared."""

TIED = frozenset({"sort", "argsort", "topk", "kthvalue", "mode", "median", "nanmedian"})
"""Operators whose index of equal elements is unspecified unless ``stable=True``: the selected elements are compared."""

RANDOMISED = frozenset({"svd_lowrank", "pca_lowrank"})
"""Operators whose error depends on random numbers: they are compared in double precision, if the rank is at most q."""


@dataclass
class Limits:
    """The limits of the comparison of each operator."""

    dtypes: tuple[str, ...] = DTYPES
    samples: int = 40
    seconds: float = 30.0
    differences: int = 8
    reference: bool = False
    """Whether to use PyTorch's larger sets: extremal values, other layouts, more shapes; these have no gradients."""


@dataclass
class Verdict:
    """The result for one OpInfo."""

    name: str
    operator: str
    status: str = "right"
    """``right``, ``wrong``, ``missing``, ``unsupported``, or ``peer`` (PyTorch itself has no result)."""
    samples: int = 0
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0


def full_name(op: Any) -> str:
    """Return the name and the variant of the test, such as ``norm.nuc``."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def judge(op: Any, limits: Limits) -> Verdict:
    """Compare one operator within the time limit, which is CPU time: a busy machine changes no verdict."""
    verdict = Verdict(full_name(op), op.name)
    if op.name.startswith(UNSUPPORTED) or type(op.op).__module__ == "torch._ops":  # a kernel with an ATen name
        verdict.status = "unsupported"
        return verdict
    started = time.process_time()

    def ring(*_: object) -> None:
        raise Slow

    found: dict[str, tuple[dict[str, None], str]] = {}
    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
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
        verdict.differences.append(f"not done within {limits.seconds:g} s of CPU time")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    verdict.differences[:0] = [
        f"{', '.join(filter(None, dtypes))}: {difference}{sample and '; '}{sample}".removeprefix(": ")
        for difference, (dtypes, sample) in found.items()
    ]
    verdict.seconds = time.process_time() - started
    if verdict.status == "right":
        verdict.status = "wrong" if verdict.differences else "right" if verdict.samples else "peer"
    return verdict


def differences(op: Any, limits: Limits, verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Yield every difference of one operator: the dtype, the difference, the sample."""
    public = op.aten_name if op.name.startswith("_") and lookup(cd, op.name) is None else op.name
    function = counterpart(op.op, op.name) if public == op.name or not lookup(cd, public) else lookup(cd, public)
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
            expected, error = attempt(lambda: op.op(sample.input, *sample.args, **sample.kwargs))  # noqa: B023
            if error is not None or any(t.dtype not in KNOWN for t in torch_leaves(expected)):
                continue  # PyTorch has no result either, or one in complex32
            verdict.samples += 1
            checks = [lambda: result_differs(op, function, sample, expected)]  # noqa: B023
            if differentiable:
                checks.append(lambda: gradient_differs(op, function, sample))  # noqa: B023
            if number < 3 and method:
                checks.append(lambda: method_differs(op, function, method, sample, expected))  # noqa: B023
            if number < 12 and inplace:
                checks.append(lambda: inplace_differs(op, function, inplace, sample))  # noqa: B023
            if number < 6 and op.supports_out and op.name not in RANDOM:
                checks.append(lambda: out_differs(op, function, sample, expected))  # noqa: B023
            found, error = attempt(lambda: next(filter(None, (check() for check in checks)), None))  # noqa: B023
            found = found if error is None else f"compared with an error: {words(error)}"
            if found is not None:
                yield name, found, described(sample)
    yield from error_differs(op, function)


def fails_itself(op: Any, dtype: torch.dtype) -> bool:
    """Return whether PyTorch's gradient is known to be wrong: its own test against differences is expected to fail."""
    marks = [mark for mark in op.decorators if getattr(mark, "cls_name", "") == "TestBwdGradients"]
    return any(
        unittest.expectedFailure in mark.decorators
        and mark.is_active("TestBwdGradients", "test_fn_grad", "cpu", dtype, {})
        for mark in marks
    )


def missing_names(op: Any) -> Iterator[str]:
    """Return aliases, methods and in-place methods that candelabra lacks."""
    for form in (op, *op.aliases):
        for peer_form, path in ((form.method_variant, form.name), (form.inplace_variant, form.name + "_")):
            if peer_form is not None and lookup(torch.Tensor, path) is not None and lookup(cd.Tensor, path) is None:
                yield f"Tensor.{path} is missing"
        if form is not op and lookup(cd, form.name.removeprefix("torch.")) is None:
            yield f"alias {form.name} is missing"


def result_differs(op: Any, function: Any, sample: Any, expected: Any) -> str | None:
    """Compare the result of a call."""
    got, error = attempt(lambda: function(*translate((sample.input, *sample.args)), **translate(sample.kwargs)))
    if error is not None:
        return words(error)
    found = structure_differs(got, expected)
    if found is None and has_values(op, sample):
        process = sample.output_process_fn_grad

        def reference() -> Any:
            return leaves(
                process(op.op(*widened((sample.input, *sample.args)), **widened(sample.kwargs))), torch.Tensor
            )

        found = values_differ(counterpart(process)(got), process(expected), reference, tied(op, sample))
        if found is not None and as_its_reference(op, got, sample):
            found = None
    return found


def has_values(op: Any, sample: Any) -> bool:
    """Return whether the result is determined by the arguments."""
    if op.name in RANDOM | UNINITIALISED or (op.name in DROPOUT and DROPOUT[op.name](sample)):
        return False
    return op.name not in RANDOMISED or sample.kwargs.get("M") is None


def method_differs(op: Any, function: Any, method: Any, sample: Any, expected: Any) -> str | None:
    """Compare the method with PyTorch, unless its result equals that of the function."""
    arguments, keywords = (sample.input, *sample.args), sample.kwargs
    got, error = attempt(lambda: method(*translate(arguments), **translate(keywords)))
    if error is None and structure_differs(got, expected) is None and as_function(function, arguments, keywords, got):
        return None
    found = result_differs(op, method, sample, expected)
    return None if found is None else "method: " + found


def as_its_reference(op: Any, got: Any, sample: Any) -> bool:
    """Return whether the result is that of the function of NumPy or SciPy that PyTorch itself is tested against."""
    if op.ref is None or not isinstance(got, cd.Tensor):
        return False
    plain = sample.transform(lambda v: v.detach().double() if isinstance(v, torch.Tensor) else v).numpy()
    said, error = attempt(lambda: op.ref(plain.input, *plain.args, **plain.kwargs))
    if error is not None:
        return False
    actual = to_torch(got)
    truth, error = attempt(lambda: torch.as_tensor(said).to(actual.dtype).reshape(actual.shape))
    return error is None and torch.allclose(actual, truth, rtol=1e-5, atol=1e-7, equal_nan=True)


def tied(op: Any, sample: Any) -> torch.Tensor | None:
    """Return the input whose equal elements may be exchanged, or None if the order is documented."""
    return sample.input if op.name in TIED and not sample.kwargs.get("stable") else None


def weights(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a gradient of the result without symmetries."""
    count = torch.arange(torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)
    return (torch.polar(1 + 0 * count, count) if dtype.is_complex else count.cos()).to(dtype)


def gradient_differs(op: Any, function: Any, sample: Any) -> str | None:
    """Compare the gradients of a weighted sum of the result with respect to all inputs that require one."""

    def peer_result(arguments: Any, keywords: Any) -> Any:
        inputs = [t for t in leaves((arguments, keywords), torch.Tensor) if t.requires_grad]
        out = sample.output_process_fn_grad(op.gradcheck_wrapper(op.op, *arguments, **keywords))
        outs = [t for t in leaves(out, torch.Tensor) if t.requires_grad]
        seeds = [weights(tuple(t.shape), t.dtype) for t in outs]
        grads = torch.autograd.grad(outs, inputs, seeds, allow_unused=True) if outs else [None] * len(inputs)
        return [torch.zeros_like(t) if g is None else g for g, t in zip(grads, inputs)]

    def actual() -> Any:
        arguments, keywords = translate((sample.input, *sample.args)), translate(sample.kwargs)
        inputs = [t for t in leaves((arguments, keywords), cd.Tensor) if t.requires_grad]
        out = counterpart(sample.output_process_fn_grad)(
            counterpart(op.gradcheck_wrapper)(function, *arguments, **keywords)
        )
        outs = [t for t in leaves(out, cd.Tensor) if t.requires_grad]
        seeds = [translate(weights(tuple(t.shape), to_torch(t.dtype))) for t in outs]
        grads = cd.autograd.grad(outs, inputs, seeds, allow_unused=True) if outs else [None] * len(inputs)
        return [cd.zeros_like(t) if g is None else g for g, t in zip(grads, inputs)]

    expected, error = attempt(lambda: peer_result((sample.input, *sample.args), sample.kwargs))
    if error is not None:
        return None
    got, error = attempt(actual)
    if error is not None:
        return "gradient: " + words(error)
    found = structure_differs(got, expected)
    if found is None and has_values(op, sample):
        found = values_differ(
            got, expected, lambda: peer_result(widened((sample.input, *sample.args)), widened(sample.kwargs))
        )
    return None if found is None else "gradient: " + found


def plain(value: Any) -> Any:
    """Return copies of the arguments that do not require a gradient."""
    return each(value, lambda t: t.detach().clone())


def inplace_differs(op: Any, function: Any, inplace: Any, sample: Any) -> str | None:
    """Compare the result of the in-place method, or its error if PyTorch's method raises one."""
    arguments, keywords = (sample.input, *sample.args), sample.kwargs
    expected, refusal = attempt(lambda: op.inplace_variant(*plain(arguments), **plain(keywords)))
    actual = translate(plain(arguments))
    got, error = attempt(lambda: inplace(*actual, **translate(plain(keywords))))
    if refusal is not None:
        return None if error is not None else f"in-place: PyTorch refuses: {words(refusal)}"
    if error is not None:
        return "in-place: " + words(error)
    if got is not actual[0]:
        return "in-place: does not return its tensor"
    found = structure_differs(got, expected)
    if found is None and has_values(op, sample) and not as_function(function, arguments, keywords, got):
        found = values_differ(got, expected, lambda: torch_leaves(op.op(*widened(arguments), **widened(keywords))))
    return None if found is None else "in-place: " + found


def as_function(function: Any, arguments: Any, keywords: Any, actual: Any) -> bool:
    """Return whether another form has the result of the function, which has been compared already."""
    again, error = attempt(lambda: function(*translate(plain(arguments)), **translate(plain(keywords))))
    pairs = [] if error is not None else list(zip(leaves(again, cd.Tensor), leaves(actual, cd.Tensor)))
    values = [(to_torch(a), to_torch(b)) for a, b in pairs]
    return bool(values) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-6, atol=1e-12, equal_nan=True)
        for a, b in values
    )


def out_differs(op: Any, function: Any, sample: Any, expected: Any) -> str | None:
    """Compare the results in ``out=`` of the right shape and of an empty one, and the error for a wrong dtype."""
    arguments, keywords = plain((sample.input, *sample.args)), plain(sample.kwargs)
    forms = [lambda t: torch.zeros_like(t), lambda t: t.new_empty(0)]
    if all(t.is_floating_point() for t in leaves(expected, torch.Tensor)):
        forms.append(lambda t: torch.zeros_like(t, dtype=torch.int64))
    for form in forms:
        peer_result = each(plain(expected), form)
        actual = translate(peer_result)
        _, refusal = attempt(lambda: op.op(*arguments, **keywords, out=peer_result))  # noqa: B023
        got, error = attempt(lambda: function(*translate(arguments), **translate(keywords), out=actual))  # noqa: B023
        if refusal is not None:
            if isinstance(refusal, RuntimeError) and error is None:
                return f"out=: PyTorch refuses: {words(refusal)}"
            continue
        if structure_differs(translate(peer_result), expected) is not None:
            continue  # PyTorch's out= form differs from its function
        if error is not None:
            return "out=: " + words(error)
        if isinstance(actual, cd.Tensor) and got is not actual:
            return "out=: does not return its tensor"
        found = structure_differs(actual, peer_result)
        if found is None and has_values(op, sample) and not as_function(function, arguments, keywords, actual):
            process = sample.output_process_fn_grad
            found = values_differ(
                counterpart(process)(actual),
                process(peer_result),
                lambda: torch_leaves(sample.output_process_fn_grad(op.op(*widened(arguments), **widened(keywords)))),
                tied(op, sample),
            )
        if found is not None:
            return "out=: " + found
    return None


def error_differs(op: Any, function: Any) -> Iterator[tuple[str, str, str]]:
    """Compare the class of the error for wrong arguments."""
    if op.error_inputs_func is None:
        return
    for case in op.error_inputs("cpu"):
        sample, expected = case.sample_input, case.error_type
        expected = expected if expected.__module__ == "builtins" else RuntimeError
        arguments, unknown = attempt(lambda: sharing(((sample.input, *sample.args), sample.kwargs)))  # noqa: B023
        _, refusal = attempt(lambda: op.op(sample.input, *sample.args, **sample.kwargs))  # noqa: B023
        if unknown is not None or refusal is None:
            continue
        _, error = attempt(lambda: function(*arguments[0], **arguments[1]))  # noqa: B023
        if not isinstance(error, expected):
            found = "no error" if error is None else words(error)
            yield "errors", f"{found}, PyTorch: {words(refusal)}", described(sample)

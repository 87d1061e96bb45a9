"""Compare candelabra's modules with PyTorch's, with the samples in PyTorch's own wheel.

``python tools/oracle_modules.py [NAME...]`` (with a Python that has both, such as that of ``make oracle``) makes every
module of ``torch.testing._internal.common_modules.module_db`` in both libraries, for training and for evaluation, in
float32 and float64. It compares base classes, names of arguments and attributes, printed forms, keys and metadata of
the state, results and gradients from the same parameters, buffers afterwards, copies and pickles, initial values, and
the errors of ``module_db``. A module passes if there is no difference.
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import functools
import inspect
import pickle  # noqa: TID251 - modules of users are pickled
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import candelabra as cd
import torch
from oracle_checks import weights
from oracle_journal import Journal
from oracle_peer import (
    CALLS,
    Missing,
    counterpart,
    leaves,
    module_like,
    namesake,
    public_names,
    record_modules,
    to_torch,
    translate,
)
from oracle_values import attempt, structure_differs, values_differ, widened, words
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

RANDOM = ("Dropout", "RReLU", "FractionalMaxPool")
"""Parts of the names of modules whose results in training are random: only dtypes and shapes are compared."""
DRAWS = 5.0
"""By how many standard errors the mean square of initial values may differ."""
COPIES: dict[int, tuple[torch.Tensor, cd.Tensor]] = {}
"""By ``id``: the tensors of a sample and their copies. A tensor that is two arguments remains one."""


def converted(value: Any) -> Any:
    """Return arguments for candelabra, with modules made from the same arguments and with the same parameters."""
    if isinstance(value, torch.nn.Module):
        return module_like(value, converted)
    if isinstance(value, type) and value.__module__.startswith("torch.nn"):
        return namesake(value)
    if isinstance(value, torch.Tensor):
        return COPIES.setdefault(id(value), (value, translate(value)))[1]
    if isinstance(value, (list, tuple)):
        return type(value)(*map(converted, value)) if hasattr(value, "_fields") else type(value)(map(converted, value))
    if isinstance(value, dict):
        return {key: converted(part) for key, part in value.items()}
    if callable(value) and id(value) not in public_names():
        return counterpart(value)
    return translate(value)


def seeded(state: int) -> None:
    """Seed both generators."""
    torch.manual_seed(state)
    cd.manual_seed(state)


def printed(module: Any) -> str:
    """Return the printed form in words that both libraries share."""
    return re.sub(r"<function .*?>|<bound method .*?>", "<function>", repr(module)).replace("candelabra.", "torch.")


def state_differs(module: Any, peer: Any) -> str | None:
    """Compare the names, shapes, dtypes, order and versions of two states."""
    state, standard = module.state_dict(), peer.state_dict()
    if list(state) != list(standard):
        return f"state_dict keys {list(state)}, PyTorch's are {list(standard)}"
    if state._metadata != standard._metadata:
        return f"state_dict metadata {state._metadata}, PyTorch's is {standard._metadata}"
    known = [k for k, t in standard.items() if torch.is_tensor(t) and not torch.nn.parameter.is_lazy(t)]
    return next(filter(None, (structure_differs(state[k], standard[k]) for k in known)), None)


def initial_values_differ(module: Any, peer: Any) -> str | None:
    """Compare the mean squares of parameters with many elements: the scale of the initialization."""
    for (name, a), b in zip(peer.named_parameters(), module.parameters(), strict=True):
        if isinstance(a, torch.nn.parameter.UninitializedParameter) or a.numel() < 8:
            continue
        standard, got = (x.detach().double().square() for x in (a, to_torch(b)))
        error = (standard.var() + got.var()).sqrt() / a.numel() ** 0.5
        if float((standard.mean() - got.mean()).abs()) > DRAWS * float(error) + 1e-12:
            return f"initial {name}: mean square {float(got.mean()):.3g}, PyTorch's is {float(standard.mean()):.3g}"
    return None


def gradients(library: Any, module: Any, out: Any, inputs: list[Any]) -> list[Any]:
    """Return the gradients of a weighted sum of the result with respect to inputs and parameters, zeros for None."""
    kind = torch.Tensor if library is torch else cd.Tensor
    outs = [t for t in leaves(out, kind) if t.requires_grad]
    sources = [t for t in [*inputs, *module.parameters()] if t.requires_grad]
    if not outs or not sources:
        return []
    seeds = [weights(tuple(t.shape), to_torch(t.dtype)) for t in outs]
    seeds = seeds if library is torch else [translate(seed) for seed in seeds]
    found = library.autograd.grad(outs, sources, seeds, allow_unused=True)
    return [library.zeros_like(t) if g is None else g for g, t in zip(found, sources, strict=True)]


def class_differs(cls: type) -> Iterator[str]:
    """Yield the public classes that only one of two namesakes is a subclass of, and arguments that one lacks."""
    ours = namesake(cls)
    for other in vars(torch.nn).values():
        if isinstance(other, type) and issubclass(other, torch.nn.Module):
            found, expected = issubclass(ours, namesake(other)), issubclass(cls, other)
            if found != expected:
                yield f"is {'a' if found else 'no'} {other.__name__}, PyTorch's is {'a' if expected else 'no'}"
    for method in ("__init__", "forward"):
        names, standard = (list(inspect.signature(getattr(c, method)).parameters) for c in (ours, cls))
        if lacking := [name for name in standard if name not in (*names, "args", "kwargs")]:
            yield f"{method} lacks {', '.join(lacking)}"


def sample_differs(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> Iterator[str]:
    """Yield the differences of one sample: construction, state, initial values, then those of the calls."""
    seeded(0)
    COPIES.clear()
    arguments, keywords = sample.constructor_input.args, sample.constructor_input.kwargs
    peer = info.module_cls(*arguments, **keywords).to(dtype).train(training)
    module = (
        namesake(info.module_cls)(*converted(arguments), **converted(keywords)).to(translate(dtype)).train(training)
    )
    if printed(module) != printed(peer):
        yield f"prints {printed(module)!r}, PyTorch {printed(peer)!r}"
    if lacking := [name for name in dir(peer) if name[0] != "_" and not hasattr(module, name)]:
        yield f"lacks {', '.join(lacking)}"
    yield from filter(None, (state_differs(module, peer),))
    if sample.forward_input is None:
        return
    inputs = sample.forward_input.args, sample.forward_input.kwargs
    copied = converted(inputs)
    if info.is_lazy:
        peer(*inputs[0], **inputs[1]), module(*copied[0], **copied[1])
        if type(module).__name__ != type(peer).__name__:
            yield f"becomes {type(module).__name__}, PyTorch's {type(peer).__name__}"
        yield from filter(None, (state_differs(module, peer),))
    yield from filter(None, (initial_values_differ(module, peer),))
    module.load_state_dict({k: translate(t) for k, t in peer.state_dict().items()})
    yield from calls_differ(module, peer, copied, inputs)


def calls_differ(module: Any, peer: Any, copied: Any, inputs: Any) -> Iterator[str]:
    """Yield the differences of two modules with the same state: result, pickled copy, gradients, buffers."""
    again = pickle.loads(pickle.dumps(copy.deepcopy(module)))  # noqa: S301
    wide, wide_inputs = copy.deepcopy(peer).double(), widened(inputs)

    def reference() -> list[torch.Tensor]:
        return leaves(wide(*wide_inputs[0], **wide_inputs[1]), torch.Tensor)

    def reference_gradients() -> list[torch.Tensor]:
        out = wide(*wide_inputs[0], **wide_inputs[1])
        return gradients(torch, wide, out, leaves(wide_inputs, torch.Tensor))

    expected, refusal = attempt(lambda: peer(*inputs[0], **inputs[1]))
    if refusal is not None:
        return
    got = module(*copied[0], **copied[1])
    drawn = peer.training and any(part in repr(peer) for part in RANDOM)
    found = structure_differs(got, expected) or (None if drawn else values_differ(got, expected, reference))
    if found is not None:
        yield found
        return
    standard = gradients(torch, peer, expected, leaves(inputs, torch.Tensor))
    actual = gradients(cd, module, got, leaves(copied, cd.Tensor))
    if len(standard) != len(actual):
        yield f"{len(actual)} tensors require a gradient, PyTorch has {len(standard)}"
    elif not drawn:
        pairs = {
            "pickled copy": (again(*copied[0], **copied[1]), expected, reference),
            "gradient": (actual, standard, reference_gradients),
            "buffers": (list(module.buffers()), list(peer.buffers()), list),
        }
        for name, (value, other, truth) in pairs.items():
            found = values_differ(value, other, truth)
            yield from filter(None, (found and f"{name}: {found}",))


def provoke(cls: Any, case: Any, dtype: Any, training: bool, convert: Callable[[Any], Any]) -> None:
    """Make and call a module as a case of ``module_db`` that shall raise an error.

    A module without parameters keeps the dtypes of its arguments, which may be the error.
    """
    construction, call = case.module_error_input.constructor_input, case.module_error_input.forward_input
    made = cls(*convert(construction.args), **convert(construction.kwargs))
    if next(made.parameters(), None) is not None:
        made.to(dtype)
    made.train(training)
    if case.error_on is ModuleErrorEnum.FORWARD_ERROR:
        made(*convert(call.args), **convert(call.kwargs))


def error_differs(info: Any, dtype: torch.dtype, training: bool) -> Iterator[str]:
    """Yield the errors of ``module_db`` that PyTorch raises and candelabra does not."""
    if info.module_error_inputs_func is None:
        return
    cases = info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=training)
    cls = namesake(info.module_cls)
    for case in cases:
        kind = case.error_type if case.error_type.__module__ == "builtins" else Exception
        _, refusal = attempt(functools.partial(provoke, info.module_cls, case, dtype, training, lambda value: value))
        if refusal is None:
            continue
        pattern = case.error_regex if re.search(case.error_regex, str(refusal)) else re.escape(str(refusal))
        _, error = attempt(functools.partial(provoke, cls, case, translate(dtype), training, converted))
        if error is None or not isinstance(error, kind) or not re.search(pattern, str(error)):
            said = "no error" if error is None else words(error)
            yield f"{said}; PyTorch: {kind.__name__}: {pattern}"


def judge(info: Any) -> tuple[str, int, list[str]]:
    """Return the status of a module, the number of its samples, and its differences."""
    differences, error = attempt(lambda: list(class_differs(info.module_cls)))
    found = dict.fromkeys(differences or ([words(error)] if error else []))
    samples = 0
    for dtype in (torch.float32, torch.float64):
        if dtype not in info.dtypes:
            continue
        for training in (True, False):
            made = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
            for sample in made:
                samples += 1

                def check(sample: Any = sample, dtype: Any = dtype, training: bool = training) -> list[str]:
                    return list(sample_differs(info, sample, dtype, training))

                try:
                    differences, error = attempt(check)
                except Missing as absent:
                    return "missing", 0, [f"no candelabra.{absent}"]
                told = differences or ([words(error)] if error else [])
                found |= dict.fromkeys(f"{sample.desc and sample.desc + ': '}{text}" for text in told)
            found |= dict.fromkeys(error_differs(info, dtype, training))
    return "wrong" if found else "right", samples, list(found)


def main() -> int:
    """Run and print. Return 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: Linear, 'Lazy*'")
    parser.add_argument("--differences", type=int, default=6, help="at most so many printed per module (6)")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write each verdict there as it comes, and go on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    record_modules()
    journal = Journal(options.journal, {})
    counts: Counter[str] = Counter()
    for info in module_db:
        name = info.module_cls.__name__
        if options.names and not any(fnmatch.fnmatch(name, pattern) for pattern in options.names):
            continue
        if name not in journal.verdicts:
            journal.record(name, judge(info))
            CALLS.clear()
        status, samples, differences = journal.verdicts[name]
        counts[status] += 1
        print(f"{name}: {status} ({samples} samples)", flush=True)
        print("".join(f"    {text[:400]}\n" for text in differences[: options.differences]), end="")
    share = 100 * counts["right"] / max(1, counts.total())
    print(f"of {counts.total()} modules, {counts['right']} wholly right ({share:.1f} %); {dict(counts)}")
    return int(counts["right"] < counts.total())


if __name__ == "__main__":
    sys.exit(main())

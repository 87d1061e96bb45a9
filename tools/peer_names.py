"""Write which public names of PyTorch exist in candelabra, namespace by namespace.

``python tools/peer_names.py --report FILE`` (with a Python that has both, such as that of ``make oracle``). A name is
public if PyTorch's ``__all__`` lists it; a namespace without one has its functions, classes and objects that are
PyTorch's own and do not begin with an underscore. A name exists if candelabra has an attribute of that name there.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import platform
import types
import warnings
from pathlib import Path
from typing import Any

import candelabra
import torch

NAMESPACES = (
    "torch", "Tensor", "accelerator", "amp", "amp.autocast_mode", "amp.grad_scaler", "autograd",
    "autograd.anomaly_mode",
    "autograd.forward_ad", "autograd.function", "autograd.functional", "autograd.grad_mode", "autograd.gradcheck",
    "autograd.graph", "autograd.profiler", "backends", "backends.cpu", "backends.cuda", "backends.cudnn",
    "backends.mkl", "backends.mkldnn", "backends.mps", "backends.openmp", "backends.opt_einsum", "compiler", "cpu",
    "cuda", "cuda.amp", "distributed", "distributions", "distributions.constraint_registry",
    "distributions.constraints", "distributions.kl", "distributions.transforms", "distributions.utils", "fft", "func",
    "hub", "jit", "library", "linalg", "masked", "mps", "multiprocessing", "nested", "nn", "nn.attention",
    "nn.attention.bias", "nn.functional", "nn.grad", "nn.init", "nn.modules", "nn.modules.activation",
    "nn.modules.adaptive", "nn.modules.batchnorm", "nn.modules.channelshuffle", "nn.modules.container",
    "nn.modules.conv", "nn.modules.distance", "nn.modules.dropout", "nn.modules.flatten", "nn.modules.fold",
    "nn.modules.instancenorm", "nn.modules.lazy", "nn.modules.linear", "nn.modules.loss", "nn.modules.module",
    "nn.modules.normalization", "nn.modules.padding", "nn.modules.pixelshuffle", "nn.modules.pooling",
    "nn.modules.rnn", "nn.modules.sparse", "nn.modules.transformer", "nn.modules.upsampling", "nn.modules.utils",
    "nn.parallel", "nn.parameter", "nn.utils", "nn.utils.clip_grad", "nn.utils.convert_parameters",
    "nn.utils.fusion", "nn.utils.init", "nn.utils.memory_format", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "nn.utils.spectral_norm", "nn.utils.stateless",
    "nn.utils.weight_norm", "onnx", "optim", "optim.adadelta", "optim.adagrad", "optim.adam", "optim.adamax",
    "optim.adamw", "optim.asgd", "optim.lbfgs", "optim.lr_scheduler", "optim.nadam", "optim.optimizer", "optim.radam",
    "optim.rmsprop", "optim.rprop", "optim.sgd", "optim.sparse_adam", "optim.swa_utils", "overrides", "profiler",
    "quantization", "random", "serialization", "signal.windows", "sparse", "special", "testing", "types",
    "utils.checkpoint", "utils.data", "utils.data.dataloader", "utils.data.dataset", "utils.data.distributed",
    "utils.data.sampler", "utils.data._utils.collate", "utils.dlpack", "utils.hooks", "version",
    "xpu",
)  # fmt: skip
"""PyTorch's namespaces that programs use, without the prefix ``torch``."""

INTERNAL = ("cudnn_", "fbgemm_", "miopen_", "mkldnn_", "quantized_", "sym_")
"""Prefixes of functions that PyTorch's own code calls: kernels of one library, and sizes while it traces."""


def namespace_of(package: Any, namespace: str) -> Any:
    """Return the namespace of a package, or None if it has no such module or class."""
    if namespace == "torch":
        return package
    if namespace == "Tensor":
        return package.Tensor
    try:
        return importlib.import_module(f"{package.__name__}.{namespace}")
    except ImportError:  # some are objects, such as backends.cpu
        owner: Any = package
        for part in namespace.split("."):
            owner = getattr(owner, part, None)
        return owner


def has(owner: Any, name: str) -> bool:
    """Return whether an object has an attribute. For Tensor, an instance's attributes count."""
    try:
        return owner is not None and hasattr(candelabra.tensor(0.0) if owner is candelabra.Tensor else owner, name)
    except (RuntimeError, ImportError):  # the attribute is there and needs a device or a package
        return True


def public(owner: Any) -> list[str]:
    """Return the public names of a namespace of PyTorch."""
    if inspect.isclass(owner):
        return sorted(n for n in dir(owner) if not n.startswith("_") and not hasattr(object, n))
    listed = getattr(owner, "__all__", None)
    names = list(listed) if listed else [n for n in vars(owner) if is_own(owner, getattr(owner, n))]
    return sorted(
        {n for n in names if not n.startswith(("_", *INTERNAL)) and has(owner, n) and not is_internal(owner, n)}
    )


def is_internal(owner: Any, name: str) -> bool:
    """Return whether a name is listed but not of the interface: a module, or a class of TorchScript's compiler."""
    value = getattr(owner, name)
    binding = "pybind11_builtins"
    return isinstance(value, types.ModuleType) or binding in (type(value).__module__, type(type(value)).__module__)


def is_own(owner: Any, value: Any) -> bool:
    """Return whether a value that a module without ``__all__`` holds is part of its interface."""
    if isinstance(value, types.ModuleType) or not (callable(value) or isinstance(value, torch.dtype)):
        return False
    home = getattr(value, "__module__", None) or ""
    return home.startswith(owner.__name__) or (inspect.isbuiltin(value) and home.startswith("torch"))


def refuses(owner: Any, name: str) -> bool:
    """Return whether a name is a function of ``candelabra._absent``, which only raises what is missing."""
    code = getattr(getattr(owner, name, None), "__code__", None)
    return code is not None and Path(code.co_filename).name == "_absent.py"


def compared() -> list[tuple[str, int, list[str], int]]:
    """Return each namespace, the number of its public names, those that candelabra has not, and how many refuse."""
    rows = []
    for namespace in NAMESPACES:
        theirs, ours = namespace_of(torch, namespace), namespace_of(candelabra, namespace)
        if theirs is None:
            raise SystemExit(f"peer_names: PyTorch {torch.__version__} has no {namespace}")
        names = public(theirs)
        absent = [n for n in names if not has(ours, n)]
        rows.append((namespace, len(names), absent, sum(refuses(ours, n) for n in names if n not in absent)))
    return rows


def markdown(rows: list[tuple[str, int, list[str], int]]) -> str:
    """Return the report."""
    total, missing = sum(r[1] for r in rows), sum(len(r[2]) for r in rows)
    lines = [
        "# PyTorch's names in candelabra",
        "",
        f"candelabra {candelabra.__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}. "
        "Written by `make oracle`.",
        "",
        "The public names of PyTorch's modules and of Tensor (those of `__all__`, or, where a module has none, its own",
        "functions and classes), and which of them candelabra has. Classes of TorchScript's compiler and kernels of",
        "single libraries (`cudnn_convolution`) are not counted. Values are not compared here: [the",
        "oracle](oracle.md) does. Some functions exist because programs import them, and raise an error that says what",
        "is missing, such as the export to ONNX: see [what is not supported](../not-supported.md).",
        "",
        f"**{total - missing} of {total} names exist ({100 * (total - missing) / total:.1f} %); "
        f"{sum(r[3] for r in rows)} of them only raise.**",
        "",
        "| namespace | names | exist | only raise | missing |",
        "|---|---:|---:|---:|---|",
    ]
    for namespace, count, absent, refusing in rows:
        shown = ", ".join(f"`{name}`" for name in absent) if len(absent) < count else "all" if count else ""
        lines.append(f"| `{namespace}` | {count} | {count - len(absent)} | {refusing or ''} | {shown} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Print the totals, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table there, as Markdown")
    report = parser.parse_args().report
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names are names, too
        rows = compared()
    for namespace, count, absent, _ in rows:
        print(f"{namespace:34}{count - len(absent):5} of {count:5}")
    if report is not None:
        report.write_text(markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main()

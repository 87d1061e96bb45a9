"""Networks of LuaTorch (``.t7`` files) as modules of candelabra, with their weights.

``candelabra.load`` reads such a file as plain data: a module of LuaTorch's nn is a dict of its fields, with the name of
its class under ``"__class__"``. Here these dicts become modules. The classes and their fields are those of torch/nn
(the files ``<class>.lua``); classes of cunn and cudnn have the same fields. Lua counts dims and classes from 1, modules
here from 0: an embedding that a LookupTable became takes indices from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from candelabra import Tensor
from candelabra.serialization import load

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module

__all__ = ["load_lua", "module_from_lua"]

Fields = dict[str, Any]
CLASS = "__class__"
MAX_DEPTH = 100
PACKAGES = ("nn.", "cudnn.", "cunn.", "inn.")


def load_lua(f: Any, map_location: object = None) -> Any:
    """Load a ``.t7`` file, with modules for the networks in it.

    Raises as ``candelabra.load``, and ``ValueError`` as :func:`module_from_lua`.
    """
    return module_from_lua(load(f, map_location))


def module_from_lua(obj: Any) -> Any:
    """Return what ``candelabra.load`` returned for a ``.t7`` file with modules in place of the networks.

    A module that occurs twice is one module. Modules of a network in evaluation are in evaluation. Inputs are batches.
    Raises ``ValueError`` for a layer that is not known, or that lacks a field; the error names the path of the layer.
    """
    return _converted(obj, "obj", {}, ())


def _converted(obj: Any, path: str, known: dict[int, Any], around: tuple[int, ...]) -> Any:
    if not isinstance(obj, list | dict):
        return obj
    if id(obj) in known:
        return known[id(obj)]
    if id(obj) in around:
        raise ValueError(f"{path}: a container that contains itself")
    if len(around) >= MAX_DEPTH:
        raise ValueError(f"{path:.200}: containers are nested more than {MAX_DEPTH} deep")
    within = (*around, id(obj))
    if isinstance(obj, list):
        found: Any = [_converted(item, f"{path}[{i}]", known, within) for i, item in enumerate(obj)]
    elif str(obj.get(CLASS, "")).startswith(PACKAGES):
        found = _module(obj, path, known, within)
    else:
        found = {key: _converted(item, f"{path}[{key!r}]", known, within) for key, item in obj.items()}
    known[id(obj)] = found
    return found


def _module(fields: Fields, path: str, known: dict[int, Any], around: tuple[int, ...]) -> Module:
    """Return the module of one layer."""
    kind = fields[CLASS].partition(".")[2]
    children = [
        _converted(child, f"{path}.modules[{i}]", known, around) for i, child in enumerate(_list(fields.get("modules")))
    ]
    try:
        if kind in CONTAINERS:
            module = CONTAINERS[kind](fields, children)
            module.training = bool(fields.get("train", True))
            return module
        if kind in LAYERS:
            return LAYERS[kind](fields).train(bool(fields.get("train", True)))
    except KeyError as error:
        raise ValueError(f"{path}: {fields[CLASS]} lacks its field {error}") from None
    except (TypeError, RuntimeError, AttributeError, ValueError, IndexError) as error:
        raise ValueError(f"{path}: {fields[CLASS]} with fields of other kinds: {error}") from None
    raise ValueError(f"{path}: the layer {fields[CLASS]:.100} is not known")


def _list(value: Any) -> list[Any]:
    """Return a table that should be a list; an empty table is read as a dict."""
    return value if isinstance(value, list) else []


# -- the fields of layers ---------------------------------------------------------------------------------------------
def _ints(fields: Fields, *names: str, default: int | None = None) -> tuple[int, ...]:
    """Return integers; with a default, those that are missing are that."""
    return tuple(int(fields[n] if default is None else fields.get(n, default)) for n in names)


def _sizes(value: Any) -> list[int]:
    """Return the numbers of a LongStorage or a table."""
    return [int(n) for n in (value.tolist() if isinstance(value, Tensor) else value)]


def _layer(name: str, *arguments: Any, **options: Any) -> Module:
    """Return a layer of candelabra.nn."""
    from candelabra import nn

    made: Module = getattr(nn, name)(*arguments, **options)
    return made


def _own(name: str, *arguments: Any) -> Module:
    """Return a layer of `lua_layers`."""
    from candelabra.nn.utils import lua_layers

    made: Module = getattr(lua_layers, name)(*arguments)
    return made


def _filled(module: Module, **tensors: Tensor | None) -> Module:
    """Return a module with its parameters and buffers replaced by tensors, whose dtype they take."""
    from candelabra.nn.parameter import Parameter

    for name, tensor in tensors.items():
        if tensor is None:
            continue
        old = getattr(module, name)
        value = tensor.reshape(tuple(old.shape)).clone()
        setattr(module, name, Parameter(value) if name in module._parameters else value)
    return module


def _bias(fields: Fields) -> Tensor | None:
    found = fields.get("bias")
    return found if isinstance(found, Tensor) and found.numel() else None


def _weighted(module: Module, fields: Fields) -> Module:
    return _filled(module, weight=fields["weight"], bias=_bias(fields))


def _linear(fields: Fields) -> Module:
    rows, columns = fields["weight"].shape
    return _weighted(_layer("Linear", columns, rows, bias=_bias(fields) is not None), fields)


def _convolution(rank: int) -> Callable[[Fields], Module]:
    letters = "HW" if rank == 2 else "THW"

    def make(fields: Fields) -> Module:
        kernel, stride = (_ints(fields, *[f"{p}{a}" for a in letters]) for p in "kd")
        padding = _ints(fields, *[f"pad{a}" for a in letters], default=int(fields.get("padding", 0)))
        dilation = _ints(fields, *[f"dilation{a}" for a in letters], default=1)
        groups = int(fields.get("groups", 1))
        sizes = _ints(fields, "nInputPlane", "nOutputPlane")
        bias = _bias(fields) is not None
        return _weighted(_layer(f"Conv{rank}d", *sizes, kernel, stride, padding, dilation, groups, bias=bias), fields)

    return make


def _full_convolution(fields: Fields) -> Module:
    return _own(
        "FullConvolution", fields["weight"], _bias(fields), _ints(fields, "dH", "dW"),
        _ints(fields, "padH", "padW", default=0), _ints(fields, "adjH", "adjW", default=0),
    )  # fmt: skip


def _pooling(name: str, letters: str) -> Callable[[Fields], Module]:
    def make(fields: Fields) -> Module:
        kernel, stride = (_ints(fields, *[f"{p}{a}" for a in letters]) for p in "kd")
        padding = _ints(fields, *[f"pad{a}" for a in letters], default=0)
        options: dict[str, Any] = {"ceil_mode": bool(fields.get("ceil_mode", False))}
        if name.startswith("Avg"):
            options["count_include_pad"] = bool(fields.get("count_include_pad", True))
            if fields.get("divide") is False:
                options["divisor_override"] = 1
        return _layer(name, kernel, stride, padding, **options)

    return make


def _batch_norm(name: str) -> Callable[[Fields], Module]:
    def make(fields: Fields) -> Module:
        mean, weight = fields["running_mean"], fields.get("weight")
        eps = float(fields.get("eps", 1e-5))
        variance = fields.get("running_var")
        if variance is None:  # old files have 1 / sqrt(variance + eps)
            variance = fields["running_std"] ** -2 - eps
        affine = isinstance(weight, Tensor)
        module = _layer(name, mean.numel(), eps, fields.get("momentum", 0.1), affine=affine)
        _filled(module, running_mean=mean, running_var=variance)
        return _filled(module, weight=weight, bias=fields["bias"]) if affine else module

    return make


def _shape(fields: Fields) -> Module:
    return _own("Shaped", _sizes(fields["size"]), fields.get("batchMode"), int(fields.get("numInputDims") or 0))


def _dropout(name: str) -> Callable[[Fields], Module]:
    def make(fields: Fields) -> Module:
        p = float(fields["p"])
        if fields.get("v2") or name != "Dropout":
            return _layer(name, p)
        # The first version does not divide in training; in evaluation it multiplies instead.
        return _layer("Sequential", _layer(name, p), _own("Computed", "mul", 1 - p))

    return make


def _embedding(fields: Fields) -> Module:
    rows, columns = fields["weight"].shape
    return _filled(_layer("Embedding", rows, columns), weight=fields["weight"])


def _prelu(fields: Fields) -> Module:
    return _filled(_layer("PReLU", fields["weight"].numel()), weight=fields["weight"])


def _along(name: str) -> Callable[[Fields], Module]:
    """Return a reduction along one dim, counted from 1 in a sample and here from the end."""

    def make(fields: Fields) -> Module:
        (dim,) = _ints(fields, "dimension")
        rank = int(fields.get("nInputDims") or 0)
        kind = "mean" if fields.get("sizeAverage") else name
        return _own("Computed", kind, dim - 1 - rank if rank > 0 else dim - 1, fields.get("squeeze") is False)

    return make


def _padded(mode: str) -> Callable[[Fields], Module]:
    return lambda f: _own("Computed", "pad", _ints(f, "pad_l", "pad_r", "pad_t", "pad_b"), mode)


def _fixed(name: str, *arguments: Any) -> Callable[[Fields], Module]:
    return lambda _: _layer(name, *arguments)


def _computed(name: str, *fields: str) -> Callable[[Fields], Module]:
    return lambda f: _own("Computed", name, *[f[n] for n in fields])


def _folded(name: str) -> Callable[[Fields], Module]:
    return lambda _: _own("Folded", name)


LAYERS: dict[str, Callable[[Fields], Module]] = {
    # linear maps and convolutions
    "Linear": _linear, "LookupTable": _embedding, "SpatialConvolution": _convolution(2),
    "SpatialConvolutionMM": _convolution(2),
    "SpatialDilatedConvolution": _convolution(2), "VolumetricConvolution": _convolution(3),
    "SpatialFullConvolution": _full_convolution,
    "Mul": lambda f: _own("Scaled", "mul", f["weight"]), "CMul": lambda f: _own("Scaled", "mul", f["weight"]),
    "Add": lambda f: _own("Scaled", "add", f["bias"]), "CAdd": lambda f: _own("Scaled", "add", f["bias"]),
    # pooling, normalization, dropout
    "SpatialMaxPooling": _pooling("MaxPool2d", "HW"), "SpatialAveragePooling": _pooling("AvgPool2d", "HW"),
    "VolumetricMaxPooling": _pooling("MaxPool3d", "THW"), "VolumetricAveragePooling": _pooling("AvgPool3d", "THW"),
    "SpatialAdaptiveAveragePooling": lambda f: _own("Computed", "adaptive_avg_pool2d", _ints(f, "H", "W")),
    "BatchNormalization": _batch_norm("BatchNorm1d"), "SpatialBatchNormalization": _batch_norm("BatchNorm2d"),
    "VolumetricBatchNormalization": _batch_norm("BatchNorm3d"),
    "SpatialCrossMapLRN": lambda f: _own(
        "Computed", "local_response_norm", int(f["size"]), float(f["alpha"]), float(f["beta"]), float(f["k"])
    ),
    "Normalize": lambda f: _own("Computed", "normalize", float(f["p"]), -1, float(f.get("eps", 1e-10))),
    "Dropout": _dropout("Dropout"),
    "SpatialDropout": _dropout("Dropout2d"),
    # activations
    "ReLU": _fixed("ReLU"), "ReLU6": _fixed("ReLU6"), "Tanh": _fixed("Tanh"), "Sigmoid": _fixed("Sigmoid"),
    "LogSigmoid": _fixed("LogSigmoid"), "SoftSign": _fixed("Softsign"), "Identity": _fixed("Identity"),
    "Copy": _fixed("Identity"), "Contiguous": _computed("clone"), "PReLU": _prelu,
    "Threshold": lambda f: _layer("Threshold", float(f["threshold"]), float(f["val"])),
    "LeakyReLU": lambda f: _layer("LeakyReLU", float(f["negval"])), "ELU": lambda f: _layer("ELU", float(f["alpha"])),
    "HardTanh": lambda f: _layer("Hardtanh", float(f["min_val"]), float(f["max_val"])),
    "SoftPlus": lambda f: _layer("Softplus", float(f["beta"]), float(f["threshold"])),
    "SoftMax": _fixed("Softmax", 1), "LogSoftMax": _fixed("LogSoftmax", 1), "SoftMin": _fixed("Softmin", 1),
    "SpatialSoftMax": _fixed("Softmax", 1), "SpatialLogSoftMax": _fixed("LogSoftmax", 1),
    # single operators
    "Abs": _computed("abs"), "Square": _computed("square"), "Sqrt": _computed("sqrt"), "Exp": _computed("exp"),
    "Log": _computed("log"), "Power": _computed("pow", "pow"), "MulConstant": _computed("mul", "constant_scalar"),
    "AddConstant": _computed("add", "constant_scalar"), "Sum": _along("sum"), "Mean": _along("mean"),
    # shapes
    "View": _shape, "Reshape": _shape, "SpatialZeroPadding": _padded("constant"),
    "SpatialReflectionPadding": _padded("reflect"), "SpatialReplicationPadding": _padded("replicate"),
    # tables
    "CAddTable": _folded("add"), "CMulTable": _folded("mul"), "CSubTable": _folded("sub"), "CDivTable": _folded("div"),
    "CMaxTable": _folded("maximum"), "CMinTable": _folded("minimum"),
    "JoinTable": lambda f: _own("Joined", int(f["dimension"]) - 1, int(f.get("nInputDims") or 0)),
    "SplitTable": lambda f: _own("Split", int(f["dimension"]) - 1, int(f.get("nInputDims") or 0)),
    "SelectTable": lambda f: _own("Item", int(f["index"]) - 1 if f["index"] > 0 else int(f["index"])),
}  # fmt: skip
"""By the class's name without its package: the module of a layer's fields."""

CONTAINERS: dict[str, Callable[[Fields, list[Any]], Module]] = {
    "Sequential": lambda f, children: _layer("Sequential", *children),
    "ConcatTable": lambda f, children: _own("Branches", children),
    "Concat": lambda f, children: _own("Branches", children, int(f["dimension"]) - 1),
    "ParallelTable": lambda f, children: _own("Parallel", children),
}
"""By the class's name: the module of a container's fields and modules."""


def __dir__() -> list[str]:
    return sorted(__all__)

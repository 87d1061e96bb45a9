"""Networks of LuaTorch: each layer by its definition in torch/nn, containers, whole files, files that are damaged."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F
from candelabra.nn.utils.lua import CONTAINERS, LAYERS, load_lua, module_from_lua

from tests.core.serialization.t7_writer import Storage, Table, Tensor, Torch, Writer
from tests.nn.network_samples import array, normal, tensor


def lua(name: str, modules: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a layer as ``load`` returns it."""
    found = {"__class__": f"nn.{name}", "train": False, "gradInput": tensor(np.zeros(0)), **fields}
    return found if modules is None else {**found, "modules": modules}


def weights(*shape: int, seed: int = 3) -> cd.Tensor:
    """Return weights in float64, as LuaTorch's default."""
    return tensor(normal(*shape, seed=seed))


IMAGE, ROWS = tensor(normal(2, 3, 6, 7)), tensor(normal(4, 5))
W, B = weights(5, 3, 2, 3), weights(5)
PLANE = {"nInputPlane": 3, "nOutputPlane": 5, "kH": 2, "kW": 3, "dH": 1, "dW": 2, "padH": 1, "padW": 0}
POOL = {"kH": 2, "kW": 3, "dH": 2, "dW": 1, "padH": 1, "padW": 0}
STATS = {"running_mean": weights(3), "running_var": weights(3).abs(), "eps": 1e-3, "momentum": 0.2}
UP, CLIP = weights(3, 4, 2, 2), {"pad_l": 1, "pad_r": 2, "pad_t": 0, "pad_b": 1}
CUBE = tensor(normal(1, 2, 4, 4, 4))
SIZES = tensor(np.array([21, 6]))
SOLID = {"kT": 2, "kH": 2, "kW": 1, "dT": 1, "dH": 2, "dW": 1}

LAYER_CASES: list[tuple[dict[str, Any], Any, Callable[[Any], Any]]] = [
    (lua("Linear", weight=weights(3, 5), bias=weights(3)), ROWS, lambda x: F.linear(x, weights(3, 5), weights(3))),
    (lua("Linear", weight=weights(3, 5)), ROWS, lambda x: x @ weights(3, 5).mT),
    (lua("SpatialConvolution", weight=W, bias=B, **PLANE), IMAGE, lambda x: F.conv2d(x, W, B, (1, 2), (1, 0))),
    (
        lua("SpatialConvolutionMM", weight=W.reshape(5, 18), **PLANE),
        IMAGE,
        lambda x: F.conv2d(x, W, None, (1, 2), (1, 0)),
    ),
    (
        lua("SpatialDilatedConvolution", weight=W, bias=B, dilationH=2, dilationW=1, **PLANE),
        IMAGE,
        lambda x: F.conv2d(x, W, B, (1, 2), (1, 0), (2, 1)),
    ),
    (
        lua("VolumetricConvolution", weight=weights(3, 2, 2, 2, 1), nInputPlane=2, nOutputPlane=3, **SOLID),
        CUBE,
        lambda x: F.conv3d(x, weights(3, 2, 2, 2, 1), None, (1, 2, 1)),
    ),
    (
        lua("SpatialFullConvolution", weight=UP, bias=weights(4), dH=2, dW=1, adjH=1),
        IMAGE,
        lambda x: F.conv_transpose2d(x, UP, weights(4), (2, 1), 0, (1, 0)),
    ),
    (lua("LookupTable", weight=weights(5, 2)), cd.tensor([[0, 4]]), lambda x: weights(5, 2)[x]),
    (lua("Mul", weight=weights(1)), ROWS, lambda x: x * weights(1)),
    (lua("CMul", weight=weights(1, 5)), ROWS, lambda x: x * weights(1, 5)),
    (lua("Add", bias=weights(5)), ROWS, lambda x: x + weights(5)),
    (lua("CAdd", bias=weights(1, 5)), ROWS, lambda x: x + weights(1, 5)),
    (lua("SpatialMaxPooling", **POOL), IMAGE, lambda x: F.max_pool2d(x, (2, 3), (2, 1), (1, 0))),
    (
        lua("SpatialAveragePooling", ceil_mode=True, count_include_pad=False, **POOL),
        IMAGE,
        lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 0), True, False),
    ),
    (
        lua("SpatialAveragePooling", divide=False, **POOL),
        IMAGE,
        lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 0), divisor_override=1),
    ),
    (lua("VolumetricMaxPooling", **SOLID), CUBE, lambda x: F.max_pool3d(x, (2, 2, 1), (1, 2, 1))),
    (lua("VolumetricAveragePooling", **SOLID), CUBE, lambda x: F.avg_pool3d(x, (2, 2, 1), (1, 2, 1))),
    (lua("SpatialAdaptiveAveragePooling", H=2, W=3), IMAGE, lambda x: F.adaptive_avg_pool2d(x, (2, 3))),
    (
        lua("SpatialBatchNormalization", weight=weights(3), bias=weights(3), **STATS),
        IMAGE,
        lambda x: F.batch_norm(
            x, STATS["running_mean"], STATS["running_var"], weights(3), weights(3), False, 0.2, 1e-3
        ),
    ),
    (
        lua("BatchNormalization", running_mean=weights(5), running_std=weights(5).abs()),
        ROWS,
        lambda x: (x - weights(5)) * weights(5).abs(),
    ),
    (
        lua("VolumetricBatchNormalization", running_mean=weights(2), running_var=weights(2).abs()),
        CUBE,
        lambda x: F.batch_norm(x, weights(2), weights(2).abs()),
    ),
    (
        lua("SpatialCrossMapLRN", size=3, alpha=0.1, beta=0.7, k=2),
        IMAGE,
        lambda x: F.local_response_norm(x, 3, 0.1, 0.7, 2.0),
    ),
    (lua("Normalize", p=2), ROWS, lambda x: F.normalize(x, 2.0, -1)),
    (lua("Dropout", p=0.25, v2=True), ROWS, lambda x: x),
    (lua("Dropout", p=0.25), ROWS, lambda x: x * 0.75),
    (lua("SpatialDropout", p=0.25), IMAGE, lambda x: x),
    (lua("ReLU", threshold=0, val=0), ROWS, F.relu),
    (lua("ReLU6"), ROWS, F.relu6),
    (lua("Tanh"), ROWS, cd.tanh),
    (lua("Sigmoid"), ROWS, cd.sigmoid),
    (lua("LogSigmoid"), ROWS, F.logsigmoid),
    (lua("SoftSign"), ROWS, lambda x: x / (1 + x.abs())),
    (lua("Identity"), ROWS, lambda x: x),
    (lua("Copy"), ROWS, lambda x: x),
    (lua("Contiguous"), ROWS, lambda x: x),
    (lua("PReLU", weight=weights(1)), ROWS, lambda x: F.prelu(x, weights(1))),
    (lua("Threshold", threshold=0.5, val=-2), ROWS, lambda x: F.threshold(x, 0.5, -2.0)),
    (lua("LeakyReLU", negval=0.3), ROWS, lambda x: F.leaky_relu(x, 0.3)),
    (lua("ELU", alpha=0.3), ROWS, lambda x: F.elu(x, 0.3)),
    (lua("HardTanh", min_val=-0.5, max_val=0.7), ROWS, lambda x: x.clamp(-0.5, 0.7)),
    (lua("SoftPlus", beta=2, threshold=20), ROWS, lambda x: F.softplus(x, 2.0)),
    (lua("SoftMax"), ROWS, lambda x: x.softmax(1)),
    (lua("LogSoftMax"), ROWS, lambda x: x.log_softmax(1)),
    (lua("SoftMin"), ROWS, lambda x: (-x).softmax(1)),
    (lua("SpatialSoftMax"), IMAGE, lambda x: x.softmax(1)),
    (lua("SpatialLogSoftMax"), IMAGE, lambda x: x.log_softmax(1)),
    (lua("Abs"), ROWS, abs),
    (lua("Square"), ROWS, lambda x: x * x),
    (lua("Sqrt"), ROWS.abs(), lambda x: x.sqrt()),
    (lua("Exp"), ROWS, lambda x: x.exp()),
    (lua("Log"), ROWS.abs(), lambda x: x.log()),
    (lua("Power", pow=3), ROWS, lambda x: x**3),
    (lua("MulConstant", constant_scalar=0.5), ROWS, lambda x: x * 0.5),
    (lua("AddConstant", constant_scalar=0.5), ROWS, lambda x: x + 0.5),
    (lua("Sum", dimension=1, nInputDims=-1), ROWS, lambda x: x.sum(0)),
    (lua("Sum", dimension=1, sizeAverage=True, squeeze=False), ROWS, lambda x: x.mean(0, True)),
    (lua("Mean", dimension=1, nInputDims=3), IMAGE, lambda x: x.mean(1)),
    (lua("View", size=SIZES), IMAGE, lambda x: x.reshape(2, 21, 6)),
    (lua("View", size=SIZES), IMAGE[:1], lambda x: x.reshape(1, 21, 6)),
    (lua("View", size=SIZES), IMAGE[0], lambda x: x.reshape(21, 6)),
    (lua("View", size=[-1], numInputDims=3), IMAGE, lambda x: x.reshape(2, 126)),
    (lua("View", size=[-1, 7]), IMAGE, lambda x: x.reshape(-1, 7)),
    (lua("Reshape", size=SIZES, batchMode=True), IMAGE, lambda x: x.reshape(2, 21, 6)),
    (lua("Reshape", size=[2, 126], batchMode=False), IMAGE, lambda x: x.reshape(2, 126)),
    (lua("SpatialZeroPadding", **CLIP), IMAGE, lambda x: F.pad(x, (1, 2, 0, 1))),
    (lua("SpatialReflectionPadding", **CLIP), IMAGE, lambda x: F.pad(x, (1, 2, 0, 1), "reflect")),
    (lua("SpatialReplicationPadding", **CLIP), IMAGE, lambda x: F.pad(x, (1, 2, 0, 1), "replicate")),
    (lua("CAddTable"), [ROWS, ROWS, ROWS], lambda x: x[0] * 3),
    (lua("CMulTable"), [ROWS, ROWS], lambda x: x[0] * x[0]),
    (lua("CSubTable"), [ROWS, ROWS * 3], lambda x: x[0] * -2),
    (lua("CDivTable"), [ROWS, ROWS * 2], lambda x: x[0] * 0 + 0.5),
    (lua("CMaxTable"), [ROWS, -ROWS], lambda x: x[0].abs()),
    (lua("CMinTable"), [ROWS, -ROWS], lambda x: -x[0].abs()),
    (lua("JoinTable", dimension=1, nInputDims=1), [ROWS, ROWS], lambda x: cd.cat(x, 1)),
    (lua("JoinTable", dimension=1), [ROWS, ROWS], lambda x: cd.cat(x, 0)),
    (lua("SplitTable", dimension=1, nInputDims=3), IMAGE, lambda x: x[:, 0]),
    (lua("SelectTable", index=2), [ROWS, IMAGE], lambda x: x[1]),
    (lua("SelectTable", index=-1), [ROWS, IMAGE], lambda x: x[1]),
    (lua("Sequential", [lua("Abs"), lua("Sqrt")]), ROWS, lambda x: x.abs().sqrt()),
    (lua("Concat", [lua("Abs"), lua("Square")], dimension=2), ROWS, lambda x: cd.cat([x.abs(), x * x], 1)),
    (
        lua("Sequential", [lua("ConcatTable", [lua("Abs"), lua("Square")]), lua("CSubTable")]),
        ROWS,
        lambda x: x.abs() - x * x,
    ),
    (
        lua("Sequential", [lua("ParallelTable", [lua("Abs"), lua("Square")]), lua("CAddTable")]),
        [ROWS, ROWS],
        lambda x: x[0].abs() + x[0] * x[0],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "x", "expected"), LAYER_CASES, ids=[c[0]["__class__"] for c in LAYER_CASES])
def test_layers_compute_what_they_did(fields: dict[str, Any], x: Any, expected: Callable[[Any], Any]) -> None:
    """Every layer agrees with its definition, in evaluation; its printed form does not fail."""
    module = module_from_lua(fields)
    found = module(x)
    found = found[0] if isinstance(found, list) else found
    wanted = expected(x)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(array(found), array(wanted), rtol=1e-10, atol=1e-12)
    assert not module.training
    assert repr(module).startswith(type(module).__name__)


def test_every_layer_is_tested() -> None:
    """Each class of the table occurs above."""
    tested = {m["__class__"] for case in LAYER_CASES for m in (case[0], *case[0].get("modules", []))}
    assert tested == {f"nn.{name}" for name in (*LAYERS, *CONTAINERS)}


def test_the_first_version_of_dropout_does_not_scale_in_training() -> None:
    """Elements are dropped or kept as they are."""
    module = module_from_lua({**lua("Dropout", p=0.5), "train": True})
    assert set(module(cd.ones(100)).tolist()) == {0.0, 1.0}


def lua_tensor(values: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor as the tests' writer of .t7 files takes it."""
    strides = tuple(step // values.itemsize for step in values.strides)
    return Tensor("Double", values.shape, strides, 1, Storage("Double", values.reshape(-1).tolist()))


def test_a_network_in_a_file() -> None:
    """load_lua returns modules in place of networks; a shared module is one; what is no network stays data."""
    w, b = normal(3, 5), normal(3)
    linear = Torch(
        "nn.Linear",
        Table(("weight", lua_tensor(w)), ("bias", lua_tensor(b)), ("train", False), ("_type", "torch.DoubleTensor")),
    )
    modules = Table((1, linear), (2, Torch("cudnn.ReLU", Table(("inplace", True)))), (3, linear))
    network = Torch("nn.Sequential", Table(("modules", modules), ("train", False)))
    writer = Writer()
    writer.object(
        Table(("model", network), ("epoch", 3), ("empty", Torch("nn.Sequential", Table(("modules", Table())))))
    )
    found = load_lua(io.BytesIO(writer.out.getvalue()))
    model = found["model"]
    assert type(model) is nn.Sequential
    assert model[0] is model[2]
    assert found["epoch"] == 3
    assert len(found["empty"]) == 0
    x = normal(4, 5)
    np.testing.assert_allclose(array(model[:2](tensor(x))), np.maximum(x @ w.T + b, 0), rtol=1e-12)
    assert [type(p) for p in model.parameters()] == [nn.Parameter, nn.Parameter]
    assert not model.training


def test_a_converted_network_is_saved_and_loaded() -> None:
    """Its classes are those of candelabra.nn."""
    model = module_from_lua(lua("Sequential", [lua("ConcatTable", [lua("Abs"), lua("Exp")]), lua("CAddTable")]))
    f = io.BytesIO()
    cd.save(model, f)
    f.seek(0)
    assert (cd.load(f)(ROWS) == model(ROWS)).all().item()


ITSELF: list[Any] = []
ITSELF.append(ITSELF)
DEEP: list[Any] = []
for _ in range(150):
    DEEP = [DEEP]
BAD: list[tuple[Any, str]] = [
    (lua("Sequential", [lua("Mystery")]), "obj.modules[0]: the layer nn.Mystery is not known"),
    ({"a": [lua("Linear")]}, "obj['a'][0]: nn.Linear lacks its field 'weight'"),
    (lua("Linear", weight=3), "obj: nn.Linear with fields of other kinds"),
    (lua("Linear", weight=weights(3)), "obj: nn.Linear with fields of other kinds"),
    (lua("SpatialConvolution", weight=B, **PLANE), "obj: nn.SpatialConvolution with fields of other kinds"),
    (ITSELF, "obj[0]: a container that contains itself"),
    (DEEP, "containers are nested more than 100 deep"),
]


@pytest.mark.parametrize(("obj", "message"), BAD)
def test_networks_that_cannot_be_converted(obj: Any, message: str) -> None:
    """The error names the path of the layer."""
    with pytest.raises(ValueError, match=re.escape(message)):
        module_from_lua(obj)

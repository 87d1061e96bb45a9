"""Indices out of bounds, unknown devices, and freed graphs."""

from __future__ import annotations

import candelabra as cd
from candelabra.errors import BackendError, DeviceUnavailable, GraphFreed, VersionMismatch

from tests.core.bad_input.row import Row

R = RuntimeError
I = IndexError  # noqa: E741 - as R for RuntimeError


def _backward_twice(s: object) -> None:
    y = s.leaf.exp().sum()  # type: ignore[attr-defined]
    y.backward()
    s.leaf.grad = None  # type: ignore[attr-defined]
    y.backward()


def _saved_then_written(s: object) -> None:
    x = s.leaf * 1  # type: ignore[attr-defined]
    y = x * x
    x.add_(1)
    y.sum().backward()


def _output_then_written(s: object) -> None:
    y = s.leaf.exp()  # type: ignore[attr-defined]
    y.add_(1)
    y.sum().backward()


def _view_written(s: object) -> None:
    x = s.leaf * 1  # type: ignore[attr-defined]
    y = x.exp() * x
    x[0] = 5.0
    y.sum().backward()


ROWS = [
    Row("index-high", lambda s: s.v3[3], I, r"index 3 is out of bounds for dimension 0 with size 3"),
    Row("index-low", lambda s: s.v3[-4], I, r"index -4 is out of bounds for dimension 0 with size 3"),
    Row("index-second", lambda s: s.m23[0, 3], I, r"index 3 is out of bounds for dimension 1 with size 3"),
    Row("index-too-many", lambda s: s.v3[0, 0], I, r"too many indices for tensor of dimension 1"),
    Row("index-of-scalar", lambda s: s.scalar[0], I, r"invalid index of a 0-dim tensor|too many indices"),
    Row("slice-step-negative", lambda s: s.v3[::-1], ValueError, r"step must be greater than zero"),
    Row(
        "slice-step-zero", lambda s: s.v3[::0], ValueError, r"step must be greater than zero|slice step cannot be zero"
    ),
    Row(
        "index-tensor-high",
        lambda s: s.v3[cd.tensor([0, 3])],
        I,
        r"index 3 is out of bounds for dimension 0 with size 3",
    ),
    Row("index-list-low", lambda s: s.v3[[-4]], I, r"index -4 is out of bounds for dimension 0 with size 3"),
    Row(
        "index-shapes",
        lambda s: s.m23[cd.tensor([0, 1]), cd.tensor([0, 1, 2])],
        I,
        r"shape mismatch: indexing tensors could not be broadcast together",
    ),
    Row(
        "mask-shape",
        lambda s: s.m23[s.mask],
        I,
        r"shape of the mask \[3\] at index 0 does not match the shape of the indexed tensor \[2, 3\] at index 0",
    ),
    Row("index-float-tensor", lambda s: s.v3[s.v3], I, r"tensors used as indices must be"),
    Row("index-string", lambda s: s.v3["a"], (I, TypeError), r"only integers, slices|invalid|str"),  # type: ignore[arg-type]
    Row("assign-high", lambda s: s.v3.__setitem__(3, 1.0), I, r"index 3 is out of bounds for dimension 0 with size 3"),
    Row(
        "assign-shape",
        lambda s: s.m23.__setitem__(0, s.v4),
        R,
        r"must match the existing size|shape mismatch|must match",
    ),
    Row("assign-mask-shape", lambda s: s.v3.__setitem__(s.mask, cd.ones(5)), R, r"shape mismatch|must match|cannot"),
    Row(
        "assign-leaf",
        lambda s: s.leaf.__setitem__(0, 1.0),
        R,
        r"a view of a leaf Variable that requires grad is being used in an in-place operation|a leaf Variable",
    ),
    Row("gather-bounds", lambda s: s.v3.gather(0, cd.tensor([3])), (I, R), r"index 3 is out of bounds for dimension"),  # type: ignore[arg-type]
    Row("gather-negative", lambda s: s.v3.gather(0, cd.tensor([-1])), (I, R), r"index -1 is out of bounds"),  # type: ignore[arg-type]
    Row("index_select-bounds", lambda s: s.v3.index_select(0, cd.tensor([5])), (I, R), r"out of (bounds|range)"),  # type: ignore[arg-type]
    Row(
        "index_select-matrix", lambda s: s.v3.index_select(0, cd.tensor([[0]])), I, r"Index is supposed to be a vector"
    ),
    Row(
        "scatter_add-bounds",
        lambda s: s.v3.scatter_add(0, cd.tensor([7]), cd.ones(1)),
        (I, R),
        r"index 7 is out of bounds",
    ),  # type: ignore[arg-type]
    Row(
        "select-range", lambda s: s.v3.select(0, 3), I, r"index 3 out of range for tensor of size \[3\] at dimension 0"
    ),
    Row("select-scalar", lambda s: s.scalar.select(0, 0), I, r"cannot be applied to a 0-dim tensor"),
    Row("narrow-start", lambda s: s.v3.narrow(0, 4, 0), I, r"start out of range"),
    Row("narrow-scalar", lambda s: s.scalar.narrow(0, 0, 1), R, r"cannot be applied to a 0-dim tensor"),
    Row("unbind-scalar", lambda s: s.scalar.unbind(), IndexError, r"tensor has no dimensions"),
    Row(
        "device-unknown",
        lambda s: cd.zeros(2, device="nosuch"),
        BackendError,
        r"no backend is installed for device type 'nosuch'",
    ),
    Row(
        "device-index",
        lambda s: cd.zeros(2, device=f"{s.v3.device.type}:7"),
        DeviceUnavailable,
        r"does not exist: backend '\w+' offers 1 device",
    ),
    Row("device-string", lambda s: cd.device("a:b"), R, r"invalid device string: 'a:b'"),
    Row("device-empty", lambda s: cd.device(""), R, r"invalid device string: ''"),
    Row(
        "device-twice",
        lambda s: cd.device("acme:1", 2),
        R,
        r"must not include an index because index was passed explicitly",
    ),
    Row("device-negative", lambda s: cd.device("acme", -1), R, r"device index must be a non-negative int, got -1"),
    Row("device-type", lambda s: cd.device(3.5), TypeError, r"device\(\) expects a string"),
    Row("to-nosuch", lambda s: s.v3.to("nosuch"), BackendError, r"no backend is installed for device type 'nosuch'"),
    Row(
        "transfers-policy",
        lambda s: cd.transfers("maybe").__enter__(),
        ValueError,
        r"transfers\(\) expects \"error\", \"warn\" or \"move\", got 'maybe'",
    ),
    Row(
        "fallback-policy",
        lambda s: cd.fallback("maybe").__enter__(),
        ValueError,
        r"fallback\(\) expects \"allow\" or \"error\", got 'maybe'",
    ),
    Row(
        "backward-plain",
        lambda s: s.v3.sum().backward(),
        R,
        r"element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    Row(
        "backward-vector",
        lambda s: (s.leaf * 2).backward(),
        R,
        r"grad can be implicitly created only for scalar outputs",
    ),
    Row("backward-shape", lambda s: (s.leaf * 2).backward(cd.ones(2)), R, r"Mismatch in shape: grad_output\[0\]"),
    Row("backward-twice", _backward_twice, GraphFreed, r"Trying to backward through the graph a second time"),
    Row(
        "backward-no-inputs",
        lambda s: s.leaf.sum().backward(inputs=[]),
        R,
        r"`inputs` argument to `backward\(\)` cannot be empty\.",
    ),
    Row(
        "grad-unused",
        lambda s: cd.autograd.grad(s.leaf.sum(), [s.other_leaf]),
        R,
        r"appears to not have been used in the graph",
    ),
    Row(
        "grad-plain-input",
        lambda s: cd.autograd.grad(s.leaf.sum(), [s.v3]),
        R,
        r"One of the differentiated Tensors does not require grad",
    ),
    Row(
        "grad-no-input",
        lambda s: cd.autograd.grad(s.leaf.sum(), []),
        R,
        r"`inputs` argument to `grad\(\)` cannot be empty\.",
    ),
    Row(
        "grad-lengths",
        lambda s: cd.autograd.grad([s.leaf.sum()], [s.leaf], [None, None]),
        R,
        r"got 1 outputs and 2 gradients",
    ),
    Row(
        "grad-type",
        lambda s: cd.autograd.grad(3.0, [s.leaf]),
        TypeError,
        r"outputs must be|not iterable|must be a Tensor",
    ),
    Row(
        "grad-materialize",
        lambda s: cd.autograd.grad(s.leaf.sum(), [s.leaf], allow_unused=False, materialize_grads=True),
        ValueError,
        r"Expected allow_unused to be True or not passed",
    ),
    Row(
        "grad-batched",
        lambda s: cd.autograd.grad(s.leaf.sum(), [s.leaf], is_grads_batched=True),
        RuntimeError,
        r"needs grad_outputs with a batch dim",
    ),
    Row(
        "saved-input-written",
        _saved_then_written,
        VersionMismatch,
        r"the '(input|other)' of 'mul', is at version 1; expected version 0",
    ),
    Row(
        "saved-output-written",
        _output_then_written,
        VersionMismatch,
        r"the 'out' of 'exp', is at version 1; expected version 0",
    ),
    Row("saved-base-written", _view_written, VersionMismatch, r"is at version 1; expected version 0"),
    Row(
        "leaf-inplace",
        lambda s: s.leaf.add_(1),
        R,
        r"a leaf Variable that requires grad is being used in an in-place operation",
    ),
    Row(
        "leaf-view-inplace",
        lambda s: s.leaf[:2].mul_(2),
        R,
        r"a view of a leaf Variable that requires grad is being used in an in-place operation",
    ),
    Row(
        "expanded-inplace",
        lambda s: s.v3[:1].expand(3).add_(1),
        R,
        r"more than one element of the written-to tensor refers to a single memory location",
    ),
    Row(
        "requires_grad-int",
        lambda s: s.ints.requires_grad_(),
        R,
        r"only Tensors of floating point and complex dtype can require gradients",
    ),
    Row(
        "requires_grad-off",
        lambda s: (s.leaf * 1).requires_grad_(False),
        R,
        r"you can only change requires_grad flags of leaf variables",
    ),
    Row(
        "hook-plain",
        lambda s: s.v3.register_hook(print),
        R,
        r"cannot register a hook on a tensor that doesn't require gradient",
    ),
    Row("hook-type", lambda s: s.leaf.register_hook(3), TypeError, r"a hook must be callable, got int"),
    Row(
        "retain_grad-plain",
        lambda s: s.v3.retain_grad(),
        R,
        r"can't retain_grad on Tensor that has requires_grad=False",
    ),
    Row(
        "post-hook-nonleaf",
        lambda s: (s.leaf * 1).register_post_accumulate_grad_hook(print),
        R,
        r"cannot be registered on non-leaf tensors",
    ),
    Row(
        "grad-assign-shape",
        lambda s: setattr(s.leaf, "grad", cd.ones(2)),
        R,
        r"attempting to assign a gradient of size '\[2\]' to a tensor of size '\[3\]'\.",
    ),
    Row(
        "grad-assign-dtype",
        lambda s: setattr(s.leaf, "grad", cd.ones(3, dtype=cd.float64)),
        R,
        r"assigned grad has data of a different type",
    ),
    Row(
        "grad-assign-list",
        lambda s: setattr(s.leaf, "grad", [1.0]),
        TypeError,
        r"assigned grad expected to be a Tensor or None but got grad of type list",
    ),
    Row("grad-assign-self", lambda s: setattr(s.leaf, "grad", s.leaf), R, r"can't assign Variable as its own grad"),
    Row(
        "data-assign-list",
        lambda s: setattr(s.v3, "data", [1.0]),
        TypeError,
        r"Variable data has to be a tensor, but got list",
    ),
    Row("detach-view", lambda s: s.v3[:2].detach_(), R, r"Can't detach views in-place"),
    Row("numpy-grad", lambda s: s.leaf.numpy(), R, r"Can't call numpy\(\) on Tensor that requires grad"),
    Row(
        "deepcopy-nonleaf",
        lambda s: __import__("copy").deepcopy(s.leaf * 1),
        R,
        r"Only Tensors created explicitly by the user",
    ),
]

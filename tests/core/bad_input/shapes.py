"""Shapes that do not match."""

from __future__ import annotations

import candelabra as cd

from tests.core.bad_input.row import Row

R = RuntimeError
ROWS = [
    Row(
        "add-broadcast",
        lambda s: s.m23 + s.v4,
        R,
        r"size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1",
    ),
    Row("mul-broadcast", lambda s: s.m23 * s.m32, R, r"size of tensor a \(3\) must match the size of tensor b \(2\)"),
    Row(
        "sub-first-dim",
        lambda s: s.m23 - s.m43,
        R,
        r"size of tensor a \(2\) must match the size of tensor b \(4\) at non-singleton dimension 0",
    ),
    Row("compare", lambda s: s.v3 < s.v4, R, r"size of tensor a \(3\) must match"),
    Row("where", lambda s: cd.where(s.mask, s.v3, s.v4), R, r"must match the size of tensor b"),
    Row("maximum", lambda s: cd.maximum(s.v3, s.v4), R, r"must match the size of tensor b"),
    Row(
        "add-inplace-grows",
        lambda s: s.v3.add_(s.m23),
        R,
        r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]",
    ),
    Row("mul-inplace-mismatch", lambda s: s.v3.mul_(s.v4), R, r"must match the size of tensor b"),
    Row("matmul", lambda s: s.m23 @ s.m23, R, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
    Row("matmul-vector", lambda s: s.m23 @ s.v4, R, r"mat1 and mat2 shapes cannot be multiplied|size mismatch"),
    Row("dot", lambda s: s.v3 @ s.v4, R, r"inconsistent tensor size, expected tensor \[3\] and src \[4\]"),
    Row(
        "matmul-scalar",
        lambda s: s.scalar @ s.v3,
        R,
        r"both arguments to matmul need to be at least 1D, but they are 0D and 1D",
    ),
    Row(
        "matmul-batch",
        lambda s: cd.ones(2, 3, 4) @ cd.ones(3, 4, 5),
        R,
        r"size of tensor a \(2\) must match the size of tensor b \(3\)",
    ),
    Row("view", lambda s: s.m23.view(4, 2), R, r"shape '\[4, 2\]' is invalid for input of size 6"),
    Row("reshape", lambda s: s.m23.reshape(5), R, r"shape '\[5\]' is invalid for input of size 6"),
    Row("reshape-two-unknown", lambda s: s.m23.reshape(-1, -1), R, r"only one dimension can be inferred"),
    Row("reshape-negative", lambda s: s.m23.reshape(-2, 3), R, r"invalid shape dimension -2"),
    Row(
        "reshape-to-nothing", lambda s: s.scalar.reshape(0, -1), R, r"shape '\[0, -1\]' is invalid for input of size 1"
    ),
    Row(
        "reshape-ambiguous",
        lambda s: cd.zeros(0).reshape(-1, 0),
        R,
        r"unspecified dimension size -1 can be any value and is ambiguous",
    ),
    Row(
        "view-needs-copy",
        lambda s: s.m23.t().view(6),
        R,
        r"view size is not compatible with input tensor's size and stride",
    ),
    Row(
        "expand-size",
        lambda s: s.v3.expand(4),
        R,
        r"expanded size of the tensor \(4\) must match the existing size \(3\) at non-singleton dimension 0",
    ),
    Row(
        "expand-fewer",
        lambda s: s.m23.expand(3),
        R,
        r"number of sizes provided \(1\) must be greater or equal to the number of dimensions in the tensor \(2\)",
    ),
    Row("expand-unknown", lambda s: s.v3.expand(-1, 3), R, r"isn't allowed in a leading, non-existing dimension"),
    Row("permute-count", lambda s: s.m23.permute(0), R, r"input.dim\(\) = 2 is not equal to len\(dims\) = 1"),
    Row("permute-twice", lambda s: s.m23.permute(0, 0), R, r"duplicate dims are not allowed"),
    Row("t-of-3d", lambda s: cd.ones(2, 2, 2).t(), R, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
    Row("mT-of-1d", lambda s: s.v3.mT, R, r"only supported on matrices or batches of matrices"),
    Row(
        "cat-sizes",
        lambda s: cd.cat([s.m23, s.m32]),
        R,
        r"Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1",
    ),
    Row("cat-ranks", lambda s: cd.cat([s.m23, s.v3]), R, r"Tensors must have same number of dimensions: got 2 and 1"),
    Row(
        "cat-scalars",
        lambda s: cd.cat([s.scalar, s.scalar]),
        R,
        r"zero-dimensional tensor \(at position 0\) cannot be concatenated",
    ),
    Row("cat-nothing", lambda s: cd.cat([]), ValueError, r"expected a non-empty list of Tensors"),
    Row(
        "stack-sizes",
        lambda s: cd.stack([s.v3, s.v4]),
        R,
        r"stack expects each tensor to be equal size, but got \[3\] at entry 0 and \[4\] at entry 1",
    ),
    Row("stack-nothing", lambda s: cd.stack([]), R, r"stack expects a non-empty TensorList"),
    Row("split-sum", lambda s: s.v4.split([1, 2]), R, r"expects split_sizes to sum exactly to 4"),
    Row("split-negative", lambda s: s.v4.split(-1), R, r"expects split_size be non-negative, but got split_size=-1"),
    Row("split-zero", lambda s: s.v4.split(0), R, r"split_size can only be 0 if dimension size is 0"),
    Row("chunk-zero", lambda s: s.v4.chunk(0), R, r"expects `chunks` to be greater than 0, got: 0"),
    Row("copy-size", lambda s: s.v3.copy_(s.v4), R, r"must match the existing size|must match the size"),
    Row("copy-rank", lambda s: s.v3.copy_(s.m23), R, r"must match|number of dimensions|broadcast"),
    Row(
        "gather-rank",
        lambda s: s.m23.gather(0, s.index),
        R,
        r"Index tensor must have the same number of dimensions as input tensor",
    ),
    Row(
        "gather-size",
        lambda s: s.m23.gather(0, cd.zeros(1, 4, dtype=cd.int64)),
        R,
        r"Size does not match at dimension 1",
    ),
    Row(
        "scatter_add-rank",
        lambda s: s.m23.scatter_add(0, s.index, s.m23),
        R,
        r"Index tensor must have the same number of dimensions as self tensor",
    ),
    Row("scatter_add-src", lambda s: s.v4.scatter_add(0, s.index, cd.ones(1)), R, r"to be no larger size than src"),
    Row("tril-of-1d", lambda s: s.v3.tril(), R, r"must have at least 2 dimensions"),
    Row("diagonal-same-dims", lambda s: s.m23.diagonal(0, 1, 1), R, r"diagonal dimensions cannot be identical"),
    Row("unfold-size", lambda s: s.v3.unfold(0, 4, 1), R, r"maximum size for tensor at dimension 0 is 3 but size is 4"),
    Row("unfold-step", lambda s: s.v3.unfold(0, 2, 0), R, r"step is 0 but must be > 0"),
    Row("movedim-counts", lambda s: s.m23.movedim((0, 1), 0), R, r"Invalid source or destination dims"),
    Row("movedim-twice", lambda s: s.m23.movedim((0, 0), (0, 1)), R, r"dim 0 appears multiple times"),
    Row("unflatten", lambda s: s.v4.unflatten(0, (3, 2)), R, r"don't multiply up to the size of dim 0 \(4\)"),
    Row("flatten-order", lambda s: s.m23.flatten(1, 0), R, r"start_dim cannot come after end_dim"),
    Row(
        "narrow-length", lambda s: s.v4.narrow(0, 2, 3), R, r"start \(2\) \+ length \(3\) exceeds dimension size \(4\)"
    ),
    Row("narrow-negative", lambda s: s.v4.narrow(0, 0, -1), R, r"length must be non-negative"),
    Row("roll-align", lambda s: s.m23.roll((1, 2), 0), R, r"shifts and dimensions must align"),
    Row("zeros-negative", lambda s: cd.zeros(2, -1), R, r"negative dimension -1"),
    Row("empty-negative", lambda s: cd.empty(-3), R, r"negative dimension -3"),
    Row("eye-negative", lambda s: cd.eye(-1), R, r"n must be greater or equal to 0, got -1"),
    Row("linspace-negative", lambda s: cd.linspace(0, 1, -1), R, r"number of steps must be non-negative"),
    Row("arange-zero-step", lambda s: cd.arange(0, 3, 0), R, r"step must be nonzero"),
    Row(
        "arange-wrong-way", lambda s: cd.arange(0, 3, -1), R, r"upper bound and lower bound inconsistent with step sign"
    ),
    Row("amax-empty", lambda s: cd.zeros(0).amax(), R, r"Expected reduction dim"),
    Row("argmax-empty", lambda s: cd.zeros(0).argmax(), (R, IndexError), r"Expected reduction dim"),  # type: ignore[arg-type]
    Row(
        "max-empty-dim", lambda s: cd.zeros(2, 0).max(1), IndexError, r"Expected reduction dim 1 to have non-zero size"
    ),
    Row("bool-of-many", lambda s: bool(s.v3), R, r"Boolean value of Tensor with more than one value is ambiguous"),
    Row("bool-of-none", lambda s: bool(cd.zeros(0)), R, r"Boolean value of Tensor with no values is ambiguous"),
    Row("item-of-many", lambda s: s.v3.item(), R, r"a Tensor with 3 elements cannot be converted to Scalar"),
    Row(
        "float-of-many",
        lambda s: float(s.v3),
        ValueError,
        r"only one element tensors can be converted to Python scalars",
    ),
    Row("len-of-scalar", lambda s: len(s.scalar), TypeError, r"len\(\) of a 0-d tensor"),
    Row("iterate-scalar", lambda s: list(s.scalar), TypeError, r"iteration over a 0-d tensor"),
    Row("ragged", lambda s: cd.tensor([[1, 2], [3]]), ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
    Row("huge", lambda s: cd.zeros(1 << 62), R, r"cannot allocate|\[4611686018427387904\]"),
]

"""Invalid calls of overload sets, factories, ``out=`` and memory formats."""

from __future__ import annotations

import candelabra as cd

from tests.core.bad_input.row import Row

I = IndexError  # noqa: E741 - beside R and T
N = NotImplementedError
R = RuntimeError
T = TypeError
ROWS = [
    # factories
    Row("arange-infinite", lambda s: cd.arange(float("inf")), R, r"unsupported range: 0 -> inf"),
    Row("arange-nan", lambda s: cd.arange(0, 3, float("nan")), R, r"unsupported range: 0 -> 3"),
    Row("arange-bool", lambda s: cd.arange(3, dtype=cd.bool), N, r"\"arange\" not implemented for 'Bool'"),
    Row("linspace-bool", lambda s: cd.linspace(0, 1, 3, dtype=cd.bool), N, r"\"linspace\" not implemented for 'Bool'"),
    Row("linspace-steps", lambda s: cd.linspace(0, 1, 2.5), T, r"linspace\(\): argument 'steps' \(position 3\) must be int, not float"),
    Row("logspace-vector", lambda s: cd.logspace(0, s.v3, 3), R, r"logspace only supports 0-dimensional start and end tensors, but got end with 1 dimension\(s\)"),
    Row("linspace-vector", lambda s: cd.linspace(s.v3, 1, 3), R, r"only supports 0-dimensional start and end tensors, but got start with 1 dimension"),
    Row("zeros-layout", lambda s: cd.zeros(2, layout="sparse"), T, r"zeros\(\): argument 'layout' must be candelabra\.layout, not str"),
    Row("zeros-sparse", lambda s: cd.zeros(2, layout=cd.sparse_coo), R, r"zeros\(\): layout candelabra\.sparse_coo is not supported, the only one is candelabra\.strided"),
    Row("zeros-out-dtype", lambda s: cd.zeros(3, dtype=cd.float64, out=s.v3), R, r"dtype Double does not match dtype of out parameter \(Float\)"),
    Row("zeros-format-rank", lambda s: cd.empty(2, 3, memory_format=cd.channels_last), R, r"required rank 4 tensor to use candelabra\.channels_last format"),
    Row("zeros-format-type", lambda s: cd.empty(2, 3, memory_format="last"), T, r"memory_format must be a candelabra\.memory_format, not str"),
    # out=
    Row("stack-out-overlap", lambda s: cd.cat((s.v3, s.v3[:0]), out=s.v3), R, r"unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location"),
    Row("gather-out-dtype", lambda s: cd.gather(s.v3, 0, s.index, out=cd.empty(2, dtype=cd.float64)), R, r"gather\(\): Expected out tensor to have dtype candelabra\.float32, but got candelabra\.float64 instead"),
    Row("out-requires-grad", lambda s: cd.cat((s.v3, s.v4), out=s.leaf), R, r"cat\(\): functions with out=\.\.\. arguments don't support automatic differentiation"),
    Row("pair-out-not-a-pair", lambda s: cd.sort(s.v3, out=s.v4), T, r"sort\(\): argument 'out' must be a tuple of 2 Tensors"),
    Row("pair-out-dtype", lambda s: cd.sort(s.v3, out=(s.v4, s.v4)), R, r"sort\(\): Expected out tensor to have dtype candelabra\.int64, but got candelabra\.float32 instead"),
    Row("complex-out-dtype", lambda s: cd.complex(s.v3, s.v3, out=cd.empty(3, dtype=cd.complex128)), R, r"complex\(\): Expected out tensor to have dtype candelabra\.complex64, but got candelabra\.complex128 instead"),
    # in place
    Row("abs-inplace-complex", lambda s: s.complex.abs_(), R, r"In-place abs is not supported for complex tensors\."),
    Row("isnan-inplace-category", lambda s: s.ints.sqrt_(), R, r"result type Float can't be cast to the desired output type Long"),
    Row("pow-inplace-grows", lambda s: s.ints.float().unsqueeze(0).sub_(cd.ones(2, 3).double()), R, r"output with shape \[1, 3\] doesn't match the broadcast shape \[2, 3\]"),
    # dtypes
    Row("result-type-of-nothing", lambda s: cd.result_type(None, None), T, r"result_type\(\): argument 'tensor1' \(position 1\) must be Tensor or Number, not NoneType"),
    Row("mean-named-dtype", lambda s: cd.mean(s.ints, dtype=cd.int32), R, r"\"mean\" not implemented for 'Long': it takes floating dtypes"),
    Row("mean-of-floats-as-ints", lambda s: cd.mean(s.v3, dtype=cd.int32), R, r"mean\(\): could not infer output dtype\. Optional dtype must be either a floating point or complex dtype\. Got: Int"),
    # indices and masks
    Row("index-select-dtype", lambda s: cd.index_select(s.v3, 0, s.v3), R, r"index_select\(\): Expected dtype int64 for index, got candelabra\.float32"),
    Row("index-put-too-many", lambda s: s.v3.index_put_((s.index, s.index), s.scalar), I, r"too many indices for tensor of dimension 1 \(got 2\)"),
    Row("index-too-many", lambda s: s.v3[s.index, s.index], I, r"too many indices for tensor of dimension 1"),
    Row("index-add-source", lambda s: s.v3.index_add_(0, s.index, s.v4), R, r"index_add\(\): Number of indices \(2\) should be equal to source\.size\(dim\): \(4\), for dim: 0"),
    Row("index-add-source-rows", lambda s: s.m23.index_add_(0, s.index, s.m43[:2, :2]), R, r"source tensor shape must match self tensor shape, excluding the specified dimension\. Got self\.shape = \[2, 3\] source\.shape = \[2, 2\]"),
    Row("index-add-matrix", lambda s: s.v3.index_add(0, cd.tensor([[0]]), s.v3), I, r"index_add\(\): Index is supposed to be a vector, but got 2 dims"),
    Row("index-fill-dtype", lambda s: s.v3.index_fill(0, s.v3, 1.0), R, r"index_fill\(\): Expected dtype int64 for index, got candelabra\.float32"),
    Row("index-fill-complex", lambda s: s.v3.index_fill_(0, s.index, 1j), R, r"value cannot be converted to type float without overflow"),
    Row("index-copy-dtype", lambda s: s.v3.index_copy_(0, s.v3, s.v3), R, r"index_copy\(\): Expected dtype int64 for index, got candelabra\.float32"),
    Row("masked-select-floats", lambda s: cd.masked_select(s.v3, s.v3), R, r"masked_select\(\): mask expected to be a boolean tensor, but got a tensor with dtype candelabra\.float32"),
    Row("masked-scatter-ints", lambda s: s.v3.masked_scatter_(s.ints, s.v4), R, r"masked_scatter\(\): mask expected to be a boolean tensor, but got a tensor with dtype candelabra\.int64"),
    # shapes
    Row("narrow-start-vector", lambda s: cd.narrow(s.v3, 0, s.index, 1), R, r"start must be an 0-dim integral Tensor\."),
    Row("flip-twice", lambda s: s.m23.flip(1, -1), R, r"dim 1 appears multiple times in the list of dims"),
    Row("contiguous-preserve", lambda s: s.m23.t().contiguous(memory_format=cd.preserve_format), R, r"preserve memory format is unsupported by the contiguous operator"),
    Row("unfold-negative", lambda s: s.v4.unfold(0, -1, 1), R, r"size is -1 but must be >= 0"),
    Row("unfold-scalar", lambda s: s.scalar.unfold(0, 2, 1), R, r"maximum size for tensor at dimension 0 is 1 but size is 2"),
    Row("roll-scalar", lambda s: s.scalar.roll(1, 0), I, r"Dimension specified as 0 but tensor has no dimensions"),
    Row("roll-dim", lambda s: s.m23.roll(1, 2), I, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
    Row("roll-nothing", lambda s: s.m23.roll((), 0), R, r"`shifts` required"),
    Row("split-at-a-float", lambda s: s.v4.tensor_split(2.0), T, r"tensor_split\(\): argument 'indices_or_sections' must be int or tuple of ints, not float"),
    # data
    Row("tensor-of-rows-and-texts", lambda s: cd.tensor([[1, 2], "ab"]), T, r"not a sequence"),
    # records called with other types than tensors
    Row("stack-with-a-number", lambda s: cd.stack([s.v3, 1]), T, r"expected Tensor as element 1 in argument 'tensors', but got int"),
    Row("cat-with-a-number", lambda s: cd.cat([s.v3[:0], s.m23, 1]), T, r"expected Tensor as element 2 in argument 'tensors', but got int"),
    Row("stack-of-a-tensor", lambda s: cd.stack(s.m23), T, r"stack\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor"),
    Row("gather-index-number", lambda s: cd.gather(s.v3, 0, 1), T, r"gather\(\): argument 'index' (\(position 3\) )?must be Tensor, not int"),
    Row("hook-without-grad", lambda s: s.v3.register_post_accumulate_grad_hook(print), R, r"cannot register a hook on a tensor that doesn't require gradient"),
]  # fmt: skip

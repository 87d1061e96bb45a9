"""Arguments of the wrong type, dims out of range, dtypes that an operator refuses."""

from __future__ import annotations

import candelabra as cd

from tests.core.bad_input.row import Row

R = RuntimeError
T = TypeError
ROWS = [
    Row(
        "add-string",
        lambda s: cd.add(s.v3, "1"),
        T,
        r"add\(\): argument 'other' \(position 2\) must be Tensor or Number, not str",
    ),
    Row("plus-string", lambda s: s.v3 + "1", T, r"unsupported operand type\(s\) for \+"),
    Row("plus-none", lambda s: s.v3 + None, T, r"unsupported operand type\(s\) for \+"),
    Row("reflected-string", lambda s: "1" - s.v3, T, r"unsupported operand type\(s\) for -"),
    Row("less-than-string", lambda s: s.v3 < "1", T, r"not supported between instances"),
    Row("exp-number", lambda s: cd.exp(1.0), T, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not float"),
    Row("exp-none", lambda s: cd.exp(None), T, r"must be Tensor, not NoneType"),
    Row(
        "matmul-list",
        lambda s: cd.matmul(s.m23, [1.0]),
        T,
        r"matmul\(\): argument 'other' \(position 2\) must be Tensor, not list",
    ),
    Row("all-numbers", lambda s: cd.mul(2, 3), T, r"at least one argument must be a Tensor"),
    Row("missing-argument", lambda s: cd.mul(s.v3), T, r"missing 1 required positional argument: 'other'"),
    Row("unknown-keyword", lambda s: cd.exp(s.v3, dims=1), T, r"unexpected keyword argument 'dims'"),
    Row(
        "cat-tensor",
        lambda s: cd.cat(s.v3),
        T,
        r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
    ),
    Row(
        "cat-numbers",
        lambda s: cd.cat([s.v3, 1]),
        T,
        r"expected Tensor as element 1 in argument 'tensors', but got int",
    ),
    Row(
        "sum-dim-range",
        lambda s: s.m23.sum(2),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
    ),
    Row("sum-dim-low", lambda s: s.m23.sum(-3), IndexError, r"but got -3"),
    Row("sum-dim-twice", lambda s: s.m23.sum((0, 0)), R, r"dim 0 appears multiple times in the list of dims"),
    Row("sum-dim-twice-negative", lambda s: s.m23.sum((1, -1)), R, r"dim 1 appears multiple times in the list of dims"),
    Row("sum-dim-string", lambda s: s.m23.sum("rows"), T, r"argument 'dim' must be int, not str"),
    Row("sum-dim-float", lambda s: s.m23.sum(1.0), T, r"argument 'dim' must be int, not float"),
    Row("sum-dim-bool", lambda s: s.m23.sum(True), T, r"argument 'dim' must be int, not bool"),
    Row("argmax-dim", lambda s: s.m23.argmax(2), IndexError, r"Dimension out of range"),
    Row("cumsum-dim", lambda s: s.m23.cumsum(5), IndexError, r"Dimension out of range"),
    Row("softmax-dim", lambda s: cd.softmax(s.m23, 3), IndexError, r"Dimension out of range"),
    Row("transpose-dim", lambda s: s.m23.transpose(0, 2), IndexError, r"Dimension out of range"),
    Row(
        "unsqueeze-dim",
        lambda s: s.m23.unsqueeze(4),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 4\)",
    ),
    Row("squeeze-dim", lambda s: s.m23.squeeze(2), IndexError, r"Dimension out of range"),
    Row("stack-dim", lambda s: cd.stack([s.v3], 2), IndexError, r"Dimension out of range"),
    Row("cat-dim", lambda s: cd.cat([s.v3], 1), IndexError, r"Dimension out of range"),
    Row("size-dim", lambda s: s.m23.size(2), IndexError, r"Dimension out of range"),
    Row("size-of-scalar", lambda s: s.scalar.size(0), IndexError, r"tensor has no dimensions"),
    Row("zeros-float-size", lambda s: cd.zeros(2.0), T, r"must be an int or a tuple of ints, but found float"),
    Row("zeros-string-size", lambda s: cd.zeros("2"), T, r"must be an int or a tuple of ints, but found str"),
    Row("dtype-string", lambda s: cd.zeros(2, dtype="float32"), T, r"dtype must be a candelabra.dtype, not str"),
    Row("sum-dtype", lambda s: s.v3.sum(dtype=3), T, r"dtype must be a candelabra.dtype, not int"),
    Row(
        "sub-bools",
        lambda s: s.mask - s.mask,
        R,
        r"Subtraction, the `-` operator, with two bool tensors is not supported\. Use the `\^`",
    ),
    Row(
        "sub-bool-from-ints",
        lambda s: s.ints - s.mask,
        R,
        r"Subtraction, the `-` operator, with a bool tensor is not supported\. If you are",
    ),
    Row(
        "sub-number-from-bools",
        lambda s: s.mask - 1,
        R,
        r"Subtraction, the `-` operator, with a bool tensor is not supported",
    ),
    Row(
        "sub-bools-from-number",
        lambda s: 1.5 - s.mask,
        R,
        r"Subtraction, the `-` operator, with a bool tensor is not supported",
    ),
    Row(
        "sub-bools-times",
        lambda s: s.v3.sub(s.mask, alpha=2),
        R,
        r"Subtraction, the `-` operator, with a bool tensor is not supported",
    ),
    Row(
        "sub-true-from-bools",
        lambda s: s.mask - True,
        R,
        r"Subtraction, the `-` operator, with two bool tensors is not supported",
    ),
    Row(
        "sub-true", lambda s: s.v3.sub_(True), R, r"Subtraction, the `-` operator, with a bool tensor is not supported"
    ),
    Row(
        "neg-bool",
        lambda s: -s.mask,
        R,
        r"Negation, the `-` operator, on a bool tensor is not supported\. If you are trying to invert a mask",
    ),
    Row("floor-complex", lambda s: cd.floor(s.complex), R, r"\"floor\" not implemented for 'ComplexFloat'"),
    Row("less-complex", lambda s: s.complex < s.complex, R, r"\"lt\" not implemented for 'ComplexFloat'"),
    Row("maximum-complex", lambda s: cd.maximum(s.complex, s.complex), R, r"not implemented for 'ComplexFloat'"),
    Row("and-floats", lambda s: s.v3 & s.v3, R, r"\"bitwise_and\" not implemented for 'Float'"),
    Row("invert-float", lambda s: ~s.v3, R, r"\"bitwise_not\" not implemented for 'Float'"),
    Row("shift-float", lambda s: s.v3 << 1, R, r"\"bitwise_left_shift\" not implemented for 'Float'"),
    Row("mean-int", lambda s: s.ints.mean(), R, r"\"mean\" not implemented for 'Long'"),
    Row("var-int", lambda s: s.ints.var(), R, r"\"var\" not implemented for 'Long'"),
    Row("argmax-complex", lambda s: s.complex.argmax(), R, r"not implemented for 'ComplexFloat'"),
    Row("imag-real", lambda s: s.v3.imag, R, r"imag is not implemented for tensors with non-complex dtypes"),
    Row(
        "view_as_real-real", lambda s: cd.view_as_real(s.v3), R, r"not implemented for 'Float': it takes complex dtypes"
    ),
    Row(
        "add-inplace-category",
        lambda s: s.ints.add_(1.5),
        R,
        r"result type Float can't be cast to the desired output type Long",
    ),
    Row(
        "div-inplace-int",
        lambda s: s.ints.div_(2),
        R,
        r"result type Float can't be cast to the desired output type Long",
    ),
    Row(
        "exp-inplace-int",
        lambda s: s.ints.exp_(),
        R,
        r"result type Float can't be cast to the desired output type Long",
    ),
    Row(
        "mul-inplace-bool",
        lambda s: s.mask.mul_(2),
        R,
        r"result type Long can't be cast to the desired output type Bool",
    ),
    Row(
        "out-category",
        lambda s: cd.exp(s.v3, out=s.ints),
        R,
        r"result type Float can't be cast to the desired output type Long",
    ),
    Row("out-type", lambda s: cd.exp(s.v3, out=[1]), T, r"argument 'out' must be Tensor, not list"),
    Row("out-grad", lambda s: cd.exp(s.leaf, out=s.v3), R, r"don't support automatic differentiation"),
    Row(
        "uint64-int64",
        lambda s: cd.zeros(2, dtype=cd.uint64) + s.ints[:2],
        T,
        r"promotion of candelabra.uint64 and candelabra.int64 is not defined",
    ),
    Row("gather-float-index", lambda s: s.v3.gather(0, s.v3), R, r"gather\(\): Expected dtype int64 for index"),
    Row(
        "gather-list-index", lambda s: s.v3.gather(0, [0]), T, r"gather\(\): argument 'index' must be Tensor, not list"
    ),
    Row(
        "where-int-mask",
        lambda s: cd.where(s.ints, s.v3, s.v3),
        R,
        r"condition expected to be a boolean tensor, but got a tensor with dtype candelabra.int64",
    ),
    Row(
        "masked_fill-float-mask",
        lambda s: s.v3.masked_fill(s.v3, 1),
        R,
        r"masked_fill\(\): mask expected to be a boolean tensor, but got a tensor with dtype",
    ),
    Row("int-division-by-zero", lambda s: s.ints // 0, (ZeroDivisionError, R), r"ZeroDivisionError|division by zero"),  # type: ignore[arg-type]
    Row("int-remainder-by-zero", lambda s: s.ints % 0, (ZeroDivisionError, R), r"ZeroDivisionError|by zero"),  # type: ignore[arg-type]
    Row("int-negative-power", lambda s: s.ints**-1, R, r"Integers to negative integer powers are not allowed"),
    Row(
        "div-rounding",
        lambda s: cd.div(s.v3, s.v3, rounding_mode="up"),
        R,
        r"expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    Row("clamp-nothing", lambda s: s.v3.clamp(), R, r"At least one of 'min' or 'max' must not be None"),
    Row(
        "fill-vector",
        lambda s: s.v3.fill_(s.v4),
        R,
        r"fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions",
    ),
    Row(
        "default-dtype-int",
        lambda s: cd.set_default_dtype(cd.int64),
        T,
        r"only floating-point types are supported as the default type",
    ),
    Row("finfo-int", lambda s: cd.finfo(cd.int64), T, r"requires a floating point input type"),
    Row("iinfo-float", lambda s: cd.iinfo(cd.float32), T, r"requires an integer input type"),
    Row("tensor-of-object", lambda s: cd.tensor([object()]), (T, R), r"object"),  # type: ignore[arg-type]
    Row("tensor-of-string", lambda s: cd.tensor("abc"), T, r"str"),
    Row("contains-string", lambda s: "a" in s.v3, R, r"only supports Tensor or scalar"),
    Row("hashable-index-float", lambda s: s.v3[1.5], IndexError, r"only integers, slices"),
]

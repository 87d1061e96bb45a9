"""The Python Array API standard, 2025.12: its names, signatures and semantics over candelabra's tensors.

The arrays are :class:`~candelabra.Tensor` objects of the class :class:`Array`, whose operators and indexing follow the
standard; functions take any tensor and return arrays. They live on any device and are differentiable.
"""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from candelabra._size import newaxis as newaxis
from candelabra.array_api import fft as fft
from candelabra.array_api import linalg as linalg
from candelabra.array_api._array import Array as Array
from candelabra.array_api._creation import arange as arange
from candelabra.array_api._creation import asarray as asarray
from candelabra.array_api._creation import empty as empty
from candelabra.array_api._creation import empty_like as empty_like
from candelabra.array_api._creation import eye as eye
from candelabra.array_api._creation import from_dlpack as from_dlpack
from candelabra.array_api._creation import full as full
from candelabra.array_api._creation import full_like as full_like
from candelabra.array_api._creation import linspace as linspace
from candelabra.array_api._creation import meshgrid as meshgrid
from candelabra.array_api._creation import ones as ones
from candelabra.array_api._creation import ones_like as ones_like
from candelabra.array_api._creation import tril as tril
from candelabra.array_api._creation import triu as triu
from candelabra.array_api._creation import zeros as zeros
from candelabra.array_api._creation import zeros_like as zeros_like
from candelabra.array_api._data_types import astype as astype
from candelabra.array_api._data_types import can_cast as can_cast
from candelabra.array_api._data_types import finfo as finfo
from candelabra.array_api._data_types import iinfo as iinfo
from candelabra.array_api._data_types import isdtype as isdtype
from candelabra.array_api._data_types import result_type as result_type
from candelabra.array_api._elementwise import abs as abs
from candelabra.array_api._elementwise import acos as acos
from candelabra.array_api._elementwise import acosh as acosh
from candelabra.array_api._elementwise import add as add
from candelabra.array_api._elementwise import asin as asin
from candelabra.array_api._elementwise import asinh as asinh
from candelabra.array_api._elementwise import atan as atan
from candelabra.array_api._elementwise import atan2 as atan2
from candelabra.array_api._elementwise import atanh as atanh
from candelabra.array_api._elementwise import bitwise_and as bitwise_and
from candelabra.array_api._elementwise import bitwise_invert as bitwise_invert
from candelabra.array_api._elementwise import bitwise_left_shift as bitwise_left_shift
from candelabra.array_api._elementwise import bitwise_or as bitwise_or
from candelabra.array_api._elementwise import bitwise_right_shift as bitwise_right_shift
from candelabra.array_api._elementwise import bitwise_xor as bitwise_xor
from candelabra.array_api._elementwise import ceil as ceil
from candelabra.array_api._elementwise import clip as clip
from candelabra.array_api._elementwise import conj as conj
from candelabra.array_api._elementwise import copysign as copysign
from candelabra.array_api._elementwise import cos as cos
from candelabra.array_api._elementwise import cosh as cosh
from candelabra.array_api._elementwise import divide as divide
from candelabra.array_api._elementwise import equal as equal
from candelabra.array_api._elementwise import exp as exp
from candelabra.array_api._elementwise import expm1 as expm1
from candelabra.array_api._elementwise import floor as floor
from candelabra.array_api._elementwise import floor_divide as floor_divide
from candelabra.array_api._elementwise import greater as greater
from candelabra.array_api._elementwise import greater_equal as greater_equal
from candelabra.array_api._elementwise import hypot as hypot
from candelabra.array_api._elementwise import imag as imag
from candelabra.array_api._elementwise import isfinite as isfinite
from candelabra.array_api._elementwise import isinf as isinf
from candelabra.array_api._elementwise import isnan as isnan
from candelabra.array_api._elementwise import less as less
from candelabra.array_api._elementwise import less_equal as less_equal
from candelabra.array_api._elementwise import log as log
from candelabra.array_api._elementwise import log1p as log1p
from candelabra.array_api._elementwise import log2 as log2
from candelabra.array_api._elementwise import log10 as log10
from candelabra.array_api._elementwise import logaddexp as logaddexp
from candelabra.array_api._elementwise import logical_and as logical_and
from candelabra.array_api._elementwise import logical_not as logical_not
from candelabra.array_api._elementwise import logical_or as logical_or
from candelabra.array_api._elementwise import logical_xor as logical_xor
from candelabra.array_api._elementwise import maximum as maximum
from candelabra.array_api._elementwise import minimum as minimum
from candelabra.array_api._elementwise import multiply as multiply
from candelabra.array_api._elementwise import negative as negative
from candelabra.array_api._elementwise import nextafter as nextafter
from candelabra.array_api._elementwise import not_equal as not_equal
from candelabra.array_api._elementwise import positive as positive
from candelabra.array_api._elementwise import pow as pow
from candelabra.array_api._elementwise import real as real
from candelabra.array_api._elementwise import reciprocal as reciprocal
from candelabra.array_api._elementwise import remainder as remainder
from candelabra.array_api._elementwise import round as round
from candelabra.array_api._elementwise import sign as sign
from candelabra.array_api._elementwise import signbit as signbit
from candelabra.array_api._elementwise import sin as sin
from candelabra.array_api._elementwise import sinh as sinh
from candelabra.array_api._elementwise import sqrt as sqrt
from candelabra.array_api._elementwise import square as square
from candelabra.array_api._elementwise import subtract as subtract
from candelabra.array_api._elementwise import tan as tan
from candelabra.array_api._elementwise import tanh as tanh
from candelabra.array_api._elementwise import trunc as trunc
from candelabra.array_api._info import __array_namespace_info__ as __array_namespace_info__
from candelabra.array_api._manipulation import broadcast_arrays as broadcast_arrays
from candelabra.array_api._manipulation import broadcast_shapes as broadcast_shapes
from candelabra.array_api._manipulation import broadcast_to as broadcast_to
from candelabra.array_api._manipulation import concat as concat
from candelabra.array_api._manipulation import expand_dims as expand_dims
from candelabra.array_api._manipulation import flip as flip
from candelabra.array_api._manipulation import matrix_transpose as matrix_transpose
from candelabra.array_api._manipulation import moveaxis as moveaxis
from candelabra.array_api._manipulation import permute_dims as permute_dims
from candelabra.array_api._manipulation import repeat as repeat
from candelabra.array_api._manipulation import reshape as reshape
from candelabra.array_api._manipulation import roll as roll
from candelabra.array_api._manipulation import squeeze as squeeze
from candelabra.array_api._manipulation import stack as stack
from candelabra.array_api._manipulation import tile as tile
from candelabra.array_api._manipulation import unstack as unstack
from candelabra.array_api._searching import argmax as argmax
from candelabra.array_api._searching import argmin as argmin
from candelabra.array_api._searching import argsort as argsort
from candelabra.array_api._searching import isin as isin
from candelabra.array_api._searching import nonzero as nonzero
from candelabra.array_api._searching import searchsorted as searchsorted
from candelabra.array_api._searching import sort as sort
from candelabra.array_api._searching import take as take
from candelabra.array_api._searching import take_along_axis as take_along_axis
from candelabra.array_api._searching import unique_all as unique_all
from candelabra.array_api._searching import unique_counts as unique_counts
from candelabra.array_api._searching import unique_inverse as unique_inverse
from candelabra.array_api._searching import unique_values as unique_values
from candelabra.array_api._searching import where as where
from candelabra.array_api._statistical import all as all
from candelabra.array_api._statistical import any as any
from candelabra.array_api._statistical import count_nonzero as count_nonzero
from candelabra.array_api._statistical import cumulative_prod as cumulative_prod
from candelabra.array_api._statistical import cumulative_sum as cumulative_sum
from candelabra.array_api._statistical import diff as diff
from candelabra.array_api._statistical import max as max
from candelabra.array_api._statistical import mean as mean
from candelabra.array_api._statistical import min as min
from candelabra.array_api._statistical import prod as prod
from candelabra.array_api._statistical import std as std
from candelabra.array_api._statistical import sum as sum
from candelabra.array_api._statistical import var as var
from candelabra.array_api.linalg import matmul as matmul
from candelabra.array_api.linalg import tensordot as tensordot
from candelabra.array_api.linalg import vecdot as vecdot
from candelabra.dtypes import bool_
from candelabra.dtypes import complex64 as complex64
from candelabra.dtypes import complex128 as complex128
from candelabra.dtypes import float32 as float32
from candelabra.dtypes import float64 as float64
from candelabra.dtypes import int8 as int8
from candelabra.dtypes import int16 as int16
from candelabra.dtypes import int32 as int32
from candelabra.dtypes import int64 as int64
from candelabra.dtypes import uint8 as uint8
from candelabra.dtypes import uint16 as uint16
from candelabra.dtypes import uint32 as uint32
from candelabra.dtypes import uint64 as uint64

bool = bool_
__array_api_version__ = "2025.12"

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "abs", "acos", "acosh", "add", "all", "any", "arange",
    "argmax", "argmin", "argsort", "Array", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "ceil", "clip", "complex128",
    "complex64", "concat", "conj", "copysign", "cos", "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum",
    "diff", "divide", "e", "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "fft", "finfo",
    "flip", "float32", "float64", "floor", "floor_divide", "from_dlpack", "full", "full_like", "greater",
    "greater_equal", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int64", "int8", "isdtype", "isfinite",
    "isin", "isinf", "isnan", "less", "less_equal", "linalg", "linspace", "log", "log10", "log1p", "log2",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max",
    "maximum", "mean", "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis",
    "nextafter", "nonzero", "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod",
    "real", "reciprocal", "remainder", "repeat", "reshape", "result_type", "roll", "round", "searchsorted", "sign",
    "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc", "uint16", "uint32", "uint64",
    "uint8", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where",
    "zeros", "zeros_like",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)

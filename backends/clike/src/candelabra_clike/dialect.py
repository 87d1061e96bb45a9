"""The languages of kernels.

The text of a kernel is the same in all languages: C with the following words, which the preamble of a dialect defines.
Another C-like language needs another :class:`Dialect`.

========================================  ==============================================================
``i8`` … ``u64``, ``f32``, ``f64``        numbers, of the same size on every device
``c64``, ``c128``                         complex numbers with parts ``.x`` and ``.y``; created by ``C64(re, im)``
``KERNEL``, ``FUNCTION``                  the qualifiers of an entry point and of a library function
``GLOBAL``, ``LOCAL``, ``CONSTANT``       memory of the device, memory of a work-group, tables in the program
``GLOBAL_ID``, ``LOCAL_ID``, ``GROUP_ID`` ids of the work-item along dim 0 (along dims 1 and 2: ``GROUP_ID_1`` …)
``GROUP_SIZE``, ``GLOBAL_SIZE``           the numbers of work-items in the group and in the launch
``BARRIER``                               a barrier of the work-group, which also orders its memory accesses
``REQUIRED_GROUP(n)``                     between ``KERNEL`` and ``void``: the work-group size at compile time
``BITS_F32(u)``, ``BITS_U32(f)``          an integer's bits as a float, and vice versa (``F64``, ``U64`` too)
``MULTIPLY_HIGH(a, b)``                   the upper 64 bits of a product of two ``u64``
``SQRT_F32(x)``, ``DIVIDE_F32(a, b)``     correctly rounded (``F64`` too)
``FMA_F32(a, b, c)``                      fused multiply-add, if the device has it (``F64`` too)
``COMPARE_AND_SWAP(address, old, new)``   atomic compare and swap of a ``GLOBAL u32``; returns the old value
``ATOMIC_ADD_U32(address, value)``        atomic addition to a ``GLOBAL u32``; returns the old value
``UNROLL``                                before a loop with a constant number of iterations
``INDEPENDENT``                           before a loop without dependencies between iterations. Some drivers vectorise
                                          no other loop, and only loops of the form ``for (int j = 0; j < n; ++j)`` over
                                          pointers to the first element
``INDEPENDENT_FEW``                       the same, for fewer iterations than a vector has lanes ``f32x8`` … ``u64x8``
vectors of eight, in the forms for ``serial`` devices: not in all dialects ``LOAD_X8(f32, p)``                       a
vector load from device memory, aligned like one element ``STORE_X8(f32, p, v)``                   a vector store to
device memory ``PRIVATE_X8(f32, p)``                    a vector in an array of the work-item, to read or to write
``AS_F32X8(v)``, ``BITS_F32X8(v)``        a vector converted to another type, the bits of a vector as another type
``CACHE_LINE``                            a type of 64 bytes ``STORE_NONTEMPORAL(address, line)``      a store to an
aligned address that bypasses the caches, if the driver allows it ========================================
==============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """A language of kernels. ``preamble`` defines the words above; the options are those of its compiler."""

    name: str
    preamble: str
    float64: str = ""
    """The part of the preamble for devices with float64."""
    exact: str = ""
    """A pragma at the start of programs that must not contract ``a * b + c``."""
    exact_options: Sequence[str] = ()
    """The compiler options of such programs: all except those with polynomials and matrix products."""
    options: Sequence[str] = ()
    """The compiler options of every program."""
    rounding: Sequence[str] = ()
    """The compiler options for correctly rounded division and square root, for devices that support them."""
    processor: Sequence[str] = ()
    """The compiler options for devices that are the host's processor."""
    rounds_up: bool = False
    """Whether launches consist of whole work-groups. A source without ``group`` then gets the number of work-items as
    its last
    argument, and work-items beyond that number return."""


_IDS = """
#define GLOBAL_ID   ((INDEX)get_global_id(0))
#define GLOBAL_SIZE ((INDEX)get_global_size(0))
#define GROUP_SIZE  ((u32)get_local_size(0))
#define LOCAL_ID    ((u32)get_local_id(0))
#define LOCAL_ID_1  ((u32)get_local_id(1))
#define GROUP_ID    ((INDEX)get_group_id(0))
#define GROUP_ID_1  ((INDEX)get_group_id(1))
#define GROUP_ID_2  ((INDEX)get_group_id(2))
"""

# Some CPU drivers do not vectorise loops, so kernels that must be fast everywhere use explicit vectors.
_VECTORS = """
#define VECTOR(type, name) typedef name##8 type##x8; \\
    typedef name##8 __attribute__((aligned(sizeof(name)))) type##x8_at;
VECTOR(i8, char) VECTOR(i16, short) VECTOR(i32, int) VECTOR(i64, long)
VECTOR(u8, uchar) VECTOR(u16, ushort) VECTOR(u32, uint) VECTOR(u64, ulong) VECTOR(f32, float)
#define LOAD_X8(type, p) (*(__global const type##x8_at*)(p))
#define STORE_X8(type, p, v) (*(__global type##x8_at*)(p) = (v))
#define PRIVATE_X8(type, p) (*(type##x8_at*)(p))
#define AS_I8X8(v) convert_char8(v)
#define AS_U8X8(v) convert_uchar8(v)
#define AS_I16X8(v) convert_short8(v)
#define AS_U16X8(v) convert_ushort8(v)
#define AS_I32X8(v) convert_int8(v)
#define AS_U32X8(v) convert_uint8(v)
#define AS_I64X8(v) convert_long8(v)
#define AS_U64X8(v) convert_ulong8(v)
#define AS_F32X8(v) convert_float8(v)
#define BITS_F32X8(v) as_float8(v)
#define BITS_U32X8(v) as_uint8(v)
#define BITS_I32X8(v) as_int8(v)
typedef uint16 CACHE_LINE;
#if defined(__clang__) && defined(PROCESSOR)
#define STORE_NONTEMPORAL(address, line) __builtin_nontemporal_store(line, address)
#else
#define STORE_NONTEMPORAL(address, line) (*(address) = (line))
#endif
"""

OPENCL = Dialect(
    "OpenCL C",
    """
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define C64(re, im) ((float2)((re), (im)))
#define KERNEL __kernel
#define REQUIRED_GROUP(n) __attribute__((reqd_work_group_size(n, 1, 1)))
#define FUNCTION static inline
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define BITS_F32(u) as_float((u32)(u))
#define BITS_U32(f) as_uint((f32)(f))
#define MULTIPLY_HIGH(a, b) mul_hi((u64)(a), (u64)(b))
#if defined(__clang__) && defined(PROCESSOR)
/* An instruction on the processor; the library's function is a call for every number. */
#define SQRT_F32(x) __builtin_sqrtf((f32)(x))
#define SQRT_F64(x) __builtin_sqrt((f64)(x))
#else
#define SQRT_F32(x) sqrt((f32)(x))
#define SQRT_F64(x) sqrt((f64)(x))
#endif
#if defined(__FMA__) && defined(PROCESSOR)
#define FMA_F32(a, b, c) __builtin_fmaf((f32)(a), (f32)(b), (f32)(c))
#define FMA_F64(a, b, c) __builtin_fma((f64)(a), (f64)(b), (f64)(c))
#else
#define FMA_F32(a, b, c) fma((f32)(a), (f32)(b), (f32)(c))
#define FMA_F64(a, b, c) fma((f64)(a), (f64)(b), (f64)(c))
#endif
#define DIVIDE_F32(a, b) ((f32)(a) / (f32)(b))
#define COMPARE_AND_SWAP(address, old, new) atomic_cmpxchg((volatile __global u32*)(address), (u32)(old), (u32)(new))
#define ATOMIC_ADD_U32(address, value) atomic_add((volatile __global u32*)(address), (u32)(value))
#define UNROLL _Pragma("unroll")
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define INDEPENDENT_FEW _Pragma("clang loop vectorize(assume_safety) vectorize_predicate(enable)")
"""
    + _IDS
    + _VECTORS,
    """
typedef double f64; typedef double2 c128;
VECTOR(f64, double)
#define AS_F64X8(v) convert_double8(v)
#define BITS_F64X8(v) as_double8(v)
#define C128(re, im) ((double2)((re), (im)))
#define BITS_F64(u) as_double((u64)(u))
#define BITS_U64(f) as_ulong((f64)(f))
#define DIVIDE_F64(a, b) ((f64)(a) / (f64)(b))
""",
    exact="#pragma OPENCL FP_CONTRACT OFF\n",
    options=("-cl-std=CL1.2",),
    rounding=("-cl-fp32-correctly-rounded-divide-sqrt",),
    processor=("-DPROCESSOR",),
)

CUDA = Dialect(
    "CUDA C++",
    """
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32; typedef float2 c64;
#define C64(re, im) make_float2((re), (im))
#define KERNEL extern "C" __global__
#define REQUIRED_GROUP(n) __launch_bounds__(n)
#define FUNCTION static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define CONSTANT __constant__
#define BARRIER __syncthreads()
#define BITS_F32(u) __uint_as_float((u32)(u))
#define BITS_U32(f) __float_as_uint((f32)(f))
#define MULTIPLY_HIGH(a, b) __umul64hi((u64)(a), (u64)(b))
#define SQRT_F32(x) __fsqrt_rn((f32)(x))
#define DIVIDE_F32(a, b) __fdiv_rn((f32)(a), (f32)(b))
#define FMA_F32(a, b, c) __fmaf_rn((f32)(a), (f32)(b), (f32)(c))
#define COMPARE_AND_SWAP(address, old, new) atomicCAS((u32*)(address), (u32)(old), (u32)(new))
#define ATOMIC_ADD_U32(address, value) atomicAdd((u32*)(address), (u32)(value))
#define UNROLL _Pragma("unroll")
#define INDEPENDENT
#define INDEPENDENT_FEW
#define GLOBAL_ID   ((INDEX)blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_SIZE ((INDEX)gridDim.x * blockDim.x)
#define GROUP_SIZE  ((u32)blockDim.x)
#define LOCAL_ID    ((u32)threadIdx.x)
#define LOCAL_ID_1  ((u32)threadIdx.y)
#define GROUP_ID    ((INDEX)blockIdx.x)
#define GROUP_ID_1  ((INDEX)blockIdx.y)
#define GROUP_ID_2  ((INDEX)blockIdx.z)
FUNCTION c64 operator-(c64 a) { return C64(-a.x, -a.y); }
FUNCTION c64 operator+(c64 a, c64 b) { return C64(a.x + b.x, a.y + b.y); }
FUNCTION c64 operator-(c64 a, c64 b) { return C64(a.x - b.x, a.y - b.y); }
""",
    """
typedef double f64; typedef double2 c128;
#define C128(re, im) make_double2((re), (im))
#define BITS_F64(u) __longlong_as_double((i64)(u))
#define BITS_U64(f) ((u64)__double_as_longlong((f64)(f)))
#define SQRT_F64(x) __dsqrt_rn((f64)(x))
#define DIVIDE_F64(a, b) __ddiv_rn((f64)(a), (f64)(b))
#define FMA_F64(a, b, c) __fma_rn((f64)(a), (f64)(b), (f64)(c))
FUNCTION c128 operator-(c128 a) { return C128(-a.x, -a.y); }
FUNCTION c128 operator+(c128 a, c128 b) { return C128(a.x + b.x, a.y + b.y); }
FUNCTION c128 operator-(c128 a, c128 b) { return C128(a.x - b.x, a.y - b.y); }
""",
    options=("-std=c++17",),
    exact_options=("-fmad=false",),
    rounds_up=True,
)

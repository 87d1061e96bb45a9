"""OpenCL C, as the words of :mod:`candelabra_clike.dialect`."""

from __future__ import annotations

from candelabra_clike.dialect import Dialect

_IDS = """
#define UNLIKELY(condition) (condition)
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
typedef uint4 BYTES_16; typedef uint2 BYTES_8;
#define VECTOR16(type, name) typedef name##16 type##x16; \
    typedef name##16 __attribute__((aligned(sizeof(name)))) type##x16_at;
VECTOR16(u32, uint) VECTOR16(f32, float)
#define LOAD_X16(type, p) (*(__global const type##x16_at*)(p))
#define STORE_X16(type, p, v) (*(__global type##x16_at*)(p) = (v))
#define PRIVATE_X16(type, p) (*(type##x16_at*)(p))
#define BITS_F32X16(v) as_float16(v)
#define BITS_U32X16(v) as_uint16(v)
#if defined(__clang__) && defined(PROCESSOR)
#define PREFETCH(address) __builtin_prefetch((const void*)(uintptr_t)(address))
#else
#define PREFETCH(address)
#endif
typedef uint16 CACHE_LINE;
#if defined(__clang__) && defined(PROCESSOR)
#define STORE_NONTEMPORAL(address, line) __builtin_nontemporal_store(line, address)
#else
#define STORE_NONTEMPORAL(address, line) (*(address) = (line))
#endif
"""

# Clang's header declares all functions of OpenCL C in 18,500 lines, and takes most of the time of a small program. The
# macro that guards it against a second inclusion leaves it out; these are the functions that kernels use.
_DECLARATIONS = """
#ifdef DECLARES_FUNCTIONS
#define DECLARED __attribute__((overloadable))
#define PURE DECLARED __attribute__((const))
size_t PURE get_global_id(uint); size_t PURE get_global_size(uint); size_t PURE get_local_size(uint);
size_t PURE get_local_id(uint); size_t PURE get_group_id(uint);
void DECLARED __attribute__((convergent)) barrier(cl_mem_fence_flags);
uint DECLARED atomic_cmpxchg(volatile __global uint*, uint, uint);
uint DECLARED atomic_add(volatile __global uint*, uint);
ulong PURE mul_hi(ulong, ulong);
float PURE sqrt(float); float PURE fma(float, float, float);
#define CONVERT(v, type) __builtin_convertvector(v, type)
#define convert_char8(v) CONVERT(v, char8)
#define convert_uchar8(v) CONVERT(v, uchar8)
#define convert_short8(v) CONVERT(v, short8)
#define convert_ushort8(v) CONVERT(v, ushort8)
#define convert_int8(v) CONVERT(v, int8)
#define convert_uint8(v) CONVERT(v, uint8)
#define convert_long8(v) CONVERT(v, long8)
#define convert_ulong8(v) CONVERT(v, ulong8)
#define convert_float8(v) CONVERT(v, float8)
#endif
"""

_DECLARATIONS_FLOAT64 = """
#ifdef DECLARES_FUNCTIONS
double PURE sqrt(double); double PURE fma(double, double, double);
#define convert_double8(v) CONVERT(v, double8)
#endif
"""

OPENCL = Dialect(
    "OpenCL C",
    _DECLARATIONS
    + """
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define C64(re, im) ((float2)((re), (im)))
#if defined(__has_attribute) && defined(PROCESSOR)
#if __has_attribute(intel_vec_len_hint)
/* Otherwise Intel's compiler builds each kernel for vectors of work-items too, which takes up to ten times as long and
   serves no group of one work-item. */
#define KERNEL __attribute__((intel_vec_len_hint(1))) __kernel
#endif
#endif
#ifndef KERNEL
#if defined(__clang__) && defined(PROCESSOR) && defined(__AVX512F__)
/* Otherwise LLVM splits vectors of sixteen into halves, since it prefers registers of 32 bytes. */
#define KERNEL __attribute__((min_vector_width(512))) __kernel
#else
#define KERNEL __kernel
#endif
#endif
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
    _DECLARATIONS_FLOAT64
    + """
typedef double f64; typedef double2 c128;
VECTOR(f64, double)
typedef double4 f64x4; typedef double4 __attribute__((aligned(sizeof(double)))) f64x4_at;
#define LOAD_X4(type, p) (*(__global const type##x4_at*)(p))
#define PRIVATE_X4(type, p) (*(type##x4_at*)(p))
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
    declaring=("-DDECLARES_FUNCTIONS", "-D_OPENCL_H_"),
)

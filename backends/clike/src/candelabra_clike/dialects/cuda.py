"""CUDA C++, as the words of :mod:`candelabra_clike.dialect`."""

from __future__ import annotations

from candelabra_clike.dialect import Dialect

CUDA = Dialect(
    "CUDA C++",
    """
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32; typedef float2 c64;
#define C64(re, im) make_float2((re), (im))
#define KERNEL extern "C" __global__
#define REQUIRED_GROUP(n) __launch_bounds__(n)
#define UNLIKELY(condition) (condition)
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
typedef uint4 BYTES_16; typedef uint2 BYTES_8;
#ifdef __HIP__
template <typename T> FUNCTION T shuffled(T value, int lane) { return __shfl(value, lane, 32); }
#else
template <typename T> FUNCTION T shuffled(T value, int lane) { return __shfl_sync(0xFFFFFFFFu, value, lane, 32); }
#endif
FUNCTION c64 shuffled(c64 value, int lane) { return C64(shuffled(value.x, lane), shuffled(value.y, lane)); }
#define SHUFFLE(value, lane) shuffled((value), (int)((lane) & 31u))
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
FUNCTION c128 shuffled(c128 value, int lane) { return C128(shuffled(value.x, lane), shuffled(value.y, lane)); }
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
    warp=32,
    rounds_up=True,
)

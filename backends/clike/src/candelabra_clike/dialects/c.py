"""C with the vector extensions of clang, for kernels that run on the host's processor.

No kernel calls a library: what C's mathematical library would serve is an instruction here (square root, fused
multiply-add), so that one binary serves every C library and gives the same bits everywhere. ``a * b + c`` is contracted
only where a program asks for it, and then by the rule of the language, within one expression, and not as an optimiser
sees fit.

The entry point is called for a range of work-items, see :meth:`candelabra_clike.dialect.Dialect.entry`.
"""

from __future__ import annotations

from candelabra_clike.dialect import Dialect

_NUMBERS = """
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
typedef float f32;
typedef f32 c64 __attribute__((ext_vector_type(2)));
#define C64(re, im) ((c64){(re), (im)})
#define FUNCTION static inline __attribute__((always_inline))
/* Without the attribute, clang splits vectors of 64 bytes in two unless the compiler's tuning prefers them. */
#define KERNEL FUNCTION __attribute__((min_vector_width(512)))
#define REQUIRED_GROUP(n)
#define GLOBAL
#define LOCAL
#define CONSTANT static const
#define BARRIER
static inline f32 bits_f32(u32 u) { union { u32 u; f32 f; } x; x.u = u; return x.f; }
static inline u32 bits_u32(f32 f) { union { u32 u; f32 f; } x; x.f = f; return x.u; }
#define BITS_F32(u) bits_f32((u32)(u))
#define BITS_U32(f) bits_u32((f32)(f))
#define MULTIPLY_HIGH(a, b) ((u64)(((unsigned __int128)(u64)(a) * (u64)(b)) >> 64))
#define WIDE_MULTIPLY
#define SQRT_F32(x) __builtin_sqrtf((f32)(x))
#define SQRT_F64(x) __builtin_sqrt((f64)(x))
#define FMA_F32(a, b, c) __builtin_fmaf((f32)(a), (f32)(b), (f32)(c))
#define FMA_F64(a, b, c) __builtin_fma((f64)(a), (f64)(b), (f64)(c))
#define DIVIDE_F32(a, b) ((f32)(a) / (f32)(b))
static inline u32 compare_and_swap(volatile u32* address, u32 old, u32 new) {
    __atomic_compare_exchange_n(address, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return old;
}
#define COMPARE_AND_SWAP(address, old, new) compare_and_swap((volatile u32*)(address), (u32)(old), (u32)(new))
#define ATOMIC_ADD_U32(address, value) __atomic_fetch_add((volatile u32*)(address), (u32)(value), __ATOMIC_SEQ_CST)
#define UNROLL _Pragma("unroll")
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define INDEPENDENT_FEW _Pragma("clang loop vectorize(assume_safety) vectorize_predicate(enable)")
#define GLOBAL_ID   global_id
#define GLOBAL_SIZE global_size
#define GROUP_SIZE  1u
#define LOCAL_ID    0u
#define LOCAL_ID_1  0u
#define GROUP_ID    global_id
#define GROUP_ID_1  ((INDEX)0)
#define GROUP_ID_2  ((INDEX)0)
"""

_VECTORS = """
#define VECTOR(type) typedef type type##x8 __attribute__((ext_vector_type(8))); \\
    typedef type##x8 type##x8_at __attribute__((aligned(sizeof(type))));
VECTOR(i8) VECTOR(i16) VECTOR(i32) VECTOR(i64) VECTOR(u8) VECTOR(u16) VECTOR(u32) VECTOR(u64) VECTOR(f32)
#define LOAD_X8(type, p) (*(const type##x8_at*)(p))
#define STORE_X8(type, p, v) (*(type##x8_at*)(p) = (v))
#define PRIVATE_X8(type, p) (*(type##x8_at*)(p))
#define AS_I8X8(v) __builtin_convertvector((v), i8x8)
#define AS_U8X8(v) __builtin_convertvector((v), u8x8)
#define AS_I16X8(v) __builtin_convertvector((v), i16x8)
#define AS_U16X8(v) __builtin_convertvector((v), u16x8)
#define AS_I32X8(v) __builtin_convertvector((v), i32x8)
#define AS_U32X8(v) __builtin_convertvector((v), u32x8)
#define AS_I64X8(v) __builtin_convertvector((v), i64x8)
#define AS_U64X8(v) __builtin_convertvector((v), u64x8)
#define AS_F32X8(v) __builtin_convertvector((v), f32x8)
#define BITS_F32X8(v) __builtin_bit_cast(f32x8, (v))
#define BITS_U32X8(v) __builtin_bit_cast(u32x8, (v))
#define BITS_I32X8(v) __builtin_bit_cast(i32x8, (v))
/* Sixteen lanes are for processors with registers of 64 bytes; elsewhere such a vector is several registers. */
#define VECTOR16(type) typedef type type##x16 __attribute__((ext_vector_type(16))); \\
    typedef type##x16 type##x16_at __attribute__((aligned(sizeof(type))));
VECTOR16(i32) VECTOR16(u32) VECTOR16(f32)
#define LOAD_X16(type, p) (*(const type##x16_at*)(p))
#define STORE_X16(type, p, v) (*(type##x16_at*)(p) = (v))
#define PRIVATE_X16(type, p) (*(type##x16_at*)(p))
#define BITS_F32X16(v) __builtin_bit_cast(f32x16, (v))
#define BITS_U32X16(v) __builtin_bit_cast(u32x16, (v))
#if defined(__AVX512F__) && __clang_major__ >= 22
/* Older compilers do not use the instruction in loops, or call a library. */
#define LDEXP_F32(x, k) __builtin_ldexpf((x), (k))
#define LDEXP_F64(x, k) __builtin_ldexp((x), (k))
#define LDEXP_X8(x, k) __builtin_elementwise_ldexp((x), __builtin_bit_cast(i32x8, (k)))
#define LDEXP_X16(x, k) __builtin_elementwise_ldexp((x), __builtin_bit_cast(i32x16, (k)))
#endif
typedef u32 CACHE_LINE __attribute__((ext_vector_type(16), may_alias));
#define PREFETCH(address) __builtin_prefetch(address)
#define STORE_NONTEMPORAL(address, line) __builtin_nontemporal_store(line, address)
"""

_FLOAT64 = """
typedef double f64; typedef f64 c128 __attribute__((ext_vector_type(2)));
VECTOR(f64)
/* Four lanes fill a register of 32 bytes, so that more of them can be kept than of eight. */
typedef f64 f64x4 __attribute__((ext_vector_type(4))); typedef f64x4 f64x4_at __attribute__((aligned(sizeof(f64))));
#define LOAD_X4(type, p) (*(const type##x4_at*)(p))
#define PRIVATE_X4(type, p) (*(type##x4_at*)(p))
#define AS_F64X8(v) __builtin_convertvector((v), f64x8)
#define BITS_F64X8(v) __builtin_bit_cast(f64x8, (v))
#define C128(re, im) ((c128){(re), (im)})
static inline f64 bits_f64(u64 u) { union { u64 u; f64 f; } x; x.u = u; return x.f; }
static inline u64 bits_u64(f64 f) { union { u64 u; f64 f; } x; x.f = f; return x.u; }
#define BITS_F64(u) bits_f64((u64)(u))
#define BITS_U64(f) bits_u64((f64)(f))
#define DIVIDE_F64(a, b) ((f64)(a) / (f64)(b))
"""

C = Dialect(
    "C",
    _NUMBERS + _VECTORS,
    _FLOAT64,
    options=(
        "-std=gnu2x", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv",
        "-fvisibility=hidden", "-fPIC", "-fno-builtin", "-fno-stack-protector", "-fno-sanitize=all", "-w",
    ),
    exact_options=("-ffp-contract=off",),
    ranges=True,
)  # fmt: skip

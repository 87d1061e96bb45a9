/* Unsigned integers in the order of values. NaN of either sign is greater than all numbers; -0 equals 0. */

FUNCTION u32 key_f32(f32 x) {
    const u32 bits = BITS_U32(x);
    const u32 key = bits >> 31 ? ~bits : bits | 0x80000000u;
    return x != x ? 0xFFFFFFFFu : x == 0 ? 0x80000000u : key;
}

FUNCTION u64 key_f64(f64 x) {
    const u64 bits = BITS_U64(x), top = (u64)1 << 63;
    const u64 key = bits >> 63 ? ~bits : bits | top;
    return x != x ? ~(u64)0 : x == 0 ? top : key;
}

/* The key of the 16 bits of a half type with this infinity. */
FUNCTION u32 key_half(u32 bits, u32 infinity) {
    const u32 key = bits >> 15 ? ~bits & 0xFFFFu : bits | 0x8000u;
    const u32 size = bits & 0x7FFFu;
    return size > infinity ? 0xFFFFu : size ? key : 0x8000u;
}

#define key_f16(x) key_half(x, 0x7C00u)
#define key_bf16(x) key_half(x, 0x7F80u)
#define key_i8(x) ((u32)(u8)(x) ^ 0x80u)
#define key_i16(x) ((u32)(u16)(x) ^ 0x8000u)
#define key_i32(x) ((u32)(x) ^ 0x80000000u)
#define key_i64(x) ((u64)(x) ^ ((u64)1 << 63))
#define key_u8(x) ((u32)(x))
#define key_u16(x) ((u32)(x))
#define key_u32(x) ((u32)(x))
#define key_u64(x) ((u64)(x))

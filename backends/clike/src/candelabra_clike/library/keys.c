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

FUNCTION u32 key_f16(u32 bits) {
    return key_half(bits, 0x7C00u);
}

FUNCTION u32 key_bf16(u32 bits) {
    return key_half(bits, 0x7F80u);
}

FUNCTION u32 key_i8(i8 x) {
    return (u32)(u8)x ^ 0x80u;
}

FUNCTION u32 key_i16(i16 x) {
    return (u32)(u16)x ^ 0x8000u;
}

FUNCTION u32 key_i32(i32 x) {
    return (u32)x ^ 0x80000000u;
}

FUNCTION u64 key_i64(i64 x) {
    return (u64)x ^ ((u64)1 << 63);
}

FUNCTION u32 key_u8(u8 x) {
    return x;
}

FUNCTION u32 key_u16(u16 x) {
    return x;
}

FUNCTION u32 key_u32(u32 x) {
    return x;
}

FUNCTION u64 key_u64(u64 x) {
    return x;
}

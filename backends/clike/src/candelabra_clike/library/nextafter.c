/* The next number after x towards y in each floating type. Half types are passed as float32. */

FUNCTION u32 next_bits_u32(u32 x, u32 y, u32 sign) {
    /* Takes the bits of two different numbers that are not NaN; the first one is not 0. */
    const u32 away = (x ^ y) & sign ? 0 : (x & (sign - 1)) < (y & (sign - 1));
    return away ? x + 1 : x - 1;
}

FUNCTION f32 nextafter_f32(f32 x, f32 y) {
    const u32 bits = next_bits_u32(BITS_U32(x), BITS_U32(y), 0x80000000u);
    const f32 least = BITS_F32((BITS_U32(y) & 0x80000000u) | 1u);
    return x != x ? x : y != y || x == y ? y : x == 0 ? least : BITS_F32(bits);
}

FUNCTION f32 nextafter_f16(f32 x, f32 y) {
    const u32 from = store_f16(x), to = store_f16(y), bits = next_bits_u32(from, to, 0x8000u);
    return x != x ? x : y != y || x == y ? y : load_f16((u16)(x == 0 ? (to & 0x8000u) | 1u : bits));
}

FUNCTION f32 nextafter_bf16(f32 x, f32 y) {
    const u32 from = store_bf16(x), to = store_bf16(y), bits = next_bits_u32(from, to, 0x8000u);
    return x != x ? x : y != y || x == y ? y : load_bf16((u16)(x == 0 ? (to & 0x8000u) | 1u : bits));
}

FUNCTION f64 nextafter_f64(f64 x, f64 y) {
    const u64 sign = 0x8000000000000000, from = BITS_U64(x), to = BITS_U64(y);
    const u64 away = (from ^ to) & sign ? 0 : (from & (sign - 1)) < (to & (sign - 1));
    const f64 least = BITS_F64((to & sign) | 1);
    return x != x ? x : y != y || x == y ? y : x == 0 ? least : BITS_F64(away ? from + 1 : from - 1);
}

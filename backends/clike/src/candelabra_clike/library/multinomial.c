/* Weights as integers, docs/notes/0001-random-numbers.md, section 10. Their bits are shifted, so that nothing is
   rounded. */

FUNCTION u64 significand_f32(f32 w) {
    const u32 bits = BITS_U32(w), fraction = bits & 0x7FFFFFu;
    return bits >> 23 ? fraction | 0x800000u : fraction;
}

/* The exponent e with w = significand * 2^e. */
FUNCTION i32 exponent_f32(f32 w) {
    const u32 bits = BITS_U32(w);
    return (bits >> 23 ? (i32)(bits >> 23) : 1) - 150;
}

FUNCTION u64 significand_f64(f64 w) {
    const u64 bits = BITS_U64(w), fraction = bits & (((u64)1 << 52) - 1);
    return bits >> 52 ? fraction | (u64)1 << 52 : fraction;
}

FUNCTION i32 exponent_f64(f64 w) {
    const u32 high = (u32)(BITS_U64(w) >> 52);
    return (high ? (i32)high : 1) - 1075;
}

/* The bit length of a number; 0 for 0. */
FUNCTION i32 bit_length(u64 x) {
    i32 length = 0;
    for (; x; x >>= 1) ++length;
    return length;
}

/* floor(x * 2^places) */
FUNCTION u64 shifted_u64(u64 x, i32 places) {
    return places >= 0 ? x << places : places > -64 ? x >> -places : 0;
}

/* x * 2^places, exact if the result is normal. Computed in two steps, because 2^places may not be a normal number. */
FUNCTION f32 ldexp_f32(f32 x, i32 places) {
    const i32 half_way = places / 2;
    return x * BITS_F32((u32)(half_way + 127) << 23) * BITS_F32((u32)(places - half_way + 127) << 23);
}

FUNCTION f64 ldexp_f64(f64 x, i32 places) {
    const i32 half_way = places / 2;
    return x * BITS_F64((u64)(half_way + 1023) << 52) * BITS_F64((u64)(places - half_way + 1023) << 52);
}

/* Vector forms of functions of half_precision.c and exponential.c, with the same arithmetic. */

FUNCTION f32x8 load_bf16_x8(u16x8 h) {
    return BITS_F32X8(AS_U32X8(h) << 16);
}

FUNCTION f32x8 load_f16_x8(u16x8 h) {
    const u32x8 wide = AS_U32X8(h), sign = (wide & 0x8000u) << 16, rest = wide & 0x7FFFu;
    const u32x8 normal = (rest << 13) + 0x38000000u;
    const u32x8 subnormal = BITS_U32X8(AS_F32X8(rest) * 5.9604644775390625e-8f);
    const u32x8 special = (rest << 13) | 0x7F800000u;
    const u32x8 size = rest >= 0x7C00u ? special : (rest >= 0x0400u ? normal : subnormal);
    return BITS_F32X8(size | sign);
}

FUNCTION u16x8 store_bf16_x8(f32x8 x) {
    const u32x8 bits = BITS_U32X8(x);
    const u32x8 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return AS_U16X8((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : rounded);
}

FUNCTION u16x8 store_f16_x8(f32x8 x) {
    const u32x8 bits = BITS_U32X8(x), size = bits & 0x7FFFFFFFu, sign = (bits >> 16) & 0x8000u;
    const u32x8 normal = (size - 0x38000000u + 0x0FFFu + ((size >> 13) & 1u)) >> 13;
    const u32x8 subnormal = BITS_U32X8(BITS_F32X8(size) + 0.5f) - 0x3F000000u;
    const u32x8 nan = 0x7E00u | ((size >> 13) & 0x3FFu);
    const u32x8 finite = size < 0x38800000u ? subnormal : normal;
    const u32x8 large = size >= 0x477FF000u ? (u32x8)(0x7C00u) : finite;
    return AS_U16X8((size > 0x7F800000u ? nan : large) | sign);
}

FUNCTION f32x8 exp_x8(f32x8 given) {
    /* As exp_of_sum_f32 of exponential.c. */
    const f32x8 below = given > 90.0f ? (f32x8)(90.0f) : given;
    const f32x8 x = below < -140.0f ? (f32x8)(-140.0f) : below;
    const f32x8 t = x * 1.44269504f + 12583166.0f, k = t - 12583166.0f;
    const f32x8 r = (x - k * 0.693145752f) - k * 1.42860677e-6f;
    f32x8 p = r * 0.00138624036f + 0.00837107934f;
    p = p * r + 0.0416678898f;
    p = p * r + 0.166665003f;
    p = p * r + 0.49999994f;
    p = (p * r) * r + r;
#ifdef LDEXP_X8
    return LDEXP_X8(x < -104.0f ? (f32x8)(0.0f) : p + 1.0f, BITS_U32X8(t) - 0x4B4000FEu);
#else
    const u32x8 biased = BITS_U32X8(t), first = biased >> 1;
    return ((p + 1.0f) * BITS_F32X8(first << 23)) * BITS_F32X8((biased - first) << 23);
#endif
}

/* Conversion of 16-bit floats, represented as their bits, by integer arithmetic, so that all devices agree. Rounding
   is to nearest, ties to even. NaN keeps the upper bits of its payload. */

FUNCTION f32 load_f16(u16 h) {
    const u32 sign = (u32)(h & 0x8000u) << 16, rest = h & 0x7FFFu;
    /* The exponent is rebiased by 112. A subnormal number becomes normal by an exact multiplication. */
    const f32 normal = BITS_F32((rest << 13) + 0x38000000u);
    const f32 subnormal = (f32)rest * 5.9604644775390625e-8f;
    const f32 special = BITS_F32((rest << 13) | 0x7F800000u);
    const f32 size = rest >= 0x7C00u ? special : rest >= 0x0400u ? normal : subnormal;
    return BITS_F32(BITS_U32(size) | sign);
}

FUNCTION u16 store_f16(f32 x) {
    const u32 bits = BITS_U32(x), size = bits & 0x7FFFFFFFu;
    const u32 sign = (bits >> 16) & 0x8000u;
    const u32 normal = (size - 0x38000000u + 0x0FFFu + ((size >> 13) & 1u)) >> 13;
    /* Adding 0.5 aligns the last bit of a subnormal half with the last bit of float32, which rounds. */
    const u32 subnormal = BITS_U32(BITS_F32(size) + 0.5f) - 0x3F000000u;
    const u32 nan = 0x7E00u | ((size >> 13) & 0x3FFu);
    const u32 half_size = size > 0x7F800000u ? nan
        : size >= 0x477FF000u ? 0x7C00u : size < 0x38800000u ? subnormal : normal;
    return (u16)(half_size | sign);
}

FUNCTION f32 load_bf16(u16 h) {
    return BITS_F32((u32)h << 16);
}

FUNCTION u16 store_bf16(f32 x) {
    const u32 bits = BITS_U32(x);
    const u32 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return (u16)((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : rounded);
}

#define load_bool(x) (x)
#define store_bool(x) ((u8)((x) != 0))

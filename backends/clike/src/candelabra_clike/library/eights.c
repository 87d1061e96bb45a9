/* The functions of halves.c for eight at once: the same arithmetic in vectors. */

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

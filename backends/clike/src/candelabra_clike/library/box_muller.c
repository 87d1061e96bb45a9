/* Normal and exponential numbers, docs/notes/0001-random-numbers.md, sections 7 and 8. Each line is one step of the
   specification; their order determines the bits. Kernels with these functions do not contract a * b + c.
   (G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", Ann. Math. Statist. 29, 1958; the
   reduction of the logarithm is that of FreeBSD's e_log.c.) */

/* -ln((h + 1/2) / 2^bits) for h below 2^bits, bits up to 52. */
FUNCTION f64 negative_log_f64(u64 h, i32 bits) {
    const f64 y = (BITS_F64(h | (u64)0x4330000000000000) - 4503599627370496.0) + 0.5;
    const i32 t = (i32)((u32)(BITS_U64(y) >> 32) - 0x3FE6A09Eu);
    const i32 k = t >> 20;
    const f64 m = BITS_F64(BITS_U64(y) - ((u64)(u32)k << 52));
    const f64 e = (f64)(k - bits);
    const f64 f = m - 1.0;
    const f64 s = f / (f + 2.0);
    const f64 z = s * s;
    const f64 q = (0.5 * f) * f;
    f64 p = z * 0x1.2b5f0a1bec941p-3 + 0x1.39fdc7ed9805fp-3;
    p = p * z + 0x1.7462b9b6dcd74p-3;
    p = p * z + 0x1.c71c62d1cda75p-3;
    p = p * z + 0x1.2492492e02a7fp-2;
    p = p * z + 0x1.999999999522fp-2;
    p = p * z + 0x1.5555555555558p-1;
    const f64 r = z * p;
    return ((q - (s * (q + r) + e * 0x1.fdf473de6af28p-22)) - f) - e * 0x1.62e4200000000p-1;
}

/* The difference of an angle, a multiple of 2^11 in units of 2^-64 turns, from the nearest quarter, in quarters:
   [-1/2, 1/2). */
FUNCTION f64 reduce_to_quarter_f64(u64 a) {
    const u64 rest = ((a + ((u64)1 << 61)) & (((u64)1 << 62) - 1)) >> 11;
    return (BITS_F64(rest | (u64)0x4330000000000000) - (4503599627370496.0 + 1125899906842624.0)) * 0x1p-51;
}

FUNCTION f64 quarter_cosine_f64(f64 x) {
    const f64 z = x * x;
    f64 p = z * -0x1.b2f3fd9011174p-28 + 0x1.f9ce249452291p-22;
    p = p * z + -0x1.a6d1eef4b85a6p-16;
    p = p * z + 0x1.e1f506868916ap-11;
    p = p * z + -0x1.55d3c7e3cb243p-6;
    p = p * z + 0x1.03c1f081b5ac0p-2;
    p = p * z + -0x1.3bd3cc9be45dep+0;
    return z * p + 1.0;
}

FUNCTION f64 quarter_sine_f64(f64 x) {
    const f64 z = x * x;
    f64 p = z * -0x1.6cc5842082abdp-31 + 0x1.e8f036e1a71f1p-25;
    p = p * z + -0x1.e3074d263e23dp-19;
    p = p * z + 0x1.50783486fae02p-13;
    p = p * z + -0x1.32d2cce62b873p-8;
    p = p * z + 0x1.466bc6775aae1p-4;
    p = p * z + -0x1.4abbce625be53p-1;
    return x * 0x1.921fb54442d18p+0 + x * (z * p + 0x1.1a62633145c07p-54);
}

/* Signs and quarters are selected by bit operations: an unpredictable branch costs more than the polynomials. */
FUNCTION f64 cos_of_turns_f64(u64 a) {
    const f64 x = reduce_to_quarter_f64(a);
    const u64 quarter = (a + ((u64)1 << 61)) >> 62;
    const f64 size = (quarter & 1) ? quarter_sine_f64(x) : quarter_cosine_f64(x);
    return BITS_F64(BITS_U64(size) ^ (((quarter + 1) & 2) << 62));
}

FUNCTION f64 sin_of_turns_f64(u64 a) {
    const f64 x = reduce_to_quarter_f64(a);
    const u64 quarter = (a + ((u64)1 << 61)) >> 62;
    const f64 size = (quarter & 1) ? quarter_cosine_f64(x) : quarter_sine_f64(x);
    return BITS_F64(BITS_U64(size) ^ ((quarter & 2) << 62));
}

/* The same for devices without float64, within 16 ULP (section 11): h has 32 bits, the angle its upper 32 bits. From
   sqrt(1/2) on, 1 - u is computed from the integer, because u would have lost the digits that the logarithm needs. */
FUNCTION f32 negative_log_f32(u32 h) {
    const f32 y = (f32)h + 0.5f;
    const i32 t = (i32)(BITS_U32(y) - 0x3F3504F3u);
    const i32 k = t >> 23;
    const f32 m = BITS_F32(BITS_U32(y) - ((u32)k << 23));
    const f32 e = (f32)(k - 32);
    const f32 f = h >= 0xB504F334u ? -((f32)(0xFFFFFFFFu - h) + 0.5f) * 2.3283064365386962890625e-10f : m - 1.0f;
    const f32 s = f / (f + 2.0f);
    const f32 z = s * s;
    const f32 q = (0.5f * f) * f;
    f32 p = z * 0.18183575f + 0.22222199f;
    p = p * z + 0.28571429f;
    p = p * z + 0.4f;
    p = p * z + 0.66666669f;
    const f32 r = z * p;
    const f32 whole = h >= 0xB504F334u ? 0.0f : e;
    return ((q - (s * (q + r) + whole * 1.42860677e-6f)) - f) - whole * 0.693145752f;
}

FUNCTION f32 reduce_to_quarter_f32(u32 a) {
    return (f32)((i32)((a + 0x20000000u) & 0x3FFFFFFFu) - 0x20000000) * 9.31322574615478515625e-10f;
}

FUNCTION f32 quarter_cosine_f32(f32 x) {
    const f32 z = x * x;
    f32 p = z * -2.5202262e-5f + 9.1925018e-4f;
    p = p * z + -0.020863477f;
    p = p * z + 0.25366951f;
    p = p * z + -1.2337006f;
    return z * p + 1.0f;
}

FUNCTION f32 quarter_sine_f32(f32 x) {
    const f32 z = x * x;
    f32 p = z * 1.6043943e-4f + -4.6817539e-3f;
    p = p * z + 0.079692625f;
    p = p * z + -0.64596409f;
    return x * 1.57079637f + x * (z * p + -4.37113883e-8f);
}

FUNCTION f32 cos_of_turns_f32(u32 a) {
    const f32 x = reduce_to_quarter_f32(a);
    const u32 quarter = (a + 0x20000000u) >> 30;
    const f32 size = (quarter & 1) ? quarter_sine_f32(x) : quarter_cosine_f32(x);
    return BITS_F32(BITS_U32(size) ^ (((quarter + 1) & 2) << 30));
}

FUNCTION f32 sin_of_turns_f32(u32 a) {
    const f32 x = reduce_to_quarter_f32(a);
    const u32 quarter = (a + 0x20000000u) >> 30;
    const f32 size = (quarter & 1) ? quarter_cosine_f32(x) : quarter_sine_f32(x);
    return BITS_F32(BITS_U32(size) ^ ((quarter & 2) << 30));
}

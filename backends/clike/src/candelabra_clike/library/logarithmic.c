/* Logarithms without branches and calls.

      x = 2**e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), computed from the bits, to which those of sqrt(1/2) are
   added first. In float32, log(1 + f) = f - f**2 / 2 + f**3 P(f); in float64 by s = f / (2 + f), log(1 + f) = f - (h
   - s (h + R(s**2))) with h = f**2 / 2, the form of fdlibm (Sun Microsystems, 1993). The polynomials are minimax
   fits of our own. Constants that multiply e, or the upper half of f, are in two parts, so that the first product is
   exact. */

FUNCTION f32 log_or_special_f32(f32 x, f32 result) {
    /* The result for positive finite x, otherwise the special value of the logarithm. */
    return x > 0.0f ? (x < INFINITE_F32 ? result : x) : x == 0.0f ? -INFINITE_F32 : NAN_F32;
}

FUNCTION f64 log_or_special_f64(f64 x, f64 result) {
    return x > 0.0 ? (x < INFINITE_F64 ? result : x) : x == 0.0 ? -INFINITE_F64 : NAN_F64;
}

FUNCTION f32 log_tail_f32(f32 f) {
    /* log(1 + f) - f. */
    f32 p = -0.0764276236f;
    p = p * f + 0.127756402f;
    p = p * f - 0.131637275f;
    p = p * f + 0.142001539f;
    p = p * f - 0.166228667f;
    p = p * f + 0.200012758f;
    p = p * f - 0.250008345f;
    p = p * f + 0.333333313f;
    return (p * f - 0.5f) * (f * f);
}

FUNCTION f64 log_tail_f64(f64 f) {
    const f64 s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    f64 p = 0.13248936486626983;
    p = p * z + 0.13250736903860935;
    p = p * z + 0.15387043765800715;
    p = p * z + 0.1818177730821186;
    p = p * z + 0.22222222616956613;
    p = p * z + 0.28571428569368756;
    p = p * z + 0.40000000000004976;
    p = p * z + 0.6666666666666666;
    return s * (h + z * p) - h;
}

/* The bits of x for the reduction, after a subnormal x is scaled. The upper part is e, the rest 1 + f. */

FUNCTION u32 log_bits_f32(f32 x) {
    const f32 normal = x < 1.17549435e-38f ? x * 8388608.0f : x;
    return BITS_U32(normal) - 0x3F3504F3u;
}

FUNCTION u64 log_bits_f64(f64 x) {
    const f64 normal = x < 2.2250738585072014e-308 ? x * 4503599627370496.0 : x;
    return BITS_U64(normal) - 0x3FE6A09E667F3BCD;
}

FUNCTION f32 log_fraction_f32(u32 bits) {
    return BITS_F32((bits & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
}

FUNCTION f64 log_fraction_f64(u64 bits) {
    return BITS_F64((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD) - 1.0;
}

FUNCTION f32 log_exponent_f32(f32 x, u32 bits) {
    return (f32)((i32)bits >> 23) - (x < 1.17549435e-38f ? 23.0f : 0.0f);
}

FUNCTION f64 log_exponent_f64(f64 x, u64 bits) {
    /* From the bits of 2**52 + e + 2048: many processors have no vector conversion of 64-bit integers. */
    const f64 e = BITS_F64(((bits + 0x8000000000000000) >> 52) | 0x4330000000000000) - 4503599627372544.0;
    return e - (x < 2.2250738585072014e-308 ? 52.0 : 0.0);
}

FUNCTION f32 log_f32(f32 x) {
    const u32 bits = log_bits_f32(x);
    const f32 f = log_fraction_f32(bits), e = log_exponent_f32(x, bits);
    const f32 sum = f + (log_tail_f32(f) + e * 1.42860677e-6f);
    return log_or_special_f32(x, sum + e * 0.693145752f);
}

FUNCTION f64 log_f64(f64 x) {
    const u64 bits = log_bits_f64(x);
    const f64 f = log_fraction_f64(bits), e = log_exponent_f64(x, bits);
    const f64 sum = f + (log_tail_f64(f) + e * 1.9082149292705877e-10);
    return log_or_special_f64(x, sum + e * 0.69314718036912382);
}

FUNCTION f32 log2_f32(f32 x) {
    const u32 bits = log_bits_f32(x);
    const f32 f = log_fraction_f32(bits), e = log_exponent_f32(x, bits);
    const f32 high = BITS_F32(BITS_U32(f) & 0xFFFFF000u), low = (f - high) + log_tail_f32(f);
    const f32 rest = low * 1.44269504f - high * 0.000176052854f;
    return log_or_special_f32(x, rest + (high * 1.44287109f + e));
}

FUNCTION f64 log2_f64(f64 x) {
    const u64 bits = log_bits_f64(x);
    const f64 f = log_fraction_f64(bits), e = log_exponent_f64(x, bits);
    const f64 high = BITS_F64(BITS_U64(f) & 0xFFFFFFFF00000000), low = (f - high) + log_tail_f64(f);
    const f64 rest = low * 1.4426950408889634 + high * 6.3317841895660438e-10;
    return log_or_special_f64(x, rest + (high * 1.442695040255785 + e));
}

FUNCTION f32 log10_f32(f32 x) {
    const u32 bits = log_bits_f32(x);
    const f32 f = log_fraction_f32(bits), e = log_exponent_f32(x, bits);
    const f32 high = BITS_F32(BITS_U32(f) & 0xFFFFF000u), low = (f - high) + log_tail_f32(f);
    const f32 rest = low * 0.434294482f + (high * -3.16899714e-05f + e * 4.60503907e-06f);
    return log_or_special_f32(x, rest + (high * 0.434326172f + e * 0.301025391f));
}

FUNCTION f64 log10_f64(f64 x) {
    const u64 bits = log_bits_f64(x);
    const f64 f = log_fraction_f64(bits), e = log_exponent_f64(x, bits);
    const f64 high = BITS_F64(BITS_U64(f) & 0xFFFFFFFF00000000), low = (f - high) + log_tail_f64(f);
    const f64 rest = low * 0.4342944819032518 + (high * 1.414982685385801e-10 + e * -8.5323443170571066e-14);
    return log_or_special_f64(x, rest + (high * 0.43429448176175356 + e * 0.30102999566406652));
}

/* log(1 + x): e is that of the sum, and f = x / 2**e + (1 / 2**e - 1) loses no digits of x. From 2**126 on, 1 / 2**e
   is not a normal number and the 1 is negligible. */

FUNCTION f32 log1p_f32(f32 x) {
    const f32 sum = 1.0f + x;
    const u32 bits = BITS_U32(sum) - 0x3F3504F3u;
    const f32 scale = BITS_F32(0x3F800000u - (bits & 0xFF800000u)), e = (f32)((i32)bits >> 23);
    const f32 f = x > 1e30f ? log_fraction_f32(bits) : x * scale + (scale - 1.0f);
    const f32 result = (f + (log_tail_f32(f) + e * 1.42860677e-6f)) + e * 0.693145752f;
    return x == 0.0f ? x : log_or_special_f32(sum, result);
}

FUNCTION f64 log1p_f64(f64 x) {
    const f64 sum = 1.0 + x;
    const u64 bits = BITS_U64(sum) - 0x3FE6A09E667F3BCD;
    const f64 scale = BITS_F64(0x3FF0000000000000 - (bits & 0xFFF0000000000000)), e = log_exponent_f64(1.0, bits);
    const f64 f = x > 1e300 ? log_fraction_f64(bits) : x * scale + (scale - 1.0);
    const f64 result = (f + (log_tail_f64(f) + e * 1.9082149292705877e-10)) + e * 0.69314718036912382;
    return x == 0.0 ? x : log_or_special_f64(sum, result);
}

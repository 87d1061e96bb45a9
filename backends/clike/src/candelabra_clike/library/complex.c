/* Absolute values and quotients of complex numbers without intermediate overflow. */

FUNCTION f32 hypot_f32(f32 x, f32 y) {
    /* Scaled by a power of two, so that neither square overflows or underflows. An infinity takes precedence over
       NaN. */
    const f32 a = abs_f32(x), b = abs_f32(y), large = a > b ? a : b;
    const f32 scale = large > 1e15f ? 5.421010862427522e-20f : large < 1e-15f ? 1.2676506002282294e30f : 1.0f;
    const f32 back = large > 1e15f ? 1.8446744073709552e19f : large < 1e-15f ? 7.888609052210118e-31f : 1.0f;
    const f32 p = a * scale, q = b * scale;
    return a == INFINITE_F32 || b == INFINITE_F32 ? INFINITE_F32 : SQRT_F32(p * p + q * q) * back;
}

FUNCTION f64 hypot_f64(f64 x, f64 y) {
    const f64 a = abs_f64(x), b = abs_f64(y), large = a > b ? a : b;
    const f64 scale = large > 1e150 ? 7.458340731200207e-155 : large < 1e-150 ? 5.260135901548374e210 : 1.0;
    const f64 back = large > 1e150 ? 1.3407807929942597e154 : large < 1e-150 ? 1.9010915662951598e-211 : 1.0;
    const f64 p = a * scale, q = b * scale;
    return a == INFINITE_F64 || b == INFINITE_F64 ? INFINITE_F64 : SQRT_F64(p * p + q * q) * back;
}

FUNCTION c64 divide_c64(c64 a, c64 b) {
    /* By the ratio of the divisor's smaller part to its larger one. Source: R. L. Smith, "Algorithm 116: Complex
       division", Communications of the ACM 5 (1962). */
    const u32 real = abs_f32(b.x) >= abs_f32(b.y), zero = b.x == 0 && b.y == 0;
    const f32 large = real ? b.x : b.y, small = real ? b.y : b.x;
    const f32 ratio = DIVIDE_F32(small, large), scale = DIVIDE_F32(1.0f, large + small * ratio);
    const c64 quotient = real ? C64((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale)
                              : C64((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
    return zero ? C64(DIVIDE_F32(a.x, abs_f32(b.x)), DIVIDE_F32(a.y, abs_f32(b.x))) : quotient;
}

FUNCTION c128 divide_c128(c128 a, c128 b) {
    const u32 real = abs_f64(b.x) >= abs_f64(b.y), zero = b.x == 0 && b.y == 0;
    const f64 large = real ? b.x : b.y, small = real ? b.y : b.x;
    const f64 ratio = DIVIDE_F64(small, large), scale = DIVIDE_F64(1.0, large + small * ratio);
    const c128 quotient = real ? C128((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale)
                               : C128((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
    return zero ? C128(DIVIDE_F64(a.x, abs_f64(b.x)), DIVIDE_F64(a.y, abs_f64(b.x))) : quotient;
}

FUNCTION c64 sgn_c64(c64 a) {
    const f32 size = hypot_f32(a.x, a.y);
    return divide_c64(a, C64(size == 0 ? 1.0f : size, 0));
}

FUNCTION c128 sgn_c128(c128 a) {
    const f64 size = hypot_f64(a.x, a.y);
    return divide_c128(a, C128(size == 0 ? 1.0 : size, 0));
}

FUNCTION c64 scale_c64(c64 a, c64 factor) {
    /* A factor of 1 leaves infinities unchanged. */
    return factor.x == 1 && factor.y == 0 ? a : product_c64(a, factor);
}

FUNCTION c128 scale_c128(c128 a, c128 factor) {
    return factor.x == 1 && factor.y == 0 ? a : product_c128(a, factor);
}

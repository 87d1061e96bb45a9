/* Rounding to integers by adding and subtracting a number so large that no fraction is left. There are no calls, so
   loops are vectorised. Zeros and fractions keep their sign. */

FUNCTION f32 round_f32(f32 x) {
    const f32 size = abs_f32(x), whole = (size + 8388608.0f) - 8388608.0f;
    return size < 8388608.0f ? copysign_f32(whole, x) : x;
}

FUNCTION f64 round_f64(f64 x) {
    const f64 size = abs_f64(x), whole = (size + 4503599627370496.0) - 4503599627370496.0;
    return size < 4503599627370496.0 ? copysign_f64(whole, x) : x;
}

FUNCTION f32 trunc_f32(f32 x) {
    const f32 size = abs_f32(x), whole = (size + 8388608.0f) - 8388608.0f;
    return size < 8388608.0f ? copysign_f32(whole > size ? whole - 1.0f : whole, x) : x;
}

FUNCTION f64 trunc_f64(f64 x) {
    const f64 size = abs_f64(x), whole = (size + 4503599627370496.0) - 4503599627370496.0;
    return size < 4503599627370496.0 ? copysign_f64(whole > size ? whole - 1.0 : whole, x) : x;
}

FUNCTION f32 floor_f32(f32 x) {
    const f32 whole = round_f32(x);
    return whole - (whole > x ? 1.0f : 0.0f);
}

FUNCTION f64 floor_f64(f64 x) {
    const f64 whole = round_f64(x);
    return whole - (whole > x ? 1.0 : 0.0);
}

FUNCTION f32 ceil_f32(f32 x) {
    const f32 whole = round_f32(x);
    /* The sum of -1 and 1 is +0. */
    return whole < x ? copysign_f32(abs_f32(whole + 1.0f), x) : whole;
}

FUNCTION f64 ceil_f64(f64 x) {
    const f64 whole = round_f64(x);
    return whole < x ? copysign_f64(abs_f64(whole + 1.0), x) : whole;
}

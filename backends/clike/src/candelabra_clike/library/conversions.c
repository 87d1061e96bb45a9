/* Conversions that C leaves undefined, as the reference has them: what an integer cannot hold becomes the least number
   (of 32 bits for narrower integers, of which the lower bits are taken); a float64 on its way to float16 is rounded
   once. */

FUNCTION i32 i32_of_f32(f32 x) {
    const u32 fits = x >= -2147483648.0f && x < 2147483648.0f;
    return fits ? (i32)(fits ? x : 0) : LOWEST_I32;
}

FUNCTION i32 i32_of_f64(f64 x) {
    const u32 fits = x > -2147483649.0 && x < 2147483648.0;
    return fits ? (i32)(fits ? x : 0) : LOWEST_I32;
}

FUNCTION i64 i64_of_f32(f32 x) {
    const u32 fits = x >= -9223372036854775808.0f && x < 9223372036854775808.0f;
    return fits ? (i64)(fits ? x : 0) : LOWEST_I64;
}

FUNCTION i64 i64_of_f64(f64 x) {
    const u32 fits = x >= -9223372036854775808.0 && x < 9223372036854775808.0;
    return fits ? (i64)(fits ? x : 0) : LOWEST_I64;
}

FUNCTION u32 u32_of_f32(f32 x) {
    return x >= 2147483648.0f ? (u32)i32_of_f32(x - 2147483648.0f) ^ 0x80000000u : (u32)i32_of_f32(x);
}

FUNCTION u32 u32_of_f64(f64 x) {
    return x >= 2147483648.0 ? (u32)i32_of_f64(x - 2147483648.0) ^ 0x80000000u : (u32)i32_of_f64(x);
}

FUNCTION u64 u64_of_f32(f32 x) {
    const u64 top = 0x8000000000000000;
    return x >= 9223372036854775808.0f ? (u64)i64_of_f32(x - 9223372036854775808.0f) ^ top : (u64)i64_of_f32(x);
}

FUNCTION u64 u64_of_f64(f64 x) {
    const u64 top = 0x8000000000000000;
    return x >= 9223372036854775808.0 ? (u64)i64_of_f64(x - 9223372036854775808.0) ^ top : (u64)i64_of_f64(x);
}

FUNCTION f32 odd_f32(f64 x) {
    /* Towards 0, and the last bit set where something was cut off: a second rounding to fewer bits is then right.
       Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57 (2008). */
    const f32 near = (f32)x;
    const f64 back = (f64)near;
    const u32 bits = BITS_U32(near), cut = bits - (size_f64(back) > size_f64(x));
    return back == x || x != x ? near : BITS_F32(cut | 1u);
}

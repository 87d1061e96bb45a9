/* Conversions that are undefined in C, with the results of the reference device. A number out of range of an integer
   becomes the lowest integer (of 32 bits for narrower integers, whose lower bits are used). A float64 is rounded to
   float16 once. */

#define LOWEST_I32 ((i32)(-2147483647 - 1))
#define LOWEST_I64 ((i64)0x8000000000000000)

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

FUNCTION f32 round_to_odd_f32(f64 x) {
    /* Rounding to odd: truncate, and set the last bit if the number was inexact. A second rounding is then correct.
       Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57
       (2008). */
    const f32 near = (f32)x;
    const f64 back = (f64)near;
    const u32 bits = BITS_U32(near), cut = bits - (abs_f64(back) > abs_f64(x));
    return back == x || x != x ? near : BITS_F32(cut | 1u);
}

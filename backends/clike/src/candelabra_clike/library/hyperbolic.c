/* Hyperbolic functions, their inverses and the logistic function, from exp(x) - 1 and log(1 + x) of exponential.c and
   logarithmic.c: nothing cancels near 0, nothing overflows early. */

FUNCTION f32 with_sign_f32(f32 size, f32 sign) {
    /* The size, which is not negative, with the sign of another number. */
    return BITS_F32(BITS_U32(size) | (BITS_U32(sign) & 0x80000000u));
}

FUNCTION f64 with_sign_f64(f64 size, f64 sign) {
    return BITS_F64(BITS_U64(size) | (BITS_U64(sign) & 0x8000000000000000));
}

FUNCTION f32 size_f32(f32 x) {
    return BITS_F32(BITS_U32(x) & 0x7FFFFFFFu);
}

FUNCTION f64 size_f64(f64 x) {
    return BITS_F64(BITS_U64(x) & 0x7FFFFFFFFFFFFFFF);
}

FUNCTION f32 tanh_f32(f32 x) {
    /* t / (t + 2) of t = exp(2 abs(x)) - 1; from 10 on it is 1. */
    const f32 a = size_f32(x), t = less_one_f32(a > 10.0f ? 20.0f : 2.0f * a);
    return with_sign_f32(t / (t + 2.0f), x);
}

FUNCTION f64 tanh_f64(f64 x) {
    const f64 a = size_f64(x), t = less_one_f64(a > 20.0 ? 40.0 : 2.0 * a);
    return with_sign_f64(t / (t + 2.0), x);
}

/* With t = exp(a) - 1, sinh(a) = (t + t / (t + 1)) / 2; from 20 (40) on half an exponential. */

FUNCTION f32 sinh_f32(f32 x) {
    const f32 a = size_f32(x), t = less_one_f32(a > 20.0f ? 20.0f : a);
    return with_sign_f32(a > 20.0f ? exp_parts_f32(a, 0.0f, 1) : 0.5f * (t + t / (t + 1.0f)), x);
}

FUNCTION f64 sinh_f64(f64 x) {
    const f64 a = size_f64(x), t = less_one_f64(a > 40.0 ? 40.0 : a);
    return with_sign_f64(a > 40.0 ? exp_parts_f64(a, 0.0, 1) : 0.5 * (t + t / (t + 1.0)), x);
}

FUNCTION f32 cosh_f32(f32 x) {
    const f32 h = exp_parts_f32(size_f32(x), 0.0f, 1);
    return h + 0.25f / h;
}

FUNCTION f64 cosh_f64(f64 x) {
    const f64 h = exp_parts_f64(size_f64(x), 0.0, 1);
    return h + 0.25 / h;
}

/* asinh(a) = log1p(a + a**2 / (1 + sqrt(1 + a**2))); from 2**12 (2**28) on log(2 a). */

FUNCTION f32 asinh_f32(f32 x) {
    const f32 a = size_f32(x), b = a > 4096.0f ? 4096.0f : a, square = b * b;
    const f32 near = log1p_f32(b + square / (1.0f + SQRT_F32(1.0f + square)));
    return with_sign_f32(a > 4096.0f ? log_f32(a) + 0.693147182f : a == 0.0f ? a : near, x);
}

FUNCTION f64 asinh_f64(f64 x) {
    const f64 a = size_f64(x), b = a > 268435456.0 ? 268435456.0 : a, square = b * b;
    const f64 near = log1p_f64(b + square / (1.0 + SQRT_F64(1.0 + square)));
    return with_sign_f64(a > 268435456.0 ? log_f64(a) + 0.69314718055994529 : near, x);
}

/* acosh(x) = log1p(t + sqrt(t (t + 2))) of t = x - 1. */

FUNCTION f32 acosh_f32(f32 x) {
    const f32 t = (x > 4096.0f ? 4096.0f : x) - 1.0f;
    const f32 near = log1p_f32(t + SQRT_F32(t * (t + 2.0f)));
    return x > 4096.0f ? log_f32(x) + 0.693147182f : x >= 1.0f ? near : NAN_F32;
}

FUNCTION f64 acosh_f64(f64 x) {
    const f64 t = (x > 268435456.0 ? 268435456.0 : x) - 1.0;
    const f64 near = log1p_f64(t + SQRT_F64(t * (t + 2.0)));
    return x > 268435456.0 ? log_f64(x) + 0.69314718055994529 : x >= 1.0 ? near : NAN_F64;
}

/* atanh(a) = log1p(2 a / (1 - a)) / 2. */

FUNCTION f32 atanh_f32(f32 x) {
    const f32 a = size_f32(x), t = log1p_f32((a + a) / (1.0f - a));
    return with_sign_f32(0.5f * t, x);
}

FUNCTION f64 atanh_f64(f64 x) {
    const f64 a = size_f64(x), t = log1p_f64((a + a) / (1.0 - a));
    return with_sign_f64(0.5 * t, x);
}

/* 1 / (1 + exp(-x)), below 0 exp(x) / (1 + exp(x)), which does not become 0 early. */

FUNCTION f32 sigmoid_f32(f32 x) {
    const f32 e = exp_f32(-size_f32(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

FUNCTION f64 sigmoid_f64(f64 x) {
    const f64 e = exp_f64(-size_f64(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/* log(1 + exp(x)) */

FUNCTION f32 softplus_f32(f32 x) {
    const f32 low = log1p_f32(exp_f32(-size_f32(x)));
    return x > 0.0f ? x + low : low;
}

FUNCTION f64 softplus_f64(f64 x) {
    const f64 low = log1p_f64(exp_f64(-size_f64(x)));
    return x > 0.0 ? x + low : low;
}

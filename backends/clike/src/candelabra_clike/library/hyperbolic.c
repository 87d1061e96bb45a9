/* Hyperbolic functions, their inverses and the logistic function, computed from expm1 and log1p of exponential.c and
   logarithmic.c, without cancellation near 0 and without early overflow. */

FUNCTION T copysign_T(T size, T sign) {
    /* A non-negative number with the sign of another number. */
    return BITS_W(BITS_U(size) | (BITS_U(sign) & PICK_T(0x80000000u, 0x8000000000000000)));
}

FUNCTION T abs_T(T x) {
    return BITS_W(BITS_U(x) & PICK_T(0x7FFFFFFFu, 0x7FFFFFFFFFFFFFFF));
}

FUNCTION T tanh_T(T x) {
    /* t / (t + 2) with t = exp(2 abs(x)) - 1; from 10 (20) on it is 1. */
    const T a = abs_T(x), t = expm1_reduced_T(a > PICK_T(10.0, 20.0) ? PICK_T(20.0, 40.0) : 2.0 * a);
    return copysign_T(t / (t + 2.0), x);
}

FUNCTION T sinh_T(T x) {
    /* (t + t / (t + 1)) / 2 with t = exp(abs(x)) - 1; from 20 (40) on exp(abs(x)) / 2. */
    const T a = abs_T(x), t = expm1_reduced_T(a > PICK_T(20.0, 40.0) ? PICK_T(20.0, 40.0) : a);
    return copysign_T(a > PICK_T(20.0, 40.0) ? exp_of_sum_T(a, -0.0, 1) : 0.5 * (t + t / (t + 1.0)), x);
}

FUNCTION T cosh_T(T x) {
    const T h = exp_of_sum_T(abs_T(x), -0.0, 1);
    return h + 0.25 / h;
}

FUNCTION T asinh_T(T x) {
    /* log1p(a + a**2 / (1 + sqrt(1 + a**2))); from 2**12 (2**28) on log(2 a). */
    const T a = abs_T(x), b = a > PICK_T(4096.0, 268435456.0) ? PICK_T(4096.0, 268435456.0) : a, square = b * b;
    const T near = log1p_T(b + square / (1.0 + SQRT_W(1.0 + square)));
    return copysign_T(a > PICK_T(4096.0, 268435456.0) ? log_T(a) + 0.6931471805599453 : near, x);
}

FUNCTION T acosh_T(T x) {
    /* log1p(t + sqrt(t (t + 2))) with t = x - 1. */
    const T t = (x > PICK_T(4096.0, 268435456.0) ? PICK_T(4096.0, 268435456.0) : x) - 1.0;
    const T near = log1p_T(t + SQRT_W(t * (t + 2.0)));
    return x > PICK_T(4096.0, 268435456.0) ? log_T(x) + 0.6931471805599453 : x >= 1.0 ? near : NAN_W;
}

FUNCTION T atanh_T(T x) {
    /* log1p(2 a / (1 - a)) / 2 */
    const T a = abs_T(x);
    return copysign_T(0.5 * log1p_T((a + a) / (1.0 - a)), x);
}

FUNCTION T sigmoid_T(T x) {
    /* 1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) for x < 0, which does not underflow early. */
    const T e = exp_T(-abs_T(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

FUNCTION T softplus_T(T x) {
    /* log(1 + exp(x)) */
    const T low = log1p_T(exp_T(-abs_T(x)));
    return x > 0.0 ? x + low : low;
}

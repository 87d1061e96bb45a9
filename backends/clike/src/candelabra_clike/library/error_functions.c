/* Error functions and the normal distribution.

      erfcx(x) = exp(x**2) erfc(x) is smooth. It is a polynomial of t = 1 / (1 + x / 2) in float32, corrected by the
   rounding error of t times the approximate derivative, and of (x - 4) / (x + 4) in float64 (M. M. Shepherd and J.
   G. Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc x, Mathematics of Computation 36, 1981). The
   polynomials are minimax fits of our own. exp(-x**2) uses the square in two parts, because it multiplies the
   relative error of x**2 by x**2. */

FUNCTION f32 exp_square_f32(f32 x, f32 factor, i32 halvings) {
    /* exp(factor x**2) / 2**halvings for a factor that is plus or minus a power of two and abs(x) up to 15. */
    const f32 high = BITS_F32(BITS_U32(x) & 0xFFFFF000u);
    return exp_of_sum_f32(factor * (high * high), factor * ((x - high) * (x + high)), halvings);
}

FUNCTION f64 exp_square_f64(f64 x, f64 factor, i32 halvings) {
    const f64 high = BITS_F64(BITS_U64(x) & 0xFFFFFFFFF8000000);
    return exp_of_sum_f64(factor * (high * high), factor * ((x - high) * (x + high)), halvings);
}

FUNCTION f32 erfcx_above_f32(f32 x) {
    /* erfcx of non-negative numbers. */
    const f32 a = x > 1e30f ? 1e30f : x, d = 1.0f + 0.5f * a, t = 1.0f / d;
    f32 p = 0.0569958389f;
    p = p * t - 0.301238596f;
    p = p * t + 0.629187703f;
    p = p * t - 0.606820583f;
    p = p * t + 0.234199688f;
    p = p * t - 0.101217538f;
    p = p * t + 0.103861161f;
    p = p * t + 0.173860505f;
    p = p * t + 0.246985987f;
    p = p * t + 0.282091081f;
    p = p * t + 0.282094806f;
    return x > 1e30f ? 0.564189584f / x : (p - p * (t * (0.5f * a - (d - 1.0f)))) * t;
}

FUNCTION f64 erfcx_above_f64(f64 x) {
    const f64 a = x > 1e100 ? 1e100 : x, t = (a - 4.0) / (a + 4.0);
    f64 p = -2.5631628105032532e-10;
    p = p * t + 9.3061562231475634e-10;
    p = p * t + 3.1126873043341657e-09;
    p = p * t - 1.2343830104265539e-08;
    p = p * t - 2.0414019645084013e-08;
    p = p * t + 1.06331451222948e-07;
    p = p * t + 7.7253303802940129e-08;
    p = p * t - 8.2108453705811904e-07;
    p = p * t + 2.9217580559943335e-07;
    p = p * t + 5.706596779496363e-06;
    p = p * t - 1.1221411651938299e-05;
    p = p * t - 2.4397742449369139e-05;
    p = p * t + 0.00015062154102490712;
    p = p * t - 0.00019925714792573399;
    p = p * t - 0.00075777327506108122;
    p = p * t + 0.0050319700679242758;
    p = p * t - 0.016197734057482496;
    p = p * t + 0.037167515526525106;
    p = p * t - 0.066330365812416914;
    p = p * t + 0.093732834999096057;
    p = p * t - 0.10103906603628886;
    p = p * t + 0.068097054254669068;
    p = p * t + 0.015379652102619374;
    p = p * t - 0.1396211168405623;
    p = p * t + 1.2329951186255526;
    return x > 1e100 ? 0.56418958354775628 / x : p / (1.0 + 2.0 * a);
}

FUNCTION f32 erfcx_f32(f32 x) {
    const f32 a = abs_f32(x), above = erfcx_above_f32(a);
    return x < 0.0f ? 2.0f * exp_square_f32(a > 10.0f ? 10.0f : a, 1.0f, 0) - above : above;
}

FUNCTION f64 erfcx_f64(f64 x) {
    const f64 a = abs_f64(x), above = erfcx_above_f64(a);
    return x < 0.0 ? 2.0 * exp_square_f64(a > 30.0 ? 30.0 : a, 1.0, 0) - above : above;
}

FUNCTION f32 erfc_f32(f32 x) {
    const f32 size = abs_f32(x), a = size > 11.0f ? 11.0f : size;
    const f32 tail = exp_square_f32(a, -1.0f, 0) * erfcx_above_f32(a);
    return x < 0.0f ? 2.0f - tail : tail;
}

FUNCTION f64 erfc_f64(f64 x) {
    const f64 size = abs_f64(x), a = size > 28.0 ? 28.0 : size;
    const f64 tail = exp_square_f64(a, -1.0, 0) * erfcx_above_f64(a);
    return x < 0.0 ? 2.0 - tail : tail;
}

FUNCTION f32 erf_f32(f32 x) {
    /* 1 - exp(-a P(a)), with the constant term of P in two parts. For a >= 4 the result is 1. */
    const f32 size = abs_f32(x), a = size > 4.0f ? 4.0f : size;
    f32 p = -9.31232171e-06f;
    p = p * a + 0.000118205455f;
    p = p * a - 0.000635082251f;
    p = p * a + 0.00167158735f;
    p = p * a - 0.000165469901f;
    p = p * a - 0.0191499833f;
    p = p * a + 0.102776878f;
    p = p * a + 0.636619508f;
    const f32 exponent = a * 1.12837923f + (p * (a * a) - a * 5.86353834e-08f);
    return copysign_f32(abs_f32(expm1_reduced_f32(-exponent)), x);
}

FUNCTION f64 erf_f64(f64 x) {
    const f64 size = abs_f64(x), a = size > 6.0 ? 6.0 : size, z = a * a;
    f64 p = 5.9024281491458042e-11;
    p = p * z - 1.1340722204294407e-09;
    p = p * z + 1.4651559581393478e-08;
    p = p * z - 1.6349112051781769e-07;
    p = p * z + 1.6460889998918281e-06;
    p = p * z - 1.492558861787494e-05;
    p = p * z + 0.00012055330848560059;
    p = p * z - 0.00085483269741353136;
    p = p * z + 0.0052239776247141444;
    p = p * z - 0.026866170645068077;
    p = p * z + 0.1128379167095485;
    p = p * z - 0.37612638903183748;
    const f64 near = a * 1.1283791670955126 + a * (z * p + 1.5335459613165881e-17);
    const f64 far = 1.0 - exp_square_f64(a, -1.0, 0) * erfcx_above_f64(a);
    return copysign_f64(a < 1.0 ? near : far, x);
}

/* The normal distribution function is exp(-x**2 / 2) tail(x) for x < 0, and 1 minus that of -x otherwise. */

FUNCTION f32 normal_tail_f32(f32 a) {
    /* erfcx(a / sqrt(2)) / 2 for a up to 15, by t = 1 / (1 + a / 2). */
    const f32 d = 1.0f + 0.5f * a, t = 1.0f / d;
    f32 p = -0.0406764448f;
    p = p * t + 0.273531407f;
    p = p * t - 0.778560936f;
    p = p * t + 1.17720532f;
    p = p * t - 0.931341112f;
    p = p * t + 0.279753149f;
    p = p * t - 0.0432732664f;
    p = p * t + 0.16614911f;
    p = p * t + 0.197628528f;
    p = p * t + 0.199587405f;
    p = p * t - 3.15718808e-06f;
    return p - p * (t * (1.5f * (0.5f * a - (d - 1.0f))));
}

FUNCTION f64 normal_tail_f64(f64 a) {
    return 0.5 * erfcx_above_f64(0.70710678118654752 * a);
}

FUNCTION f32 ndtr_f32(f32 x) {
    const f32 size = abs_f32(x), a = size > 15.0f ? 15.0f : size;
    const f32 tail = exp_square_f32(a, -0.5f, 0) * normal_tail_f32(a);
    return x < 0.0f ? tail : 1.0f - tail;
}

FUNCTION f64 ndtr_f64(f64 x) {
    const f64 size = abs_f64(x), a = size > 39.0 ? 39.0 : size;
    const f64 tail = exp_square_f64(a, -0.5, 0) * normal_tail_f64(a);
    return x < 0.0 ? tail : 1.0 - tail;
}

FUNCTION f32 log_ndtr_f32(f32 x) {
    const f32 size = abs_f32(x), a = size > 15.0f ? 15.0f : size;
    const f32 lower = 0.5f * erfcx_above_f32(0.707106781f * size);
    const f32 above = log1p_f32(-exp_square_f32(a, -0.5f, 0) * lower);
    return x < 0.0f ? log_f32(lower) - 0.5f * x * x : above;
}

FUNCTION f64 log_ndtr_f64(f64 x) {
    const f64 size = abs_f64(x), a = size > 39.0 ? 39.0 : size;
    const f64 lower = 0.5 * erfcx_above_f64(0.70710678118654752 * size);
    const f64 above = log1p_f64(-exp_square_f64(a, -0.5, 0) * lower);
    return x < 0.0 ? log_f64(lower) - 0.5 * x * x : above;
}

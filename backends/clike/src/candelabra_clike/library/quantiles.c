/* The inverses of the error function and of the normal distribution function. float32 uses a polynomial of a
   logarithm (M. B. Giles, Approximating the erfinv function, 2012), with minimax fits of our own. float64 refines it
   by a step of Halley's or Newton's method, in the tails with the complementary functions. */

FUNCTION T erfinv_near_T(T t) {
    /* erfinv(x) / x for t = -log(1 - x**2) - 5/2 between -5/2 and 5/2. */
    T p = -8.73983108e-09;
    p = p * t + 2.32858444e-08;
    p = p * t + 4.65428741e-07;
    p = p * t - 3.46335628e-06;
    p = p * t - 4.95974336e-06;
    p = p * t + 0.000218346919;
    p = p * t - 0.00125274842;
    p = p * t - 0.00417738967;
    p = p * t + 0.246640295;
    return p * t + 1.50140941;
}
FUNCTION T erfinv_far_T(T t) {
    /* erfinv(x) / x for t = sqrt(-log(1 - x**2)) - 4 from -1.77 to 2.2. */
    T p = 8.10038046e-08;
    p = p * t - 5.4099695e-07;
    p = p * t + 7.40448002e-07;
    p = p * t + 2.90197272e-06;
    p = p * t - 1.20344894e-05;
    p = p * t + 2.03712571e-05;
    p = p * t - 2.82444325e-05;
    p = p * t + 5.27647862e-05;
    p = p * t - 0.000120840545;
    p = p * t + 0.000322881242;
    p = p * t - 0.000868072268;
    p = p * t + 0.00125940586;
    p = p * t + 1.00949311;
    return p * t + 3.83978391;
}

FUNCTION T erfinv_guess_T(T x) {
    const T w = -log_T((1.0 - x) * (1.0 + x));
    return x * (w < 5.0 ? erfinv_near_T(w - 2.5) : erfinv_far_T(SQRT_W(w) - 4.0));
}

FUNCTION f32 erfinv_f32(f32 x) {
    return abs_f32(x) == 1.0f ? copysign_f32(INFINITE_F32, x) : erfinv_guess_f32(x);
}

FUNCTION f64 erfinv_f64(f64 x) {
    const f64 a = abs_f64(x), y = erfinv_guess_f64(a);
    const f64 wrong = a < 0.5 ? erf_f64(y) - a : (1.0 - a) - erfc_f64(y);
    const f64 step = wrong * (0.88622692545275801 * exp_square_f64(y, 1.0, 0));
    return copysign_f64(a == 1.0 ? INFINITE_F64 : y - step / (1.0 + y * step), x);
}

FUNCTION T normal_quantile_near_T(T t) {
    /* The quantile of q over sqrt(-log(q)) for t = 1 / sqrt(-log(q)) from 1/4 to 2/3. */
    T p = 0.414390564;
    p = p * t - 1.63421106;
    p = p * t + 2.90018249;
    p = p * t - 3.14986038;
    p = p * t + 2.53381228;
    p = p * t - 2.04251838;
    p = p * t - 0.0995470732;
    return p * t + 1.41713428;
}
FUNCTION T normal_quantile_far_T(T t) {
    /* The same for t below 1/4. */
    T p = 6047.92285;
    p = p * t - 8899.6377;
    p = p * t + 5791.39844;
    p = p * t - 2208.29248;
    p = p * t + 554.870972;
    p = p * t - 100.060188;
    p = p * t + 15.055439;
    p = p * t - 3.25240779;
    p = p * t - 0.0182701349;
    return p * t + 1.41431272;
}

FUNCTION T normal_quantile_T(T q) {
    /* The quantile of the upper tail, for q below 0.1. */
    const T r = SQRT_W(-log_T(q)), t = 1.0 / r;
    return r * (r < 4.0 ? normal_quantile_near_T(t) : normal_quantile_far_T(t));
}

FUNCTION f32 normal_tail_quantile_f32(f32 q) {
    return normal_quantile_f32(q);
}

FUNCTION f64 normal_tail_quantile_f64(f64 q) {
    const f64 x = normal_quantile_f64(q), tail = normal_tail_f64(x);
    return x + (log_f64(tail) - (0.5 * x * x + log_f64(q))) * (tail * 2.5066282746310005);
}

FUNCTION T ndtri_T(T p) {
    const T q = p > 0.5 ? 1.0 - p : p, tail = normal_tail_quantile_T(q);
    const T value = q < 0.1 ? (p < 0.5 ? -tail : tail) : 1.4142135623730951 * erfinv_T(2.0 * p - 1.0);
    return p == 0.0 ? -INFINITE_W : p == 1.0 ? INFINITE_W : p >= 0.0 && p <= 1.0 ? value : NAN_W;
}

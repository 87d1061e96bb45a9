/* Exponentials, logarithms and powers of complex numbers. Special values are those of Annex G of the C standard,
   with which the Array API standard agrees. */

#define FAR_T PICK_T(80.0, 700.0)
#define EXP_FAR_T PICK_T(5.54062238e34, 1.0142320547350045e304)

FUNCTION Z exp_Z(Z z) {
    /* A large exponential is multiplied in two steps, because only the product may be finite. An angle of 0 gives no
       NaN with an infinity, nor does 0 with an angle that is not finite. */
    const u32 far = z.x > FAR_T, lost = !(abs_T(z.y) < INFINITE_W);
    const T size = exp_T(far ? z.x - FAR_T : z.x), more = far ? EXP_FAR_T : 1.0;
    const Z value = PAIR_Z(size * cos_T(z.y) * more, z.y == 0.0 ? z.y : size * sin_T(z.y) * more);
    const Z zero = PAIR_Z(0.0, 0.0), endless = PAIR_Z(INFINITE_W, NAN_W);
    return lost && z.x == -INFINITE_W ? zero : lost && z.x == INFINITE_W ? endless : value;
}

FUNCTION Z exp2_Z(Z z) {
    return exp_Z(PAIR_Z(0.6931471805599453 * z.x, 0.6931471805599453 * z.y));
}

FUNCTION Z expm1_Z(Z z) {
    /* exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y / 2)**2 without cancellation near 0. */
    const T less = expm1_T(z.x), half_sine = sin_T(0.5 * z.y), versine = 2.0 * half_sine * half_sine;
    const Z plain = exp_Z(z);
    const T real = (less - less * versine) - versine + 0.0;
    return PAIR_Z(abs_T(real) < INFINITE_W ? real : plain.x - 1.0, plain.y);
}

FUNCTION T log_abs_T(T x, T y) {
    /* log(sqrt(x**2 + y**2)); near 1 from the difference of the square from 1. */
    const T a = abs_T(x), b = abs_T(y), large = a > b ? a : b, small = a > b ? b : a;
    const u32 huge = large > PICK_T(1e38, 1e308), tiny = large < PICK_T(1e-30, 1e-290);
    const T scale = huge ? 0.25 : tiny ? PICK_T(16777216.0, 9007199254740992.0) : 1.0;
    const T back = huge ? 1.3862943611198906 : tiny ? PICK_T(-16.63553233, -36.7368005696771) : 0.0;
    const T size = hypot_T(x * scale, y * scale), near = 0.5 * log1p_T((large - 1.0) * (large + 1.0) + small * small);
    return size > 0.7 && size < 1.4 && scale == 1.0 ? near : log_T(size) + back;
}

FUNCTION Z log_Z(Z z) {
    return PAIR_Z(log_abs_T(z.x, z.y), atan2_T(z.y, z.x));
}

FUNCTION Z log2_Z(Z z) {
    const Z e = log_Z(z);
    return PAIR_Z(1.4426950408889634 * e.x, 1.4426950408889634 * e.y);
}

FUNCTION Z log10_Z(Z z) {
    const Z e = log_Z(z);
    return PAIR_Z(0.43429448190325183 * e.x, 0.43429448190325183 * e.y);
}

FUNCTION Z log1p_Z(Z z) {
    const T a = abs_T(z.x), b = abs_T(z.y), one_more = 1.0 + z.x;
    const T near = 0.5 * log1p_T(z.x * (2.0 + z.x) + z.y * z.y);
    return PAIR_Z(a < 0.5 && b < 0.5 ? near : log_abs_T(one_more, z.y), atan2_T(z.y, one_more));
}

FUNCTION Z sqrt_Z(Z z) {
    /* The part without cancellation is computed first, the other one by a division (W. Kahan, Branch cuts for complex
       elementary functions, 1987). */
    const T a = abs_T(z.x), b = abs_T(z.y), large = a > b ? a : b;
    const u32 huge = large > PICK_T(1e37, 1e307), tiny = large < PICK_T(1e-35, 1e-300);
    const T scale = huge ? 0.0625 : tiny ? PICK_T(18446744073709551616.0, 324518553658426726783156020576256.0) : 1.0;
    const T back = huge ? 4.0 : tiny ? PICK_T(2.3283064365386963e-10, 5.5511151231257827e-17) : 1.0;
    const T p = SQRT_W(0.5 * (a * scale + hypot_T(z.x * scale, z.y * scale)));
    const T q = p == 0.0 ? b : b * scale / (p + p) * back, first = p * back;
    const Z value = z.x < 0.0 ? PAIR_Z(q, copysign_T(first, z.y)) : PAIR_Z(first, copysign_T(q, z.y));
    const Z flat = z.x > 0.0 ? PAIR_Z(a, b < INFINITE_W ? copysign_T(0.0, z.y) : z.y)
                             : PAIR_Z(b < INFINITE_W ? 0.0 : b, copysign_T(a, z.y));
    return b == INFINITE_W ? PAIR_Z(b, z.y) : a == INFINITE_W ? flat : value;
}

FUNCTION Z power_Z(Z x, Z y) {
    /* exp(y log(x)); for x = 0 the result is 1, 0 or NaN. */
    const Z value = exp_Z(product_Z(y, log_Z(x)));
    const T none = y.x > 0.0 ? 0.0 : NAN_W;
    return y.x == 0.0 && y.y == 0.0 ? PAIR_Z(1.0, 0.0) : x.x == 0.0 && x.y == 0.0 ? PAIR_Z(none, none) : value;
}

FUNCTION Z sigmoid_Z(Z z) {
    /* 1 / (1 + exp(-z)), or exp(z) / (1 + exp(z)) for a negative real part, without overflow. */
    const Z e = exp_Z(z.x < 0.0 ? z : -z), one = PAIR_Z(1.0, 0.0);
    return divide_Z(z.x < 0.0 ? e : one, one + e);
}

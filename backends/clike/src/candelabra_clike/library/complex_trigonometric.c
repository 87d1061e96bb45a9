/* Hyperbolic and trigonometric functions of complex numbers, and their inverses. The trigonometric ones are computed
   from the hyperbolic ones of i z. Source of the inverses and of the tangent: W. Kahan, Branch cuts for complex
   elementary functions, or much ado about nothing's sign bit (1987). */

FUNCTION Z times_i_Z(Z z) {
    /* i z */
    return PAIR_Z(-z.y, z.x);
}

FUNCTION Z times_minus_i_Z(Z z) {
    return PAIR_Z(z.y, -z.x);
}

FUNCTION Z with_exponentials_Z(Z z, u32 odd) {
    /* sinh (odd) or cosh. From FAR on, the product is computed in two steps, because only the final result may be
       finite. */
    const T a = abs_T(z.x), h = 0.5 * exp_T(a - FAR_T);
    const u32 far = a > FAR_T, lost = !(abs_T(z.y) < INFINITE_W);
    const T even = far ? h : cosh_T(z.x), uneven = far ? copysign_T(h, z.x) : sinh_T(z.x);
    const T more = far ? EXP_FAR_T : 1.0;
    const T first = odd ? uneven : even, second = odd ? even : uneven;
    const T real = odd && z.x == 0.0 ? z.x : first * cos_T(z.y) * more;
    const T flat = odd || !(BITS_U(z.x) >> PICK_T(31, 63)) ? z.y : -z.y, imaginary = second * sin_T(z.y) * more;
    const Z value = PAIR_Z(real, z.y == 0.0 ? flat : lost && second == 0.0 ? 0.0 : imaginary);
    const Z endless = PAIR_Z(INFINITE_W, NAN_W);
    return lost && a == INFINITE_W ? endless : value;
}

FUNCTION Z sinh_Z(Z z) {
    return with_exponentials_Z(z, 1u);
}

FUNCTION Z cosh_Z(Z z) {
    return with_exponentials_Z(z, 0u);
}

FUNCTION Z tanh_Z(Z z) {
    /* With t = tan(y), s = sinh(x): (sqrt(1 + s**2) s (1 + t**2), t) / (1 + s**2 (1 + t**2)). */
    const T a = abs_T(z.x), t = tan_T(z.y), s = sinh_T(z.x), slope = 1.0 + t * t, under = 1.0 + slope * (s * s);
    const u32 far = a > PICK_T(9.5, 20.0), lost = !(abs_T(z.y) < INFINITE_W);
    const T tail = 4.0 * (sin_T(z.y) * cos_T(z.y)) * exp_T(-2.0 * a);
    const Z limit = PAIR_Z(lost && a < INFINITE_W ? NAN_W : copysign_T(1.0, z.x), a < INFINITE_W ? tail
        : copysign_T(0.0, z.y));
    const T real = z.x == 0.0 ? z.x : slope * SQRT_W(1.0 + s * s) * s / under;
    const Z near = PAIR_Z(real, z.y == 0.0 ? z.y : t / under);
    return far ? limit : near;
}

FUNCTION Z sin_Z(Z z) {
    return times_minus_i_Z(sinh_Z(times_i_Z(z)));
}

FUNCTION Z cos_Z(Z z) {
    return cosh_Z(times_i_Z(z));
}

FUNCTION Z tan_Z(Z z) {
    return times_minus_i_Z(tanh_Z(times_i_Z(z)));
}

FUNCTION u32 is_huge_Z(Z z) {
    /* Whether 1 is negligible compared with z**2, also for infinities. */
    return abs_T(z.x) > PICK_T(1e8, 1e17) || abs_T(z.y) > PICK_T(1e8, 1e17);
}

FUNCTION Z asin_Z(Z z) {
    const Z below = sqrt_Z(PAIR_Z(1.0 - z.x, -z.y)), above = sqrt_Z(PAIR_Z(1.0 + z.x, z.y));
    const T real = z.x == 0.0 ? z.x : atan2_T(z.x, below.x * above.x - below.y * above.y);
    const T rise = asinh_T(below.x * above.y - below.y * above.x);
    const T outer = copysign_T(atan2_T(abs_T(z.x), abs_T(z.y)), z.x);
    const T height = log_abs_T(z.x, z.y) + 0.6931471805599453;
    const u32 far = is_huge_Z(z);
    return PAIR_Z(far ? outer : real, copysign_T(abs_T(far ? height : rise), z.y));
}

FUNCTION Z acos_Z(Z z) {
    const Z below = sqrt_Z(PAIR_Z(1.0 - z.x, -z.y)), above = sqrt_Z(PAIR_Z(1.0 + z.x, z.y));
    const T real = z.x == 0.0 ? 1.5707963267948966 : 2.0 * atan2_T(below.x, above.x);
    const T rise = asinh_T(above.x * below.y - above.y * below.x);
    const T outer = atan2_T(abs_T(z.y), z.x), height = log_abs_T(z.x, z.y) + 0.6931471805599453;
    const u32 far = is_huge_Z(z), under = BITS_U(z.y) >> PICK_T(31, 63);
    return PAIR_Z(far ? outer : real, copysign_T(abs_T(far ? height : rise), under ? 1.0 : -1.0));
}

FUNCTION Z atanh_Z(Z z) {
    /* (log1p(4 a / ((1 - a)**2 + b**2)) / 4, atan2(2 b, (1 - a) (1 + a) - b**2) / 2), log(2 / size) / 2 where that
       square is too small for a number. */
    const T a = abs_T(z.x), b = abs_T(z.y), rest = 1.0 - a, square = rest * rest + b * b;
    const T pole = 0.5 * (0.6931471805599453 - log_T(hypot_T(rest, b)));
    const T real = square < PICK_T(1e-30, 1e-290) ? pole : 0.25 * log1p_T(4.0 * a / square);
    const T angle = 0.5 * atan2_T(2.0 * b, rest * (1.0 + a) - b * b), size = hypot_T(a, b);
    const u32 far = is_huge_Z(z), lost = b != b || (a != a && b < INFINITE_W);
    const T outer = size == INFINITE_W ? 0.0 : a / size / size;
    const T height = lost ? NAN_W : far ? 1.5707963267948966 : angle;
    return PAIR_Z(copysign_T(z.x == 0.0 ? a : far ? outer : real, z.x), copysign_T(height, z.y));
}

FUNCTION Z asinh_Z(Z z) {
    return times_minus_i_Z(asin_Z(times_i_Z(z)));
}

FUNCTION Z acosh_Z(Z z) {
    const Z w = acos_Z(z);
    return PAIR_Z(abs_T(w.y), copysign_T(w.x, z.y));
}

FUNCTION Z atan_Z(Z z) {
    return times_minus_i_Z(atanh_Z(times_i_Z(z)));
}

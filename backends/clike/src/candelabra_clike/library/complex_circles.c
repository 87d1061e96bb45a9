/* Hyperbolic and circular functions of complex numbers, and their inverses. The circular ones are the hyperbolic ones of
   i z, turned back. Source of the inverses and of the tangent: W. Kahan, Branch cuts for complex elementary functions,
   or much ado about nothing's sign bit (1987). */

FUNCTION Z left_turn_Z(Z z) {
    /* i z */
    return PAIR_Z(-z.y, z.x);
}

FUNCTION Z right_turn_Z(Z z) {
    return PAIR_Z(z.y, -z.x);
}

FUNCTION Z with_exponentials_Z(Z z, u32 odd) {
    /* sinh (odd) or cosh: from FAR on in two steps, as only the product with the circle may be finite. */
    const T a = size_T(z.x), h = 0.5 * exp_T(a - FAR_T);
    const u32 far = a > FAR_T, lost = !(size_T(z.y) < INFINITE_W);
    const T even = far ? h : cosh_T(z.x), uneven = far ? with_sign_T(h, z.x) : sinh_T(z.x);
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
    const T a = size_T(z.x), t = tan_T(z.y), s = sinh_T(z.x), slope = 1.0 + t * t, under = 1.0 + slope * (s * s);
    const u32 far = a > PICK_T(9.5, 20.0), lost = !(size_T(z.y) < INFINITE_W);
    const T tail = 4.0 * (sin_T(z.y) * cos_T(z.y)) * exp_T(-2.0 * a);
    const Z limit = PAIR_Z(lost && a < INFINITE_W ? NAN_W : with_sign_T(1.0, z.x), a < INFINITE_W ? tail
        : with_sign_T(0.0, z.y));
    const T real = z.x == 0.0 ? z.x : slope * SQRT_W(1.0 + s * s) * s / under;
    const Z near = PAIR_Z(real, z.y == 0.0 ? z.y : t / under);
    return far ? limit : near;
}

FUNCTION Z sin_Z(Z z) {
    return right_turn_Z(sinh_Z(left_turn_Z(z)));
}

FUNCTION Z cos_Z(Z z) {
    return cosh_Z(left_turn_Z(z));
}

FUNCTION Z tan_Z(Z z) {
    return right_turn_Z(tanh_Z(left_turn_Z(z)));
}

FUNCTION u32 far_out_Z(Z z) {
    /* Where 1 is nothing beside z**2; infinities too. */
    return size_T(z.x) > PICK_T(1e8, 1e17) || size_T(z.y) > PICK_T(1e8, 1e17);
}

FUNCTION Z asin_Z(Z z) {
    const Z below = sqrt_Z(PAIR_Z(1.0 - z.x, -z.y)), above = sqrt_Z(PAIR_Z(1.0 + z.x, z.y));
    const T real = z.x == 0.0 ? z.x : atan2_T(z.x, below.x * above.x - below.y * above.y);
    const T rise = asinh_T(below.x * above.y - below.y * above.x);
    const T outer = with_sign_T(atan2_T(size_T(z.x), size_T(z.y)), z.x);
    const T height = log_size_T(z.x, z.y) + 0.6931471805599453;
    const u32 far = far_out_Z(z);
    return PAIR_Z(far ? outer : real, with_sign_T(size_T(far ? height : rise), z.y));
}

FUNCTION Z acos_Z(Z z) {
    const Z below = sqrt_Z(PAIR_Z(1.0 - z.x, -z.y)), above = sqrt_Z(PAIR_Z(1.0 + z.x, z.y));
    const T real = z.x == 0.0 ? 1.5707963267948966 : 2.0 * atan2_T(below.x, above.x);
    const T rise = asinh_T(above.x * below.y - above.y * below.x);
    const T outer = atan2_T(size_T(z.y), z.x), height = log_size_T(z.x, z.y) + 0.6931471805599453;
    const u32 far = far_out_Z(z), under = BITS_U(z.y) >> PICK_T(31, 63);
    return PAIR_Z(far ? outer : real, with_sign_T(size_T(far ? height : rise), under ? 1.0 : -1.0));
}

FUNCTION Z atanh_Z(Z z) {
    /* (log1p(4 a / ((1 - a)**2 + b**2)) / 4, atan2(2 b, (1 - a) (1 + a) - b**2) / 2), log(2 / size) / 2 where that
       square is too small for a number. */
    const T a = size_T(z.x), b = size_T(z.y), rest = 1.0 - a, square = rest * rest + b * b;
    const T pole = 0.5 * (0.6931471805599453 - log_T(hypot_T(rest, b)));
    const T real = square < PICK_T(1e-30, 1e-290) ? pole : 0.25 * log1p_T(4.0 * a / square);
    const T angle = 0.5 * atan2_T(2.0 * b, rest * (1.0 + a) - b * b), size = hypot_T(a, b);
    const u32 far = far_out_Z(z), lost = b != b || (a != a && b < INFINITE_W);
    const T outer = size == INFINITE_W ? 0.0 : a / size / size;
    const T height = lost ? NAN_W : far ? 1.5707963267948966 : angle;
    return PAIR_Z(with_sign_T(z.x == 0.0 ? a : far ? outer : real, z.x), with_sign_T(height, z.y));
}

FUNCTION Z asinh_Z(Z z) {
    return right_turn_Z(asin_Z(left_turn_Z(z)));
}

FUNCTION Z acosh_Z(Z z) {
    const Z w = acos_Z(z);
    return PAIR_Z(size_T(w.y), with_sign_T(w.x, z.y));
}

FUNCTION Z atan_Z(Z z) {
    return right_turn_Z(atanh_Z(left_turn_Z(z)));
}

/* The logarithm of the gamma function, and its derivatives. Sources: NIST Digital Library of Mathematical Functions,
   5.5 (recurrence and reflection), 5.11 and 5.15 (series for large numbers), 25.11 (zeta); the polynomial is a
   minimax fit of our own. */

FUNCTION f32 log_gamma_unit_f32(f32 t) {
    /* log(gamma(t + 3/2)) / ((t + 1/2) (t - 1/2)) for t between -1/2 and 1/2. */
    f32 p = -0.00152545481f;
    p = p * t + 0.00244825706f;
    p = p * t - 0.00311643863f;
    p = p * t + 0.00532523822f;
    p = p * t - 0.00943638943f;
    p = p * t + 0.0168082155f;
    p = p * t - 0.031307999f;
    p = p * t + 0.0629110485f;
    p = p * t - 0.145959899f;
    return p * t + 0.483128965f;
}

FUNCTION f64 log_gamma_unit_f64(f64 t) {
    /* log(gamma(t + 3/2)) / ((t + 1/2) (t - 1/2)) for t between -1/2 and 1/2. */
    f64 p = 1.2148922431734838e-05;
    p = p * t - 1.85413105778364e-05;
    p = p * t + 1.3174891373031416e-05;
    p = p * t - 2.1471686472038385e-05;
    p = p * t + 4.303358406992273e-05;
    p = p * t - 6.794532539113437e-05;
    p = p * t + 0.00010535339176160404;
    p = p * t - 0.00016856961232463447;
    p = p * t + 0.00027131404604478673;
    p = p * t - 0.0004380355151925843;
    p = p * t + 0.0007115190337726783;
    p = p * t - 0.0011644113425479958;
    p = p * t + 0.001922916315044322;
    p = p * t - 0.003212074222602009;
    p = p * t + 0.005446457839039636;
    p = p * t - 0.009425622444767518;
    p = p * t + 0.016797098631275844;
    p = p * t - 0.03130848750105415;
    p = p * t + 0.06291140107456437;
    p = p * t - 0.14595989591430594;
    return p * t + 0.4831289505409809;
}

FUNCTION T stirling_tail_T(T a) {
    /* log(gamma(a)) - (a - 1/2) (log(a) - 1) - (log(2 pi) - 1) / 2 for a from 8 on. */
    const T u = 1.0 / a, z = u * u;
    T p = PICK_T(0.000793650794, -0.029550653594771242);
    p = PICK_T(p, p * z + 0.00641025641025641);
    p = PICK_T(p, p * z - 0.0019175269175269176);
    p = PICK_T(p, p * z + 0.0008417508417508417);
    p = PICK_T(p, p * z - 0.0005952380952380953);
    p = PICK_T(p, p * z + 0.0007936507936507937);
    p = p * z - 0.002777777777777778;
    return (p * z + 0.08333333333333333) * u;
}

FUNCTION T lgamma_T(T x) {
    /* A polynomial around the zeros 1 and 2. The recurrence multiplies factors above 2 and divides below 1; the
       logarithm of their product is added. Below -1 the reflection is used. */
    const T a = abs_T(x), given = x <= -1.0 ? a : x;
    const u32 under = given < 0.0, small = given < 1.0;
    T y = a, product = 1.0;
    UNROLL
    for (int k = 0; k < 6; ++k) {
        const u32 large = y >= 2.0;
        y = large ? y - 1.0 : y;
        product = large ? product * y : product;
    }
    const T u = under ? given + 1.0 : small ? given : y - 1.0, v = under ? given : small ? given - 1.0 : y - 2.0;
    const T more = log_T(under ? a * u : small ? a : product);
    const T near = u * v * log_gamma_unit_T(u - 0.5) + (small ? -more : more);
    const T far = (a - 0.5) * (log_T(a) - 1.0) + (stirling_tail_T(a) + 0.41893853320467274);
    const T value = a < 8.0 ? near : far, sine = abs_T(sinpi_T(a));
    const T turned = log_T(3.1415926535897932 / (a * sine)) - value;
    const T below = (sine == 0.0) | (a == INFINITE_W) ? INFINITE_W : turned;
    return x <= -1.0 ? below : value;
}

FUNCTION T digamma_T(T x) {
    T y = x < 0.0 ? 1.0 - x : x, sum = 0.0;
    UNROLL
    for (int k = 0; k < PICK_T(6, 10); ++k) {
        const u32 low = y < PICK_T(6.0, 10.0);
        sum = low ? sum + 1.0 / y : sum;
        y = low ? y + 1.0 : y;
    }
    const T u = 1.0 / y, z = u * u;
    T p = PICK_T(0.00396825397, 0.08333333333333333);
    p = PICK_T(p, p * z - 0.021092796092796094);
    p = PICK_T(p, p * z + 0.007575757575757576);
    p = PICK_T(p, p * z - 0.004166666666666667);
    p = PICK_T(p, p * z + 0.003968253968253968);
    p = p * z - 0.008333333333333333;
    p = p * z + 0.08333333333333333;
    const T value = (log_T(y) - (0.5 * u + p * z)) - sum;
    const T turned = value - 3.1415926535897932 * (cospi_T(x) / sinpi_T(x)), sine = sinpi_T(x);
    return x == 0.0 ? copysign_T(INFINITE_W, -x) : x < 0.0 ? (sine == 0.0 ? NAN_W : turned) : value;
}

FUNCTION T trigamma_T(T x) {
    const u32 left = x < 0.5;
    T y = left ? 1.0 - x : x, sum = 0.0;
    UNROLL
    for (int k = 0; k < 10; ++k) {
        const u32 low = y < 10.0;
        sum = low ? sum + 1.0 / (y * y) : sum;
        y = low ? y + 1.0 : y;
    }
    const T u = 1.0 / y, z = u * u;
    T p = PICK_T(0.0238095238, -7.092156862745098);
    p = PICK_T(p, p * z + 1.1666666666666667);
    p = PICK_T(p, p * z - 0.2531135531135531);
    p = PICK_T(p, p * z + 0.07575757575757576);
    p = PICK_T(p, p * z - 0.03333333333333333);
    p = PICK_T(p, p * z + 0.023809523809523808);
    p = p * z - 0.03333333333333333;
    p = p * z + 0.16666666666666667;
    const T value = sum + u * (1.0 + (0.5 * u + p * z)), slope = 3.1415926535897932 / sinpi_T(x);
    return left ? slope * slope - value : value;
}

FUNCTION T tetragamma_T(T x) {
    /* The derivative of trigamma, of whose recurrence, series and reflection each term is differentiated. */
    const u32 left = x < 0.5;
    T y = left ? 1.0 - x : x, sum = 0.0;
    UNROLL
    for (int k = 0; k < 10; ++k) {
        const u32 low = y < 10.0;
        sum = low ? sum + 1.0 / (y * y * y) : sum;
        y = low ? y + 1.0 : y;
    }
    const T u = 1.0 / y, z = u * u;
    T p = PICK_T(0.166666667, 1044.4523809523809);
    p = PICK_T(p, p * z - 120.56666666666666);
    p = PICK_T(p, p * z + 17.5);
    p = PICK_T(p, p * z - 3.2904761904761903);
    p = PICK_T(p, p * z + 0.8333333333333334);
    p = PICK_T(p, p * z - 0.3);
    p = PICK_T(p, p * z + 0.16666666666666667);
    p = p * z - 0.16666666666666667;
    p = p * z + 0.5;
    const T value = -(2.0 * sum + z * (1.0 + (u + p * z))), sine = sinpi_T(x), pole = 3.1415926535897932 / sine;
    return left ? (sine == 0.0) | (x == -INFINITE_W) ? -INFINITE_W : value - 2.0 * cospi_T(x) * (pole * pole * pole) : value;
}

CONSTANT T ZETA_TERMS_T[] = {
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.389680296322583e-13, 8.586062056277845e-15,
    -2.174868698558062e-16};

FUNCTION T zeta_sum_T(T s, T q, int count) {
    /* The sum of (q + k)**-s over k = 0, 1, ... for s above 1: count terms, and the remainder by the Euler-Maclaurin
       formula, from q + k = 9 on. */
    T sum = 0.0;
    for (int k = 0; k < count; ++k) {
        sum += power_T(q + k, -s);
    }
    const T w = q + count, least = power_T(w, -s), u = 1.0 / w;
    T term = least > abs_T(sum) * PICK_T(1e-9, 1e-18) ? least * (s * u) : 0.0, rest = 0.0;
    for (int k = 0; k < 10; ++k) {
        rest += term * ZETA_TERMS_T[k];
        term *= (s + (2 * k + 1)) * u * ((s + (2 * k + 2)) * u);
    }
    return sum + (power_T(w, 1.0 - s) / (s - 1.0) + (0.5 * least + rest));
}

FUNCTION T zeta_T(T s, T q) {
    /* For large negative q, the terms with negative q + k, whose sign is (-1)**s, are the difference of two more
       such sums. The loop prevents the compiler from inlining three copies of the sum. */
    const T whole = floor_T(q), f = q - whole;
    const u32 odd = parity_T(abs_T(s)) == 1u, broken = parity_T(abs_T(s)) > 1u, far = q <= -64.0;
    T value = 0.0;
    for (int part = 0; part < (far ? 3 : 1); ++part) {
        const T first = !far ? q : part == 0 ? f : part == 1 ? 1.0 - f : 1.0 - q;
        const T sum = zeta_sum_T(s, first, !far && q < 0.0 ? 9 - (int)whole : 9);
        value += part > 0 && (part == 1) == odd ? -sum : sum;
    }
    const T limit = q < 1.0 ? INFINITE_W : q == 1.0 ? 1.0 : NAN_W;
    const T below = q == whole ? INFINITE_W : broken ? NAN_W : value;
    return s != s || q != q ? s + q : s == 1.0 ? INFINITE_W : s < 1.0 ? NAN_W : q <= 0.0 ? below
        : s == INFINITE_W ? limit : value;
}

/* Powers: 2**(y log2(x)) with the logarithm, and the product, as sums of two numbers.

      x = 2**e m with m in [sqrt(1/2), sqrt(2)). The number c of 13/16, 1, 5/4 that is nearest to m is factored out,
   so that log2 of the quotient converges fast: 2 s (1 + s**2 / 3 + s**4 / 5 + ...) / ln 2 with s = (m - c) / (m +
   c). Numbers are split into parts of half the bits, so that products of the upper parts are exact, whether a * b +
   c is rounded once or twice (T. J. Dekker, A floating-point technique for extending the available precision, 1971). */

FUNCTION T upper_half_T(T x) {
    /* The upper 12 (26) bits of the significand. */
    return BITS_W(BITS_U(x) & PICK_T(0xFFFFF000u, 0xFFFFFFFFF8000000));
}

FUNCTION T atanh_tail_T(T z) {
    /* (2 / ln 2) (1/3 + z / 5 + …) for z up to 0.005. */
    T p = PICK_T(0.32059889797532520, 0.16972882833987805);
    p = PICK_T(p, p * z + 0.19235933878519512);
    p = PICK_T(p, p * z + 0.22195308321368668);
    p = PICK_T(p, p * z + 0.26230818925253880);
    p = PICK_T(p, p * z + 0.32059889797532520);
    p = p * z + 0.41219858311113240;
    p = p * z + 0.57707801635558536;
    return p * z + 0.96179669392597560;
}

FUNCTION T power_of_abs_T(T x, T y) {
    /* x**y of a positive finite x. y is clamped, so that intermediate results do not overflow. */
    const U bits = log_bits_T(x);
    const T f = log_fraction_T(bits), e = log_exponent_T(x, bits);
    const u32 small = f < -0.1, large = f > 0.118;
    const T c = small ? 0.8125 : large ? 1.25 : 1.0;
    const T log_c = small ? PICK_T(-0.299560546875, -0.29956028185551986098) : large
        ? PICK_T(0.3218994140625, 0.32192809489060891792) : 0.0;
    const T rest_c = small ? PICK_T(2.6501609e-7, -3.3879786202924483e-12) : large
        ? PICK_T(2.868082486e-5, -3.2465700514621104e-12) : 0.0;
    const T over = f - (c - 1.0), under = f + (c + 1.0);
    const T s_high = upper_half_T(over / under), under_high = upper_half_T(under);
    const T under_low = f - (under_high - (c + 1.0));
    const T s_low = ((over - s_high * under_high) - s_high * under_low) / under, s = s_high + s_low;
    const T factor_high = PICK_T(2.8857421875, 2.8853901028633118);
    const T factor_low = PICK_T(-0.000352105722, -2.1085384952858276e-8);
    const T head = e + log_c, step = s_high * factor_high, high = head + step, lost = step - (high - head);
    const T low = lost + (s_high * factor_low + (s_low * 2.8853900817779268 + s * (s * s) * atanh_tail_T(s * s)))
        + rest_c;
    const T log_high = upper_half_T(high + low), log_low = (high - log_high) + low;
    const T limit = PICK_T(1099511627776.0, 1208925819614629174706176.0);
    const T power = y > limit ? limit : y < -limit ? -limit : y, y_high = upper_half_T(power);
    const T product = y_high * log_high, rest = (power - y_high) * log_high + power * log_low;
    const u32 far = abs_T(product) > PICK_T(160.0, 1100.0);
    return exp2_of_sum_T(product, far ? 0.0 : rest);
}

FUNCTION u32 parity_T(T size) {
    /* The parity of a non-negative number: 1 if it is odd, 0 if it is even, 2 if it is not an integer. */
    const T border = PICK_T(8388608.0, 4503599627370496.0), moved = size + border;
    const u32 near = (moved - border == size ? 0u : 2u) | ((u32)BITS_U(moved) & 1u);
    return size < border ? (near > 1u ? 2u : near) : size < border + border ? (u32)BITS_U(size) & 1u : 0u;
}

FUNCTION T power_T(T x, T y) {
    /* pow of IEEE 754: x**0 and 1**y are 1 even if the other number is NaN. */
    const T a = abs_T(x), end = y > 0.0 ? a : DIVIDE_W(1.0, a);
    const u32 parity = parity_T(abs_T(y));
    const T size = a == 0.0 || a == INFINITE_W ? end : power_of_abs_T(a, y);
    const U sign = parity == 1u ? BITS_U(x) & PICK_T(0x80000000u, 0x8000000000000000) : 0u;
    const T value = BITS_W(BITS_U(size) ^ sign), real = x < 0.0 && parity == 2u && a < INFINITE_W ? NAN_W : value;
    return y == 0.0 || x == 1.0 ? 1.0 : x != x || y != y ? x + y : real;
}

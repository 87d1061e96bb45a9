/* Remainders and integer quotients of floating-point numbers.

      A small quotient is rounded to an integer with an error of less than 1, and the remainder is representable: one
   fused multiply-add computes it. Other quotients take a long division of the digits, which is exact too, but slow.
   Selections by sign choose between two constants: compilers turn others into branches, half of which would be
   mispredicted. */

FUNCTION i32 is_small_quotient_T(T quotient, T divisor) {
    return abs_T(quotient) < PICK_T(1048576.0, 562949953421312.0) && abs_T(divisor) < INFINITE_W;
}

FUNCTION T same_sign_T(T x, T y) {
    /* 1 where both have the same sign, else -1. */
    return copysign_T(1.0, x) * copysign_T(1.0, y);
}

FUNCTION T long_division_T(T x, T y) {
    /* The remainder of C's fmod, for any x and y. A step divides as many more digits as an integer has room for. */
    const U digits = PICK_T(23, 52), top = (U)1 << digits, infinite = BITS_U(INFINITE_W);
    const U room = PICK_T(8, 11), minus = BITS_U(x) & (U)1 << PICK_T(31, 63);
    const U a = BITS_U(x) ^ minus, b = BITS_U(y) & ~((U)1 << PICK_T(31, 63));
    if (b == 0 || a >= infinite || b > infinite) return DIVIDE_W(x - x, x - x);
    if (a < b) return x;
    const U lowest = b >> digits ? b >> digits : 1;
    const U divisor = (b & (top - 1)) | (b >> digits ? top : 0);
    U left = (a >> digits ? a >> digits : 1) - lowest, rest = ((a & (top - 1)) | (a >> digits ? top : 0)) % divisor;
    while (left && rest) {
        const U step = left < room ? left : room;
        rest = (rest << step) % divisor;
        left -= step;
    }
    if (rest == 0) return BITS_W(minus);
    U exponent = lowest;
    while (exponent > 1 && rest < top) {
        rest <<= 1;
        --exponent;
    }
    return BITS_W(minus | (rest < top ? rest : (exponent << digits | (rest & (top - 1)))));
}

FUNCTION T fmod_of_abs_T(T a, T b) {
    /* fmod of two absolute values. */
    const T quotient = DIVIDE_W(a, b);
    if (!is_small_quotient_T(quotient, b)) return long_division_T(a, b);
    const T rest = FMA_W(-round_T(quotient), b, a);
    return rest + (rest < 0.0 ? b : 0.0);
}

FUNCTION T fmod_T(T x, T y) {
    return copysign_T(fmod_of_abs_T(abs_T(x), abs_T(y)), x);
}

FUNCTION T remainder_T(T x, T y) {
    /* The remainder with the sign of the divisor, also for zeros. */
    const T size = abs_T(y), rest = fmod_of_abs_T(abs_T(x), size), from = same_sign_T(x, y) * rest < 0.0 ? size : 0.0;
    return copysign_T(abs_T(from - rest), y);
}

FUNCTION T floor_divide_by_fmod_T(T x, T y) {
    /* The dividend minus the remainder is a multiple of the divisor, so its quotient is an integer up to rounding. */
    const T quotient = DIVIDE_W(x, y), rest = long_division_T(x, y);
    const T near = DIVIDE_W(x - rest, y) - (abs_T(rest) * same_sign_T(rest, y) < 0.0 ? 1.0 : 0.0);
    const T low = floor_T(near), whole = low + (near - low > 0.5 ? 1.0 : 0.0);
    return y == 0.0 ? quotient : near == 0.0 ? copysign_T(0.0, quotient) : whole;
}

FUNCTION T floor_divide_T(T x, T y) {
    const T quotient = DIVIDE_W(x, y), sign = same_sign_T(x, y);
    if (!is_small_quotient_T(quotient, y)) return floor_divide_by_fmod_T(x, y);
    const T whole = round_T(abs_T(quotient)), rest = FMA_W(-whole, abs_T(y), abs_T(x));
    return sign * whole - (sign * rest < 0.0 ? 1.0 : 0.0);
}

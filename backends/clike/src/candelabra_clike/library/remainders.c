/* Remainders and whole quotients of floating-point numbers.

   A quotient that is short in the mantissa is rounded to a whole number by less than 1, and what so many divisors leave
   is a number: one fused product finds it. For other quotients there is C's fmod, which is exact too, and slow.
   What depends on signs is a choice between two constants: of others drivers make jumps, which a processor guesses wrong
   at every other element. */

FUNCTION i32 short_quotient_T(T quotient, T divisor) {
    return size_T(quotient) < PICK_T(1048576.0, 562949953421312.0) && size_T(divisor) < INFINITE_W;
}

FUNCTION T agreement_T(T x, T y) {
    /* 1 where both have the same sign, else -1. */
    return with_sign_T(1.0, x) * with_sign_T(1.0, y);
}

FUNCTION T rest_T(T a, T b) {
    /* fmod of two sizes. */
    const T quotient = DIVIDE_W(a, b);
    if (!short_quotient_T(quotient, b)) return fmod(a, b);
    const T rest = FMA_W(-round_T(quotient), b, a);
    return rest + (rest < 0.0 ? b : 0.0);
}

FUNCTION T fmod_T(T x, T y) {
    return with_sign_T(rest_T(size_T(x), size_T(y)), x);
}

FUNCTION T remainder_T(T x, T y) {
    /* With the sign of the divisor, of zeros too. */
    const T size = size_T(y), rest = rest_T(size_T(x), size), from = agreement_T(x, y) * rest < 0.0 ? size : 0.0;
    return with_sign_T(size_T(from - rest), y);
}

FUNCTION T long_floor_divide_T(T x, T y) {
    /* What is left when the remainder is taken away is a multiple of the divisor, and its quotient nearly whole. */
    const T quotient = DIVIDE_W(x, y), rest = fmod(x, y);
    const T near = DIVIDE_W(x - rest, y) - (size_T(rest) * agreement_T(rest, y) < 0.0 ? 1.0 : 0.0);
    const T low = floor_T(near), whole = low + (near - low > 0.5 ? 1.0 : 0.0);
    return y == 0.0 ? quotient : near == 0.0 ? with_sign_T(0.0, quotient) : whole;
}

FUNCTION T floor_divide_T(T x, T y) {
    const T quotient = DIVIDE_W(x, y), sign = agreement_T(x, y);
    if (!short_quotient_T(quotient, y)) return long_floor_divide_T(x, y);
    const T whole = round_T(size_T(quotient)), rest = FMA_W(-whole, size_T(y), size_T(x));
    return sign * whole - (sign * rest < 0.0 ? 1.0 : 0.0);
}

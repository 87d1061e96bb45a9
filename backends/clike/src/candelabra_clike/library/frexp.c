/* The mantissa and the exponent of floating-point numbers, and the derivative of the mantissa. */

FUNCTION T frexp_mantissa_T(T x) {
    const T a = abs_T(x), normal = a < PICK_T(1.17549435e-38, 2.2250738585072014e-308)
        ? a * PICK_T(8388608.0, 4503599627370496.0) : a;
    const U bits = BITS_U(normal) & PICK_T(0x007FFFFFu, 0x000FFFFFFFFFFFFF);
    const T part = BITS_W(bits | PICK_T(0x3F000000u, 0x3FE0000000000000));
    return x == 0.0 || !(a < INFINITE_W) ? x : copysign_T(part, x);
}

FUNCTION i32 frexp_exponent_T(T x) {
    const T a = abs_T(x);
    const u32 tiny = a < PICK_T(1.17549435e-38, 2.2250738585072014e-308);
    const U bits = BITS_U(tiny ? a * PICK_T(8388608.0, 4503599627370496.0) : a);
    const i32 exponent = (i32)(bits >> PICK_T(23, 52)) - PICK_T(126, 1022) - (tiny ? PICK_T(23, 52) : 0);
    return x == 0.0 || !(a < INFINITE_W) ? 0 : exponent;
}

/* t / 2**(exponent of x), by two powers of 2: one alone overflows for the smallest numbers. */
FUNCTION T frexp_along_T(T t, T x) {
    const i32 exponent = frexp_exponent_T(x), lower = exponent / 2;
    const U first = (U)(PICK_T(127, 1023) - lower), second = (U)(PICK_T(127, 1023) - (exponent - lower));
    return t * BITS_W(first << PICK_T(23, 52)) * BITS_W(second << PICK_T(23, 52));
}

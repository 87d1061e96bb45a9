/* sin(pi x) and cos(pi x). Quarter turns are subtracted exactly. The series are minimax fits of our own. */

FUNCTION T reduce_mod_8_T(T a) {
    /* a modulo 8, between -4 and 4; 0 for numbers so large that all of them are even. */
    const T shift = PICK_T(12582912.0, 6755399441055744.0);
    return a < PICK_T(16777216.0, 9007199254740992.0) ? a - 8.0 * ((a * 0.125 + shift) - shift) : 0.0;
}

FUNCTION f32 sine_series_of_pi_f32(f32 t) {
    f32 p = 0.0812296867f;
    p = p * t - 0.599228799f;
    p = p * t + 2.55016351f;
    return p * t - 5.16771269f;
}

FUNCTION f64 sine_series_of_pi_f64(f64 t) {
    f64 p = -2.1742072908212185e-05;
    p = p * t + 0.0004662879336583552;
    p = p * t - 0.007370430312368205;
    p = p * t + 0.08214588659727914;
    p = p * t - 0.5992645293206479;
    p = p * t + 2.550164039877345;
    return p * t - 5.16771278004997;
}

FUNCTION f32 cosine_series_of_pi_f32(f32 t) {
    f32 p = -0.0255668405f;
    p = p * t + 0.235321268f;
    p = p * t - 1.33526266f;
    return p * t + 4.05871201f;
}

FUNCTION f64 cosine_series_of_pi_f64(f64 t) {
    f64 p = 4.272814746559471e-06;
    p = p * t - 0.00010463550791442355;
    p = p * t + 0.00192957419880006;
    p = p * t - 0.025806891387595444;
    p = p * t + 0.235330630358868;
    p = p * t - 1.3352627688545895;
    return p * t + 4.0587121264167685;
}

FUNCTION T sine_of_pi_T(T r) {
    /* For r up to 1/4. */
    const T z = r * r, rest = PICK_T(-8.74227766e-8, 1.2246467991473532e-16);
    return r * PICK_T(3.14159274, 3.1415926535897931) + r * (sine_series_of_pi_T(z) * z + rest);
}

FUNCTION T cosine_of_pi_T(T r) {
    const T z = r * r;
    return 1.0 - (z * 4.934802200544679 - cosine_series_of_pi_T(z) * (z * z));
}

FUNCTION T sin_pi_in_quadrant_T(T x, T a, u32 more) {
    const T shift = PICK_T(12582912.0, 6755399441055744.0), t = 2.0 * a + shift, r = a - 0.5 * (t - shift);
    const u32 quadrant = (u32)BITS_U(t) + more;
    const T value = quadrant & 1u ? cosine_of_pi_T(r) : sine_of_pi_T(r);
    return (quadrant & 2u ? -value : value) + 0.0 * (x - x);
}

FUNCTION T sinpi_T(T x) {
    const T value = sin_pi_in_quadrant_T(x, reduce_mod_8_T(abs_T(x)), 0u);
    return BITS_W(BITS_U(value) ^ (BITS_U(x) & PICK_T(0x80000000u, 0x8000000000000000)));
}

FUNCTION T cospi_T(T x) {
    return sin_pi_in_quadrant_T(x, reduce_mod_8_T(abs_T(x)), 1u);
}

FUNCTION T sinc_T(T x) {
    /* sin(pi x) / (pi x) */
    return x == 0.0 ? 1.0 : sinpi_T(x) / (3.1415926535897932 * x);
}

FUNCTION Z sinc_Z(Z z) {
    /* (-1)**n sin(pi (z - n)) / (pi z), where n is the nearest integer. */
    const T n = round_T(z.x), pi = 3.1415926535897932;
    const Z sine = sin_Z(PAIR_Z(pi * (z.x - n), pi * z.y)), turned = parity_T(abs_T(n)) == 1u ? -sine : sine;
    const Z value = divide_Z(turned, PAIR_Z(pi * z.x, pi * z.y));
    return z.x == 0.0 && z.y == 0.0 ? PAIR_Z(1.0, 0.0) : value;
}

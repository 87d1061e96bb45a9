/* The inverses of sine, cosine and tangent; polynomials are minimax fits of our own.

   For arguments far from 0, the arc tangent is atan((a - b) / (a + b)) + pi / 4, or atan(-b / a) + pi / 2. */

FUNCTION f32 atan_tail_f32(f32 t) {
    /* atan(t) - t for t up to tan(pi / 8). */
    const f32 z = t * t;
    f32 p = -0.0603388809f;
    p = p * z + 0.105765492f;
    p = p * z - 0.142412692f;
    p = p * z + 0.199983582f;
    p = p * z - 0.333333135f;
    return p * z * t;
}

FUNCTION f64 atan_tail_f64(f64 t) {
    const f64 z = t * t;
    f64 p = -0.017755275186759879;
    p = p * z + 0.037927350814510631;
    p = p * z - 0.050339697591670021;
    p = p * z + 0.058467211926108299;
    p = p * z - 0.066629459097044638;
    p = p * z + 0.0769204653613033;
    p = p * z - 0.090908970034235606;
    p = p * z + 0.11111110757810053;
    p = p * z - 0.14285714279697073;
    p = p * z + 0.19999999999948789;
    p = p * z - 0.33333333333333182;
    return p * z * t;
}

FUNCTION T angle_T(T a, T b, T back) {
    /* atan(a / b) of non-negative numbers whose sum is finite, or one of which is infinite. back is b, or -b for the
       supplementary angle if that is near a quarter turn. */
    const u32 steep = a > 2.414213562373095 * b, middle = a > 0.4142135623730951 * b;
    const T over = steep ? -back : middle ? a - b : a, under = steep ? a : middle ? a + b : b;
    const T t = under == 0.0 ? over : over / under;
    const T base = steep ? PICK_T(1.57079637, 1.5707963267948966) : middle ? PICK_T(0.785398185, 0.78539816339744828)
        : 0.0;
    const T low = steep ? PICK_T(-4.37113883e-8, 6.123233995736766e-17)
                        : middle ? PICK_T(-2.18556941e-8, 3.061616997868383e-17) : 0.0;
    return base + (t + (atan_tail_T(t) + low));
}

FUNCTION T atan_T(T x) {
    return copysign_T(angle_T(abs_T(x), 1.0, 1.0), x);
}

FUNCTION T atan2_T(T y, T x) {
    const T a = abs_T(y), b = abs_T(x), scale = a + b > PICK_T(1e38, 1e308) ? 0.25 : 1.0;
    const u32 diagonal = a == INFINITE_W && b == INFINITE_W;
    const T p = diagonal ? 1.0 : a * scale, q = diagonal ? 1.0 : b * scale, angle = angle_T(p, q, copysign_T(q, x));
    const u32 behind = BITS_U(x) >> PICK_T(31, 63) && !(p > 2.414213562373095 * q);
    const T high = PICK_T(3.14159274, 3.1415926535897931), low = PICK_T(-8.74227766e-8, 1.2246467991473532e-16);
    return copysign_T(behind ? high - (angle - low) : angle, y);
}

FUNCTION f32 asin_tail_f32(f32 t) {
    /* asin(t) - t for t up to 1 / 2. */
    const f32 z = t * t;
    f32 p = 0.042233292f;
    p = p * z + 0.0241426826f;
    p = p * z + 0.0454772711f;
    p = p * z + 0.0749524757f;
    p = p * z + 0.166667536f;
    return p * z * t;
}

FUNCTION f64 asin_tail_f64(f64 t) {
    const f64 z = t * t;
    f64 p = 0.032737140932294011;
    p = p * z - 0.021168421126240747;
    p = p * z + 0.021824102499783126;
    p = p * z + 0.0036597400694558697;
    p = p * z + 0.010792259006417435;
    p = p * z + 0.011396834748221547;
    p = p * z + 0.013981066216425447;
    p = p * z + 0.017351592242263719;
    p = p * z + 0.02237221604584861;
    p = p * z + 0.030381942671827845;
    p = p * z + 0.044642857175325609;
    p = p * z + 0.074999999999700917;
    p = p * z + 0.16666666666666763;
    return p * z * t;
}

/* From 1/2 on by the half angle: asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)). */

FUNCTION T asin_T(T x) {
    const T a = abs_T(x);
    const u32 far = a > 0.5;
    const T t = far ? SQRT_W(0.5 - 0.5 * a) : a, tail = asin_tail_T(t);
    const T high = PICK_T(1.57079637, 1.5707963267948966), low = PICK_T(-4.37113883e-8, 6.123233995736766e-17);
    return copysign_T(far ? high - (2.0 * t + (2.0 * tail - low)) : t + tail, x);
}

FUNCTION T acos_T(T x) {
    const T a = abs_T(x);
    const u32 far = a > 0.5;
    const T t = far ? SQRT_W(0.5 - 0.5 * a) : x, tail = asin_tail_T(t);
    const T high = PICK_T(1.57079637, 1.5707963267948966), low = PICK_T(-4.37113883e-8, 6.123233995736766e-17);
    const T half_angle = 2.0 * (t + tail);
    return !far ? high - (t + (tail - low)) : x < 0.0 ? 2.0 * high - (half_angle - 2.0 * low) : half_angle;
}

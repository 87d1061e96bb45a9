/* Activation functions, and their derivatives where the two share most of the computation.

   An exponential that may be subnormal is scaled by 2**40 before it is multiplied, so that no digits are lost, and the
   product is scaled back. At the infinities a derivative is that of the formula, 0 times infinity, which is NaN: the
   derivative is computed for a clamped x, and 0 * x is added. */

#define TINY_SCALE_T 9.094947017729282e-13

FUNCTION T times_tiny_scale_T(T y) {
    /* y TINY_SCALE for y >= 0, with integers where the result is subnormal: a product with such a result takes hundreds of
       cycles on some processors. The last bit of y + least stands for the smallest number. The bits of numbers are
       compared, since compilers that see one comparison of y twice multiply y itself. */
    const T least = PICK_T(1.2924697071141057e-26, 2.446494580089078e-296);
    const U bits = BITS_U(y), normal = bits < BITS_U(least) ? BITS_U(least) : bits;
    return y < least ? BITS_W(BITS_U(y + least) - BITS_U(least)) : BITS_W(normal) * TINY_SCALE_T;
}

FUNCTION T times_sigmoid_T(T x, T y) {
    const T e = exp_of_sum_T(-abs_T(y), -0.0, -40);
    const T quotient = (y < 0.0 ? x * e : x) / (1.0 + e * TINY_SCALE_T);
    return y < 0.0 ? quotient * TINY_SCALE_T : quotient;
}

FUNCTION T silu_derivative_T(T x) {
    /* s (1 + x (1 - s)) with s = sigmoid(x) and 1 - s = sigmoid(-x) from one exponential. */
    const T e = exp_of_sum_T(-abs_T(x), -0.0, -40), large = 1.0 / (1.0 + e * TINY_SCALE_T), small = e * large;
    return x < 0.0 ? small * (1.0 + x * large) * TINY_SCALE_T : large * (1.0 + x * (small * TINY_SCALE_T));
}

FUNCTION f32 gelu_near_f32(f32 x) {
    /* max(x, 0) - a Phi(-a) with a = |x|, for x from -5 on. Phi(-a) is the eighth power of a polynomial: its eighth root
       is so smooth that ten terms suffice for the accuracy that the rounding of x allows. */
    const f32 size = abs_f32(x), a = size > 6.0f ? 6.0f : size;
    f32 p = 1.90790606e-09f;
    p = p * a - 4.64316443e-08f;
    p = p * a + 1.65876799e-07f;
    p = p * a + 5.01167278e-06f;
    p = p * a - 5.24645293e-05f;
    p = p * a + 1.92971256e-05f;
    p = p * a + 0.00152183312f;
    p = p * a - 0.000683785998f;
    p = p * a - 0.0319237895f;
    p = p * a - 0.0914581269f;
    p = p * a + 0.917004049f;
    const f32 square = p * p, fourth = square * square;
    return (x < 0.0f ? 0.0f : x) - (a * fourth) * fourth;
}

FUNCTION T gelu_T(T x) {
    const T size = abs_T(x), a = size > PICK_T(14.4, 39.0) ? PICK_T(14.4, 39.0) : size;
    const T tail = exp_square_T(a, -0.5, -40) * normal_tail_T(a);
    return x < 0.0 ? 0.0 * x - times_tiny_scale_T(a * tail) : x * (1.0 - times_tiny_scale_T(tail));
}

FUNCTION f32 gelu_near_derivative_f32(f32 x) {
    /* B = Phi(-a) - a phi(a) with a = |x|, or 1 - B, for x from -5 on. B changes its sign at 0.75179; the quotient by the
       distance from there is the eighth power of a polynomial, as in gelu_near_f32. */
    const f32 size = abs_f32(x), a = size > 6.5f ? 6.5f : size;
    f32 p = 3.55995566e-09f;
    p = p * a - 1.08485928e-07f;
    p = p * a + 1.111546e-06f;
    p = p * a - 2.38317784e-06f;
    p = p * a - 1.83704942e-05f;
    p = p * a - 0.000140479475f;
    p = p * a + 0.00251308898f;
    p = p * a - 0.00302004325f;
    p = p * a - 0.0456317142f;
    p = p * a - 0.0315513536f;
    p = size > 6.5f ? 0.0f : p * a + 0.950296342f;
    const f32 square = p * p, fourth = square * square, below = ((0.75179152f - a) * fourth) * fourth;
    return (x < 0.0f ? below : 1.0f - below) + 0.0f * x;
}

FUNCTION f32 gelu_below_f32(f32 x) {
    /* -exp(-a**2 / 2) times a Phi(-a) exp(a**2 / 2) with a = -x, for x below -5. The second factor is nearly constant
       there: a polynomial, in place of the quotient of normal_tail_f32. From -14.4 on the result is 0. */
    const f32 size = abs_f32(x), a = size > 14.4f ? 14.4f : size, t = a * 0.212720692f - 2.06339073f;
    f32 p = -3.45073822e-05f;
    p = p * t + 6.51456794e-05f;
    p = p * t - 4.24044556e-05f;
    p = p * t + 0.0001022129f;
    p = p * t - 0.000287398172f;
    p = p * t + 0.000533747487f;
    p = p * t - 0.000945862208f;
    p = p * t + 0.00165924919f;
    p = p * t - 0.00270203012f;
    p = p * t + 0.00386686879f;
    p = p * t + 0.394830763f;
    return 0.0f * x - times_tiny_scale_f32(exp_square_f32(a, -0.5f, -40) * p);
}

FUNCTION f32 gelu_anywhere_f32(f32 x) {
    /* Both are computed, without a branch, so that a loop with any number of far values is vectorised. */
    const f32 far = gelu_below_f32(x), near = gelu_near_f32(x);
    return x < -5.0f ? far : near;
}

FUNCTION T gelu_derivative_T(T x) {
    /* Phi(x) + x phi(x) */
    const T size = abs_T(x), a = size > PICK_T(15.0, 39.0) ? PICK_T(15.0, 39.0) : size;
    const T e = exp_square_T(a, -0.5, -40);
    const T scaled = e * (normal_tail_T(a) - 0.39894228040143268 * a);
    const T below = copysign_T(times_tiny_scale_T(abs_T(scaled)), scaled);
    return (x < 0.0 ? below : 1.0 - below) + 0.0 * x;
}

FUNCTION f32 gelu_derivative_anywhere_f32(f32 x) {
    const f32 far = gelu_derivative_f32(x), near = gelu_near_derivative_f32(x);
    return x < -5.0f ? far : near;
}

FUNCTION T gelu_tanh_T(T x) {
    /* (1 + tanh(u)) / 2 is sigmoid(2 u). */
    return times_sigmoid_T(x, x * (1.5957691216057308 + 0.071354816272600249 * (x * x)));
}

FUNCTION T gelu_tanh_derivative_T(T x) {
    /* s + x s (1 - s) 2 u' with s = sigmoid(2 u) and 1 - s from one exponential; from 30 on they are 0 and 1. */
    const T size = abs_T(x), a = size > 30.0 ? 30.0 : size, square = a * a;
    const T e = exp_of_sum_T(-a * (1.5957691216057308 + 0.071354816272600249 * square), -0.0, -40);
    const T large = 1.0 / (1.0 + e * TINY_SCALE_T), small = e * large;
    const T bend = a * (1.5957691216057308 + 0.21406444881780075 * square) * large;
    const T below = small * (1.0 - bend) * TINY_SCALE_T;
    return (x < 0.0 ? below : 1.0 - below) + 0.0 * x;
}

FUNCTION T elu_T(T x, T alpha, T scale, T input_scale) {
    const T scaled = x * input_scale;
    return x > 0.0 ? x * scale : expm1_T(scaled > 0.0 ? 0.0 : scaled) * (alpha * scale);
}

FUNCTION T huber_T(T difference, T curve, T width, T slope) {
    const T d = abs_T(difference);
    return d > width ? (d - 0.5 * width) * slope : d * d * curve;
}

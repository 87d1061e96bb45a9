/* Activations of networks, and the slopes of those whose formulas share most of the work.

   What multiplies an exponential that may be subnormal multiplies 2**40 times as much, so that nothing is lost
   before the product is scaled back. At the infinities a slope is what the formula gives, 0 times infinity: 0 * x
   adds it to one that was computed of a limited x. */

#define TINY_SCALE_T 9.094947017729282e-13

FUNCTION T times_sigmoid_T(T x, T y) {
    const T e = exp_parts_T(-size_T(y), 0.0, -40), below = 1.0 + e * TINY_SCALE_T;
    return y < 0.0 ? (x * e) / below * TINY_SCALE_T : x / below;
}

FUNCTION T silu_slope_T(T x) {
    /* s (1 + x (1 - s)) with s = sigmoid(x) and 1 - s = sigmoid(-x) from one exponential. */
    const T e = exp_parts_T(-size_T(x), 0.0, -40), large = 1.0 / (1.0 + e * TINY_SCALE_T), small = e * large;
    return x < 0.0 ? small * (1.0 + x * large) * TINY_SCALE_T : large * (1.0 + x * (small * TINY_SCALE_T));
}

FUNCTION f32 gelu_tail_f32(f32 a) {
    /* Phi(-a) 2**40 for a up to 15, half of exp(-a**2 / 2) erfcx(a / sqrt(2)) by a polynomial of 1 / (1 + a / 4).
       With the factor the exponential is a normal number, so that one product scales it. */
    const f32 half_way = -0.5f * a, shifted = half_way * a * 1.44269504f + 12582912.0f, k = shifted - 12582912.0f;
    const f32 r = (half_way * a - k * 0.693145752f) - k * 1.42860677e-6f, t = 1.0f / (1.0f + 0.25f * a);
    f32 e = 0.00138624036f;
    e = e * r + 0.00837107934f;
    e = e * r + 0.0416678898f;
    e = e * r + 0.166665003f;
    e = e * r + 0.49999994f;
    e = (e * r) * r + r;
    f32 p = 0.0363832004f;
    p = p * t - 0.20894289f;
    p = p * t + 0.423866093f;
    p = p * t - 0.37035197f;
    p = p * t + 0.33376658f;
    p = p * t - 0.0353245474f;
    p = p * t + 0.126457363f;
    p = p * t + 0.0938325524f;
    p = p * t + 0.100340597f;
    p = p * t - 2.69690518e-05f;
    return p * ((e + 1.0f) * BITS_F32((BITS_U32(shifted) + 167u) << 23));
}

FUNCTION f64 gelu_tail_f64(f64 a) {
    return exp_square_f64(a, -0.5, -40) * normal_tail_f64(a);
}

FUNCTION T gelu_T(T x) {
    const T size = size_T(x), a = size > PICK_T(15.0, 39.0) ? PICK_T(15.0, 39.0) : size, tail = gelu_tail_T(a);
    return x < 0.0 ? (-a * tail) * TINY_SCALE_T + 0.0 * x : x * (1.0 - tail * TINY_SCALE_T);
}

FUNCTION T gelu_slope_T(T x) {
    /* Phi(x) + x phi(x) */
    const T size = size_T(x), a = size > PICK_T(15.0, 39.0) ? PICK_T(15.0, 39.0) : size, e = exp_square_T(a, -0.5, -40);
    const T below = e * (normal_tail_T(a) - 0.39894228040143268 * a) * TINY_SCALE_T;
    return (x < 0.0 ? below : 1.0 - below) + 0.0 * x;
}

FUNCTION T gelu_tanh_T(T x) {
    /* (1 + tanh(u)) / 2 is sigmoid(2 u). */
    return times_sigmoid_T(x, x * (1.5957691216057308 + 0.071354816272600249 * (x * x)));
}

FUNCTION T gelu_tanh_slope_T(T x) {
    /* s + x s (1 - s) 2 u' with s = sigmoid(2 u) and 1 - s from one exponential; from 30 on they are 0 and 1. */
    const T size = size_T(x), a = size > 30.0 ? 30.0 : size, square = a * a;
    const T e = exp_parts_T(-a * (1.5957691216057308 + 0.071354816272600249 * square), 0.0, -40);
    const T large = 1.0 / (1.0 + e * TINY_SCALE_T), small = e * large;
    const T bend = a * (1.5957691216057308 + 0.21406444881780075 * square) * large;
    const T below = small * (1.0 - bend) * TINY_SCALE_T;
    return (x < 0.0 ? below : 1.0 - below) + 0.0 * x;
}

FUNCTION T elu_T(T x, T alpha, T scale, T input_scale) {
    const T scaled = x * input_scale;
    return x > 0.0 ? x * scale : expm1_T(scaled > 0.0 ? 0.0 : scaled) * (alpha * scale);
}

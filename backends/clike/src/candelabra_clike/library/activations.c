/* Activations of networks, and the slopes of those whose formulas share most of the work.

   What multiplies an exponential that may be subnormal multiplies 2**40 times as much, so that nothing is lost before the
   product is scaled back. At the infinities a slope is what the formula gives, 0 times infinity: 0 * x adds it to one that
   was computed of a limited x. */

#define TINY_SCALE 9.094947017729282e-13f

FUNCTION f32 times_sigmoid_f32(f32 x, f32 y) {
    const f32 e = exp_parts_f32(-size_f32(y), 0.0f, -40), below = 1.0f + e * TINY_SCALE;
    return y < 0.0f ? (x * e) / below * TINY_SCALE : x / below;
}

FUNCTION f64 times_sigmoid_f64(f64 x, f64 y) {
    const f64 e = exp_parts_f64(-size_f64(y), 0.0, -40), below = 1.0 + e * TINY_SCALE;
    return y < 0.0 ? (x * e) / below * TINY_SCALE : x / below;
}

FUNCTION f32 silu_slope_f32(f32 x) {
    /* s (1 + x (1 - s)) with s = sigmoid(x) and 1 - s = sigmoid(-x) from one exponential. */
    const f32 e = exp_parts_f32(-size_f32(x), 0.0f, -40), large = 1.0f / (1.0f + e * TINY_SCALE), small = e * large;
    return x < 0.0f ? small * (1.0f + x * large) * TINY_SCALE : large * (1.0f + x * (small * TINY_SCALE));
}

FUNCTION f64 silu_slope_f64(f64 x) {
    /* s (1 + x (1 - s)) with s = sigmoid(x) and 1 - s = sigmoid(-x) from one exponential. */
    const f64 e = exp_parts_f64(-size_f64(x), 0.0, -40), large = 1.0 / (1.0 + e * TINY_SCALE), small = e * large;
    return x < 0.0 ? small * (1.0 + x * large) * TINY_SCALE : large * (1.0 + x * (small * TINY_SCALE));
}

FUNCTION f32 gelu_f32(f32 x) {
    const f32 size = size_f32(x), a = size > 15.0f ? 15.0f : size;
    const f32 tail = exp_square_f32(a, -0.5f, -40) * normal_tail_f32(a);
    return x < 0.0f ? (x * tail) * TINY_SCALE : x * (1.0f - tail * TINY_SCALE);
}

FUNCTION f64 gelu_f64(f64 x) {
    const f64 size = size_f64(x), a = size > 39.0 ? 39.0 : size;
    const f64 tail = exp_square_f64(a, -0.5, -40) * normal_tail_f64(a);
    return x < 0.0 ? (x * tail) * TINY_SCALE : x * (1.0 - tail * TINY_SCALE);
}

FUNCTION f32 gelu_slope_f32(f32 x) {
    /* Phi(x) + x phi(x) */
    const f32 size = size_f32(x), a = size > 15.0f ? 15.0f : size, e = exp_square_f32(a, -0.5f, -40);
    const f32 below = e * (normal_tail_f32(a) - 0.39894228040143268f * a) * TINY_SCALE;
    return (x < 0.0f ? below : 1.0f - below) + 0.0f * x;
}

FUNCTION f64 gelu_slope_f64(f64 x) {
    /* Phi(x) + x phi(x) */
    const f64 size = size_f64(x), a = size > 39.0 ? 39.0 : size, e = exp_square_f64(a, -0.5, -40);
    const f64 below = e * (normal_tail_f64(a) - 0.39894228040143268 * a) * TINY_SCALE;
    return (x < 0.0 ? below : 1.0 - below) + 0.0 * x;
}

FUNCTION f32 gelu_tanh_f32(f32 x) {
    /* (1 + tanh(u)) / 2 is sigmoid(2 u). */
    return times_sigmoid_f32(x, x * (1.5957691216057308f + 0.071354816272600249f * (x * x)));
}

FUNCTION f64 gelu_tanh_f64(f64 x) {
    /* (1 + tanh(u)) / 2 is sigmoid(2 u). */
    return times_sigmoid_f64(x, x * (1.5957691216057308 + 0.071354816272600249 * (x * x)));
}

FUNCTION f32 gelu_tanh_slope_f32(f32 x) {
    /* s + x s (1 - s) 2 u' with s = sigmoid(2 u) and 1 - s from one exponential; from 30 on they are 0 and 1. */
    const f32 size = size_f32(x), a = size > 30.0f ? 30.0f : size, square = a * a;
    const f32 e = exp_parts_f32(-a * (1.5957691216057308f + 0.071354816272600249f * square), 0.0f, -40);
    const f32 large = 1.0f / (1.0f + e * TINY_SCALE), small = e * large;
    const f32 bend = a * (1.5957691216057308f + 0.21406444881780075f * square) * large;
    const f32 below = small * (1.0f - bend) * TINY_SCALE;
    return (x < 0.0f ? below : 1.0f - below) + 0.0f * x;
}

FUNCTION f64 gelu_tanh_slope_f64(f64 x) {
    /* s + x s (1 - s) 2 u' with s = sigmoid(2 u) and 1 - s from one exponential; from 30 on they are 0 and 1. */
    const f64 size = size_f64(x), a = size > 30.0 ? 30.0 : size, square = a * a;
    const f64 e = exp_parts_f64(-a * (1.5957691216057308 + 0.071354816272600249 * square), 0.0, -40);
    const f64 large = 1.0 / (1.0 + e * TINY_SCALE), small = e * large;
    const f64 bend = a * (1.5957691216057308 + 0.21406444881780075 * square) * large;
    const f64 below = small * (1.0 - bend) * TINY_SCALE;
    return (x < 0.0 ? below : 1.0 - below) + 0.0 * x;
}

FUNCTION f32 elu_f32(f32 x, f32 alpha, f32 scale, f32 input_scale) {
    const f32 scaled = x * input_scale;
    return x > 0.0f ? x * scale : expm1_f32(scaled > 0.0f ? 0.0f : scaled) * (alpha * scale);
}

FUNCTION f64 elu_f64(f64 x, f64 alpha, f64 scale, f64 input_scale) {
    const f64 scaled = x * input_scale;
    return x > 0.0 ? x * scale : expm1_f64(scaled > 0.0 ? 0.0 : scaled) * (alpha * scale);
}

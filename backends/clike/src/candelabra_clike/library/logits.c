/* Logits, and logarithms of sums of exponentials. */

FUNCTION T clamp_T(T x, T low, T high) {
    const T above = x < low ? low : x;
    return above > high ? high : above;
}

FUNCTION T logit_T(T x) {
    return log_T(x / (1.0 - x));
}

/* The larger term is factored out. The difference of equal infinities is NaN, so they are returned as they are. Equal
       numbers are handled separately, because a rounded product with log(2) would give -0 for -1 and -1. */

FUNCTION T logaddexp_T(T x, T y) {
    const T high = (x > y) | (x != x) ? x : y, gap = x == y ? 0.0 : -abs_T(x - y);
    return high + log1p_T(exp_T(gap));
}

FUNCTION T logaddexp2_T(T x, T y) {
    const T high = (x > y) | (x != x) ? x : y, gap = x == y ? 0.0 : -abs_T(x - y);
    return high + (gap == 0.0 ? 1.0 : 1.4426950408889634 * log1p_T(exp2_T(gap)));
}

FUNCTION Z logaddexp_Z(Z x, Z y) {
    const u32 first = x.x >= y.x;
    const Z high = first ? x : y, low = first ? y : x;
    const u32 finite = abs_T(high.x) < INFINITE_W && abs_T(high.y) < INFINITE_W;
    return high.x == low.x && high.y == low.y && !finite ? high : high + log1p_Z(exp_Z(low - high));
}

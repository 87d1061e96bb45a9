/* Logarithms of odds, and of sums of exponentials. */

FUNCTION T limited_T(T x, T low, T high) {
    const T above = x < low ? low : x;
    return above > high ? high : above;
}

FUNCTION T logit_T(T x) {
    return log_T(x / (1.0 - x));
}

/* The larger term is taken out. Equal infinities have no difference, and nothing to add. Equal
   numbers are exactly doubled, lest what a product with the logarithm of 2 lacks of 1 makes -0 of -1 and -1. */

FUNCTION T log_of_sum_T(T x, T y) {
    const T high = (x > y) | (x != x) ? x : y, gap = x == y ? 0.0 : -size_T(x - y);
    return high + log1p_T(exp_T(gap));
}

FUNCTION T log2_of_sum_T(T x, T y) {
    const T high = (x > y) | (x != x) ? x : y, gap = x == y ? 0.0 : -size_T(x - y);
    return high + (gap == 0.0 ? 1.0 : 1.4426950408889634 * log1p_T(exp2_T(gap)));
}

FUNCTION Z log_of_sum_Z(Z x, Z y) {
    const u32 first = x.x >= y.x;
    const Z high = first ? x : y, low = first ? y : x;
    const u32 finite = size_T(high.x) < INFINITE_W && size_T(high.y) < INFINITE_W;
    return high.x == low.x && high.y == low.y && !finite ? high : high + log1p_Z(exp_Z(low - high));
}

/* The logarithm of the quantile of the gamma distribution, to 9 digits. Sources: N. M. Temme, Asymptotic inversion of
   incomplete gamma functions, Math. Comp. 58 (1992), which serves large shapes and is the first guess for others;
   NIST Digital Library of Mathematical Functions, 8.7.1 (series) and 8.9.2 (continued fraction). */

FUNCTION f64 probability_f64(u64 w) {
    const f64 u = uniform_f64(w);
    return u < 5.5511151231257827e-17 ? 5.5511151231257827e-17 : u;
}

FUNCTION f64 balance_f64(f64 eta) {
    /* The l of the sign of eta with exp(l) - 1 - l == eta**2 / 2. */
    const f64 energy = 0.5 * eta * eta, start = 1.0 + energy;
    f64 p = -2.553644914756026e-05, l;
    if (abs_f64(eta) < 1.5) {
        p = p * eta + 5.878894767783657e-05;
        p = p * eta + 0.00023148148148148149;
        p = p * eta - 0.0037037037037037038;
        p = p * eta + 0.027777777777777776;
        p = p * eta + 0.33333333333333331;
        l = log1p_f64(eta * (p * eta + 1.0));
    } else {
        l = eta < 0.0 ? exp_f64(-start) - start : log_f64(start + log_f64(start));
    }
    const int count = abs_f64(eta) < 0.4 ? 0 : abs_f64(eta) < 1.5 ? 1 : 2;
    for (int k = 0; k < count; ++k) {
        const f64 slope = expm1_f64(l), step = (slope - l - energy) / slope;
        l -= step / (1.0 - 0.5 * step * ((slope + 1.0) / slope));
    }
    return l;
}

FUNCTION f64 log_gamma_asymptotic_f64(f64 a, f64 z) {
    /* log(x / a) for the normal quantile z of the probability. */
    const f64 e = z / SQRT_F64(a), u = 1.0 / a;
    f64 p = -6.185087203605722e-06;
    p = p * e - 2.8741263309164543e-05;
    p = p * e + 0.0002755731922398589;
    p = p * e - 0.0010802469135802469;
    p = p * e + 0.00061728395061728394;
    p = p * e + 0.027777777777777776;
    const f64 exact = abs_f64(e) < 1.0 ? p * e - 0.33333333333333331 : log_f64(e / expm1_f64(balance_f64(e))) / e;
    const f64 c = e < -1.5 ? -1.5 : e > 1.5 ? 1.5 : e;
    f64 q = 4.055292003251537e-05;
    q = q * c + 6.229995427526292e-05;
    q = q * c - 0.0007520766651425087;
    q = q * c + 0.002611209092690574;
    q = q * c - 0.0027006172839506171;
    q = q * c - 0.01728395061728395;
    f64 s = -0.00014083659963035565;
    s = s * c + 6.554653913335898e-05;
    s = s * c + 0.0007956376423454613;
    s = s * c - 0.003007782731290962;
    s = s * c + 0.004399372917891437;
    return balance_f64(e + u * (exact + u * (q + u * s)));
}

FUNCTION f64 log_gamma_of_shape_f64(f64 a) {
    /* log(gamma(a)) for positive numbers below 64, by Stirling's series from 8 on and the recurrence below. */
    f64 y = a, product = 1.0;
    for (; y < 8.0; y += 1.0) {
        product *= y;
    }
    return (y - 0.5) * (log_f64(y) - 1.0) + (stirling_tail_f64(y) + 0.41893853320467274) - log_f64(product);
}

FUNCTION f64 gamma_tail_f64(f64 a, f64 x, u32 upper) {
    /* The incomplete gamma function over x**a exp(-x) / gamma(a), of the upper tail for x above a + 1 only. */
    if (upper) {
        f64 b = x + 1.0 - a, above = 1.0, above_before = 0.0, below = b, below_before = 1.0;
        for (int k = 1; k < 200; ++k) {
            const f64 factor = k * (a - k);
            b += 2.0;
            const f64 over = b * above + factor * above_before, under = b * below + factor * below_before;
            const f64 scale = under > 1e100 ? 1e-100 : 1.0;
            above_before = above * scale;
            below_before = below * scale;
            above = over * scale;
            below = under * scale;
            if (abs_f64(above * below_before - above_before * below) < 1e-10 * above * below_before) {
                break;
            }
        }
        return above / below;
    }
    f64 term = 1.0, sum = 1.0;
    for (int k = 1; k < 1000 && term > 1e-10 * sum; ++k) {
        term *= x / (a + k);
        sum += term;
    }
    return sum / a;
}

FUNCTION f64 log_gamma_refined_f64(f64 a, f64 u, f64 scale, f64 y) {
    /* Halley's method for the logarithm of the nearer tail, which is concave in y = log(x). */
    const u32 upper = u >= 0.5;
    const f64 goal = upper ? 1.0 - u : u;
    for (int k = 0; k < 20; ++k) {
        const f64 x = exp_f64(y), density = exp_f64(a * y - x - scale);
        const u32 far = upper && x > a + 1.0;
        const f64 part = density * gamma_tail_f64(a, x, far);
        const f64 tail = upper && !far ? 1.0 - part : part, slope = (upper ? -density : density) / tail;
        const f64 step = log_f64(goal / tail) / slope, bend = 1.0 + 0.5 * step * (a - x - slope);
        const f64 change = step / (bend < 0.5 ? 0.5 : bend > 2.0 ? 2.0 : bend);
        y += change;
        if (change * change * (a + 1.0) < 4e-6) { /* the next change is of the order of the cube */
            break;
        }
    }
    return y;
}

FUNCTION f64 log_gamma_quantile_f64(f64 a, f64 u) {
    /* u is between 2**-54 and 1. Below -36, the first term of the series is the result. */
    if (!(a > 0.0) || a == INFINITE_F64) {
        return a == 0.0 ? -INFINITE_F64 : a > 0.0 ? a : NAN_F64;
    }
    const f64 q = u > 0.5 ? 1.0 - u : u, far = normal_quantile_f64(q < 0.1 ? q : 0.1);
    const f64 z = q < 0.1 ? (u < 0.5 ? -far : far) : 1.4142135623730951 * erfinv_guess_f64(2.0 * u - 1.0);
    if (a >= 64.0) {
        return log_f64(a) + log_gamma_asymptotic_f64(a, z);
    }
    const f64 scale = log_gamma_of_shape_f64(a);
    if (a > 1.125) {
        return log_gamma_refined_f64(a, u, scale, log_f64(a) + log_gamma_asymptotic_f64(a, z));
    }
    const f64 first = (log_f64(u * a) + scale) / a;
    if (first < -36.0) {
        return first;
    }
    f64 guess;
    if (u < 0.5 || first < -1.0) {
        const f64 x = exp_f64(first);
        guess = first + x / (a + 1.0);
    } else {
        const f64 s = -log_f64(1.0 - u) - scale;
        guess = s > 1.0 ? log_f64(s + (a - 1.0) * log_f64(s)) : log_f64(0.5 + 0.5 * a);
    }
    return log_gamma_refined_f64(a, u, scale, guess);
}

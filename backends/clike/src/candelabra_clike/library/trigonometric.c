/* Sine, cosine and tangent.

      A large argument is an integer m times a power of two. It is multiplied by those bits of 2 / pi that do not
   contribute whole turns only: the product modulo 4 has the quadrant in its upper two bits and the position within
   the quadrant in the others (M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions, 1983). In
   float32 this takes three integer products, without a branch. From other arguments, up to 1024 in float32 and 2**20 in
   float64, multiples of pi / 2 are subtracted in parts so short that their products are exact (W. J. Cody and W. Waite,
   1980): the functions named near, which programs use where no argument of a block is large. The polynomials are
   minimax fits of our own. */

FUNCTION u32 select_of_five(u32 which, u32 a, u32 b, u32 c, u32 d, u32 e) {
    /* Selected by bits: compilers turn comparisons with 0, 1, 2 … into a table, which is not vectorised. */
    return which & 4u ? e : which & 2u ? (which & 1u ? d : c) : which & 1u ? b : a;
}

FUNCTION u64 turn_f32(f32 x) {
    /* x / (2 pi) modulo 1, as 64 bits, of x from 1/2 on. */
    const u32 bits = BITS_U32(x), m = (bits & 0x007FFFFFu) | 0x00800000u;
    const u32 place = ((bits >> 23) & 0xFFu) - 120u, word = place >> 5, shift = place & 31u;
    const u32 a = select_of_five(word, 0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u);
    const u32 b = select_of_five(word, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u);
    const u32 c = select_of_five(word, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u);
    const u32 d = select_of_five(word, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu);
    const u32 high = (a << shift) | ((b >> 1) >> (31u - shift));
    const u32 middle = (b << shift) | ((c >> 1) >> (31u - shift));
    const u32 low = (c << shift) | ((d >> 1) >> (31u - shift));
    return ((u64)(m * high) << 32) + (u64)m * middle + (((u64)m * low) >> 32);
}

FUNCTION f32 quarter_f32(u64 turn) {
    /* The distance from the nearest quadrant boundary in radians, from three numbers of 24, 24 and 16 bits. */
    const u64 rest = turn << 2;
    const u32 high = (u32)(rest >> 32), low = (u32)rest;
    const f32 a = (f32)((i32)high >> 8) * 5.96046448e-8f;
    const f32 b = (f32)(i32)(((high & 0xFFu) << 16) | (low >> 16)) * 3.55271368e-15f;
    const f32 quarter = a + (b + (f32)(i32)(low & 0xFFFFu) * 5.42101086e-20f);
    return quarter * 1.57079637f - quarter * 4.371139e-8f;
}

FUNCTION u32 quadrant_of(u64 turn) {
    return (u32)((turn + 0x2000000000000000) >> 62);
}

FUNCTION f32 sine_f32(f32 r) {
    const f32 z = r * r;
    const f32 p = (-0.000195078843f * z + 0.00833210628f) * z - 0.166666538f;
    return p * z * r + r;
}

FUNCTION f32 cosine_f32(f32 r) {
    const f32 z = r * r;
    const f32 p = (2.44300827e-5f * z - 0.00138872978f) * z + 0.0416666456f;
    return p * z * z + (1.0f - 0.5f * z);
}

FUNCTION f32 near_quarters_f32(f32 a) {
    /* The nearest number of quarter turns, in the lowest bits. */
    return a * 0.636619772f + 12582912.0f;
}

FUNCTION f32 near_quarter_f32(f32 a, f32 quarters) {
    /* The difference of a from that number of quarter turns. */
    const f32 k = quarters - 12582912.0f;
    return (((a - k * 1.57067871f) - k * 0.000117614865f) - k * 9.92031346e-10f) - k * 6.22337197e-14f;
}

FUNCTION f32 with_sign_f32(f32 value, f32 x) {
    return BITS_F32(BITS_U32(value) ^ (BITS_U32(x) & 0x80000000u));
}

FUNCTION f32 sine_in_quadrant_f32(f32 r, u32 quadrant) {
    /* The sine of r plus a number of quarter turns. */
    const f32 c = cosine_f32(r), s = sine_f32(r), value = quadrant & 1u ? c : s;
    return BITS_F32(BITS_U32(value) ^ ((quadrant & 2u) << 30));
}

FUNCTION f32 sin_near_f32(f32 x) {
    const f32 a = abs_f32(x), quarters = near_quarters_f32(a);
    return with_sign_f32(sine_in_quadrant_f32(near_quarter_f32(a, quarters), BITS_U32(quarters)), x);
}

FUNCTION f32 cos_near_f32(f32 x) {
    const f32 a = abs_f32(x), quarters = near_quarters_f32(a);
    return sine_in_quadrant_f32(near_quarter_f32(a, quarters), BITS_U32(quarters) + 1u);
}

FUNCTION f32 sin_f32(f32 x) {
    const f32 a = abs_f32(x), near = sin_near_f32(x);
    const u64 turn = turn_f32(a);
    const f32 far = with_sign_f32(sine_in_quadrant_f32(quarter_f32(turn), quadrant_of(turn)), x) + 0.0f * (x - x);
    return a > 1024.0f ? far : near;
}

FUNCTION f32 cos_f32(f32 x) {
    const f32 a = abs_f32(x), near = cos_near_f32(x);
    const u64 turn = turn_f32(a);
    const f32 far = sine_in_quadrant_f32(quarter_f32(turn), quadrant_of(turn) + 1u) + 0.0f * (x - x);
    return a > 1024.0f ? far : near;
}

FUNCTION f32 tangent_f32(f32 r, u32 quadrant) {
    const f32 z = r * r;
    f32 p = 0.00448129326f;
    p = p * z - 0.000118307573f;
    p = p * z + 0.0109952614f;
    p = p * z + 0.0212226845f;
    p = p * z + 0.0540709719f;
    p = p * z + 0.133325711f;
    p = p * z + 0.333333522f;
    const f32 t = p * z * r + r, under = -1.0f / t;
    return quadrant & 1u ? under : t;
}

FUNCTION f32 tan_near_f32(f32 x) {
    const f32 a = abs_f32(x), quarters = near_quarters_f32(a);
    return with_sign_f32(tangent_f32(near_quarter_f32(a, quarters), BITS_U32(quarters)), x);
}

FUNCTION f32 tan_f32(f32 x) {
    const f32 a = abs_f32(x), near = tan_near_f32(x);
    const u64 turn = turn_f32(a);
    const f32 far = with_sign_f32(tangent_f32(quarter_f32(turn), quadrant_of(turn)), x) + 0.0f * (x - x);
    return a > 1024.0f ? far : near;
}

CONSTANT u64 TWO_OVER_PI[] = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB};

FUNCTION u64 window_f64(u32 place) {
    /* 64 bits of the table from a position on. */
    const u32 word = place >> 6, shift = place & 63u;
    return (TWO_OVER_PI[word] << shift) | ((TWO_OVER_PI[word + 1u] >> 1) >> (63u - shift));
}

FUNCTION u64 turn_f64(f64 x, u32 part) {
    /* x / (2 pi) modulo 1, as 64 bits (part 0) and the 64 that follow (part 1), of x from 2**20 on. */
    const u64 bits = BITS_U64(x), m = (bits & 0x000FFFFFFFFFFFFF) | 0x0010000000000000;
    const u32 place = (u32)(bits >> 52) - 1013u;
    const u64 middle = window_f64(place + 64u);
    const u64 low = m * middle, sum = low + MULTIPLY_HIGH(m, window_f64(place + 128u));
    return part ? sum : m * window_f64(place) + MULTIPLY_HIGH(m, middle) + (sum < low);
}

FUNCTION f64 near_quarters_f64(f64 a) {
    return a * 0.63661977236758134 + 6755399441055744.0;
}

FUNCTION f64 near_quarter_f64(f64 a, f64 quarters) {
    const f64 k = quarters - 6755399441055744.0;
    const f64 first = a - k * 1.5707963267341256, w = k * 6.077100506303966e-11;
    const f64 second = first - w, back = second - first;
    const f64 lost = (first - (second - back)) - (w + back);
    return second - (k * 2.0222662487959506e-21 - lost);
}

FUNCTION u32 quadrant_f64(f64 a) {
    if (a < 1048576.0) {
        return (u32)BITS_U64(near_quarters_f64(a));
    }
    return a < INFINITE_F64 ? quadrant_of(turn_f64(a, 0u)) : 0u;
}

FUNCTION f64 quarter_f64(f64 a) {
    /* The difference of a from the nearest multiple of pi / 2. */
    if (a < 1048576.0) {
        return near_quarter_f64(a, near_quarters_f64(a));
    }
    if (a < INFINITE_F64) {
        const u64 low = turn_f64(a, 1u), rest = (turn_f64(a, 0u) << 2) | (low >> 62);
        const f64 upper = (f64)((i64)rest >> 11) * 1.1102230246251565e-16;
        const f64 lower = (f64)(((rest & 0x7FF) << 42) | ((low << 2) >> 22)) * 1.2325951644078310e-32;
        const f64 quarter = upper + lower;
        return quarter * 1.5707963267948966 + quarter * 6.123233995736766e-17;
    }
    return a - a;
}

FUNCTION f64 sine_f64(f64 r) {
    const f64 z = r * r;
    f64 p = 1.5893112574366694e-10;
    p = p * z - 2.505069547105034e-08;
    p = p * z + 2.755731329858347e-06;
    p = p * z - 0.00019841269828698243;
    p = p * z + 0.008333333333321069;
    p = p * z - 0.16666666666666627;
    return p * z * r + r;
}

FUNCTION f64 cosine_f64(f64 r) {
    const f64 z = r * r;
    f64 p = -1.1355747598792424e-11;
    p = p * z + 2.0875647535056738e-09;
    p = p * z - 2.7557313791747075e-07;
    p = p * z + 2.4801587287528194e-05;
    p = p * z - 0.001388888888887097;
    p = p * z + 0.04166666666666658;
    return p * z * z + (1.0 - 0.5 * z);
}

FUNCTION f64 sin_in_quadrant_f64(f64 r, u32 quadrant) {
    const f64 value = quadrant & 1u ? cosine_f64(r) : sine_f64(r);
    return quadrant & 2u ? -value : value;
}

FUNCTION f64 with_sign_f64(f64 value, f64 x) {
    return BITS_F64(BITS_U64(value) ^ (BITS_U64(x) & 0x8000000000000000));
}

FUNCTION f64 tangent_f64(f64 r, u32 quadrant) {
    const f64 s = sine_f64(r), c = cosine_f64(r);
    return quadrant & 1u ? -c / s : s / c;
}

FUNCTION f64 sin_near_f64(f64 x) {
    const f64 a = abs_f64(x), quarters = near_quarters_f64(a);
    return with_sign_f64(sin_in_quadrant_f64(near_quarter_f64(a, quarters), (u32)BITS_U64(quarters)), x);
}

FUNCTION f64 cos_near_f64(f64 x) {
    const f64 a = abs_f64(x), quarters = near_quarters_f64(a);
    return sin_in_quadrant_f64(near_quarter_f64(a, quarters), (u32)BITS_U64(quarters) + 1u);
}

FUNCTION f64 tan_near_f64(f64 x) {
    const f64 a = abs_f64(x), quarters = near_quarters_f64(a);
    return with_sign_f64(tangent_f64(near_quarter_f64(a, quarters), (u32)BITS_U64(quarters)), x);
}

FUNCTION f64 sin_f64(f64 x) {
    const f64 a = abs_f64(x);
    return with_sign_f64(sin_in_quadrant_f64(quarter_f64(a), quadrant_f64(a)), x);
}

FUNCTION f64 cos_f64(f64 x) {
    const f64 a = abs_f64(x);
    return sin_in_quadrant_f64(quarter_f64(a), quadrant_f64(a) + 1u);
}

FUNCTION f64 tan_f64(f64 x) {
    const f64 a = abs_f64(x);
    return with_sign_f64(tangent_f64(quarter_f64(a), quadrant_f64(a)), x);
}

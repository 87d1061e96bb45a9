/* Exponentials without branches and calls, so that loops over them are vectorised.

      An argument is reduced by a multiple k of ln 2, which is given in two parts so that the first product is exact
   (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980, chapter 6). The result is the same
   whether a * b + c is rounded once or twice. Adding 1.5 * 2**23 (2**52) leaves k in the lowest bits. The
   polynomials are minimax fits of our own. The result is multiplied by 2**k in two factors: a subnormal result is
   rounded once, one that is too large becomes infinity. The exponents of the factors are the halves of k plus twice
   the bias, which is added together with 1.5 * 2**23. Where the processor has an instruction for the product with 2**k
   (LDEXP), it rounds once, too, and gives the same bits. It takes hundreds of cycles if it rounds a normal number to 0,
   so it multiplies 0 where that is the result. NaN is preserved by the comparisons. */

FUNCTION f32 exp_of_sum_f32(f32 high, f32 low, i32 halvings) {
    /* exp(high + low) / 2**halvings, for low much smaller than 1. A low of -0 costs nothing. */
    const f32 x = high > 90.0f ? 90.0f : high < -140.0f ? -140.0f : high;
    const f32 t = x * 1.44269504f + 12583166.0f;
    const f32 k = t - 12583166.0f;
    const f32 upper = (x - k * 0.693145752f) + low;
    const f32 r = upper - k * 1.42860677e-6f;
    f32 p = 0.00138624036f;
    p = p * r + 0.00837107934f;
    p = p * r + 0.0416678898f;
    p = p * r + 0.166665003f;
    p = p * r + 0.49999994f;
    p = (p * r) * r + r;
#ifdef LDEXP_F32
    const f32 least = -104.0f + (halvings < 0 ? 0.7f * (f32)halvings : 0.0f);
    return LDEXP_F32(x < least ? 0.0f : p + 1.0f, (i32)(BITS_U32(t) - 0x4B4000FEu) - halvings);
#else
    const u32 biased = BITS_U32(t), first = biased >> 1;
    return ((p + 1.0f) * BITS_F32(first << 23)) * BITS_F32((biased - first - halvings) << 23);
#endif
}

FUNCTION f32 exp_f32(f32 x) {
    return exp_of_sum_f32(x, -0.0f, 0);
}

FUNCTION f64 exp_of_sum_f64(f64 high, f64 low, i32 halvings) {
    const f64 x = high > 711.0 ? 711.0 : high < -775.0 ? -775.0 : high;
    const f64 t = x * 1.4426950408889634 + 6755399441057790.0;
    const f64 k = t - 6755399441057790.0;
    const f64 upper = (x - k * 0.69314718036912382) + low;
    const f64 r = upper - k * 1.9082149292705877e-10;
    f64 p = 2.498975255521275e-08;
    p = p * r + 2.7633734919760566e-07;
    p = p * r + 2.755763684119676e-06;
    p = p * r + 2.480148393910864e-05;
    p = p * r + 0.00019841269430338814;
    p = p * r + 0.0013888888951760347;
    p = p * r + 0.008333333333538674;
    p = p * r + 0.04166666666650269;
    p = p * r + 0.1666666666666633;
    p = p * r + 0.5000000000000013;
    p = (p * r) * r + r;
#ifdef LDEXP_F64
    const f64 least = -746.0 + (halvings < 0 ? 0.7 * (f64)halvings : 0.0);
    return LDEXP_F64(x < least ? 0.0 : p + 1.0, (i32)BITS_U64(t) - 2046 - halvings);
#else
    const u64 biased = BITS_U64(t), first = biased >> 1;
    return ((p + 1.0) * BITS_F64(first << 52)) * BITS_F64((biased - first - halvings) << 52);
#endif
}

FUNCTION f64 exp_f64(f64 x) {
    return exp_of_sum_f64(x, -0.0, 0);
}

FUNCTION f32 exp2_of_sum_f32(f32 high, f32 low) {
    /* 2**(high + low), low below 1 / 4. */
    const f32 x = high > 129.0f ? 129.0f : high < -151.0f ? -151.0f : high;
    const f32 t = x + 12583166.0f;
    const f32 r = (x - (t - 12583166.0f)) + low;
    f32 p = 0.000158150884f;
    p = p * r + 0.00134176668f;
    p = p * r + 0.00961706974f;
    p = p * r + 0.0555027314f;
    p = p * r + 0.240226552f;
    p = p * r + 0.693147242f;
#ifdef LDEXP_F32
    return LDEXP_F32(x < -150.0f ? 0.0f : p * r + 1.0f, (i32)(BITS_U32(t) - 0x4B4000FEu));
#else
    const u32 biased = BITS_U32(t), first = biased >> 1;
    return ((p * r + 1.0f) * BITS_F32(first << 23)) * BITS_F32((biased - first) << 23);
#endif
}

FUNCTION f32 exp2_f32(f32 x) {
    return exp2_of_sum_f32(x, 0.0f);
}

FUNCTION f64 exp2_of_sum_f64(f64 high, f64 low) {
    /* 2**(high + low), low below 1 / 4. */
    const f64 x = high > 1025.0 ? 1025.0 : high < -1080.0 ? -1080.0 : high;
    const f64 t = x + 6755399441057790.0;
    const f64 r = (x - (t - 6755399441057790.0)) + low;
    f64 p = 4.5195946769010933e-10;
    p = p * r + 7.076062239412203e-09;
    p = p * r + 1.0177661587289864e-07;
    p = p * r + 1.3215422240579873e-06;
    p = p * r + 1.5252734718460087e-05;
    p = p * r + 0.00015403530482850788;
    p = p * r + 0.0013333558145573621;
    p = p * r + 0.009618129107573724;
    p = p * r + 0.05550410866482458;
    p = p * r + 0.2402265069591018;
    p = p * r + 0.6931471805599453;
#ifdef LDEXP_F64
    return LDEXP_F64(x < -1075.0 ? 0.0 : p * r + 1.0, (i32)BITS_U64(t) - 2046);
#else
    const u64 biased = BITS_U64(t), first = biased >> 1;
    return ((p * r + 1.0) * BITS_F64(first << 52)) * BITS_F64((biased - first) << 52);
#endif
}

FUNCTION f64 exp2_f64(f64 x) {
    return exp2_of_sum_f64(x, 0.0);
}

FUNCTION f32 expm1_reduced_f32(f32 x) {
    /* exp(x) - 1 for abs(x) < 88; 0 of -0. */
    const f32 t = x * 1.44269504f + 12582912.0f;
    const f32 k = t - 12582912.0f;
    const f32 upper = x - k * 0.693145752f;
    const f32 r = upper - k * 1.42860677e-6f;
    f32 p = 0.00138490193f;
    p = p * r + 0.00836826395f;
    p = p * r + 0.0416676663f;
    p = p * r + 0.166665301f;
    p = p * r + 0.49999997f;
    p = (p * r) * r + r;
    const f32 scale = BITS_F32((BITS_U32(t) - 0x4B3FFF81u) << 23);
    return p * scale + (scale - 1.0f);
}

FUNCTION f64 expm1_reduced_f64(f64 x) {
    const f64 t = x * 1.4426950408889634 + 6755399441055744.0;
    const f64 k = t - 6755399441055744.0;
    const f64 upper = x - k * 0.69314718036912382;
    const f64 r = upper - k * 1.9082149292705877e-10;
    f64 p = 2.0859898410493004e-09;
    p = p * r + 2.5111263429519843e-08;
    p = p * r + 2.755735936596634e-07;
    p = p * r + 2.7557237665817327e-06;
    p = p * r + 2.48015873224739e-05;
    p = p * r + 0.0001984126989270556;
    p = p * r + 0.0013888888888855735;
    p = p * r + 0.008333333333319119;
    p = p * r + 0.04166666666666671;
    p = p * r + 0.1666666666666668;
    p = (p * r + 0.5) * r * r + r;
    const f64 scale = BITS_F64((BITS_U64(t) - 0x4337FFFFFFFFFC01) << 52);
    return p * scale + (scale - 1.0);
}

FUNCTION f32 expm1_f32(f32 x) {
    const f32 near = expm1_reduced_f32(x < -20.0f ? -20.0f : x > 80.0f ? 80.0f : x);
    return x > 80.0f ? exp_f32(x) : x == 0.0f ? x : near;
}

FUNCTION f64 expm1_f64(f64 x) {
    const f64 near = expm1_reduced_f64(x < -40.0 ? -40.0 : x > 80.0 ? 80.0 : x);
    return x > 80.0 ? exp_f64(x) : x == 0.0 ? x : near;
}

/* Philox 4x64 with 10 rounds, and conversions of its words. Sections refer to docs/notes/0001-random-numbers.md.
   (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11.) */

/* The high half of a product, for loops. Where MULTIPLY_HIGH is one instruction (WIDE_MULTIPLY), that takes a third of
   the time of vectors. Elsewhere it is a call in some drivers, and the product is computed from 32-bit halves. */
FUNCTION u64 multiply_high_u64(u64 a, u64 b) {
#ifdef WIDE_MULTIPLY
    return MULTIPLY_HIGH(a, b);
#else
    const u64 a_low = a & 0xFFFFFFFFu, a_high = a >> 32, b_low = b & 0xFFFFFFFFu, b_high = b >> 32;
    const u64 middle = a_high * b_low + ((a_low * b_low) >> 32);
    const u64 cross = a_low * b_high + (middle & 0xFFFFFFFFu);
    return a_high * b_high + (middle >> 32) + (cross >> 32);
#endif
}

/* Section 2: declares w0 to w3, the words of a counter. HIGH is MULTIPLY_HIGH or the function above. */
#define PHILOX(HIGH, counter, seed) \
    u64 w0 = (counter), w1 = 0, w2 = 0, w3 = 0, k0 = (seed), k1 = 0; \
    UNROLL for (u32 turn = 0; turn < 10; ++turn) { \
        const u64 high0 = HIGH(PHILOX_0, w0), low0 = PHILOX_0 * w0; \
        const u64 high1 = HIGH(PHILOX_1, w2), low1 = PHILOX_1 * w2; \
        w0 = high1 ^ w1 ^ k0; \
        w1 = low1; \
        w2 = high0 ^ w3 ^ k1; \
        w3 = low0; \
        k0 += (u64)0x9E3779B97F4A7C15; \
        k1 += (u64)0xBB67AE8584CAA73B; \
    }

#define PHILOX_0 ((u64)0xD2E7470EE14C6C93)

#define PHILOX_1 ((u64)0xCA5A826395121157)

/* Section 4. 2^52 + w and the difference are exact. This avoids a conversion of 64-bit integers, which few devices vectorise.
   The lowest of the 53 bits is added separately. */
FUNCTION f64 uniform_f64(u64 w) {
    const f64 most = BITS_F64((w >> 12) | (u64)0x4330000000000000) - 4503599627370496.0;
    const f64 least = (f64)(i32)((u32)(w >> 11) & 1u) * 0.5;
    return (most + least) * 2.220446049250313080847263336181640625e-16;
}

/* Section 5, ranges of more than 32 bits; a span of 0 stands for 2^64. */
FUNCTION u64 bounded_wide_u64(u64 first, u64 second, u64 span) {
    const u64 low = first * span;
    const u64 carry = low + MULTIPLY_HIGH(second, span) < low ? 1 : 0;
    return span == 0 ? first : MULTIPLY_HIGH(first, span) + carry;
}

/* Section 6: the smallest integer v with v >= p * 2^32; the product is exact. */
FUNCTION u64 threshold_f32(f32 p) {
    const f32 scaled = p * 4294967296.0f;
    const u64 whole = (u64)scaled;
    return whole + ((f32)whole < scaled ? 1 : 0);
}

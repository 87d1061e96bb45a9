/* Integer functions with defined results where C has none: division by 0, the lowest number by -1, wide shifts. Each
   function is for 32 bits and narrower types, or for 64 bits. The caller reports a divisor of 0. */

FUNCTION i32 trunc_divide_i32(i32 a, i32 b) {
    return b == 0 ? 0 : b == -1 ? (i32)(0u - (u32)a) : a / b;
}

FUNCTION i64 trunc_divide_i64(i64 a, i64 b) {
    return b == 0 ? 0 : b == -1 ? (i64)((u64)0 - (u64)a) : a / b;
}

FUNCTION u32 trunc_divide_u32(u32 a, u32 b) {
    return b == 0 ? 0 : a / b;
}

FUNCTION u64 trunc_divide_u64(u64 a, u64 b) {
    return b == 0 ? 0 : a / b;
}

FUNCTION i32 fmod_i32(i32 a, i32 b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

FUNCTION i64 fmod_i64(i64 a, i64 b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

FUNCTION u32 fmod_u32(u32 a, u32 b) {
    return b == 0 ? 0 : a % b;
}

FUNCTION u64 fmod_u64(u64 a, u64 b) {
    return b == 0 ? 0 : a % b;
}

FUNCTION i32 floor_divide_i32(i32 a, i32 b) {
    return trunc_divide_i32(a, b) - (fmod_i32(a, b) != 0 && (a < 0) != (b < 0));
}

FUNCTION i64 floor_divide_i64(i64 a, i64 b) {
    return trunc_divide_i64(a, b) - (fmod_i64(a, b) != 0 && (a < 0) != (b < 0));
}

FUNCTION i32 remainder_i32(i32 a, i32 b) {
    const i32 rest = fmod_i32(a, b);
    return rest + (b & -(i32)((rest != 0) & ((rest ^ b) < 0))); /* no branch: half of them would be mispredicted */
}

FUNCTION i64 remainder_i64(i64 a, i64 b) {
    const i64 rest = fmod_i64(a, b);
    return rest + (b & -(i64)((rest != 0) & ((rest ^ b) < 0))); /* no branch: half of them would be mispredicted */
}

FUNCTION u64 power_u64(u64 base, u64 exponent) {
    /* By squaring. The result wraps around, so the function is valid for narrower and signed integers too. */
    u64 result = 1;
    for (; exponent; exponent >>= 1) {
        result = exponent & 1 ? result * base : result;
        base *= base;
    }
    return result;
}

FUNCTION i64 power_i64(i64 base, i64 exponent) {
    /* A negative power is 1 / base**n truncated to an integer, which is 0 except for the bases 1 and -1. */
    const i64 unit = base == 1 ? 1 : base == -1 ? 1 - 2 * (exponent & 1) : 0;
    return exponent < 0 ? unit : (i64)power_u64((u64)base, (u64)exponent);
}

FUNCTION u64 gcd_u64(u64 a, u64 b) {
    while (b) {
        const u64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

FUNCTION u64 lcm_u64(u64 a, u64 b) {
    const u64 divisor = gcd_u64(a, b);
    return divisor == 0 ? 0 : a / divisor * b;
}

FUNCTION u64 abs_i64(i64 x) {
    return x < 0 ? (u64)0 - (u64)x : (u64)x;
}

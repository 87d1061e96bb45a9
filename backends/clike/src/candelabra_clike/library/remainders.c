/* Remainders and whole quotients of floating-point numbers: C's fmod is exact everywhere, the rest follows from it. */

FUNCTION f32 fmod_f32(f32 x, f32 y) {
    return fmod(x, y);
}

FUNCTION f64 fmod_f64(f64 x, f64 y) {
    return fmod(x, y);
}

FUNCTION f32 remainder_f32(f32 x, f32 y) {
    /* With the sign of the divisor, of zeros too. */
    const f32 rest = fmod_f32(x, y);
    const f32 moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest != rest ? rest : rest == 0 ? with_sign_f32(0, y) : moved;
}

FUNCTION f64 remainder_f64(f64 x, f64 y) {
    const f64 rest = fmod_f64(x, y);
    const f64 moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest != rest ? rest : rest == 0 ? with_sign_f64(0, y) : moved;
}

FUNCTION f32 floor_divide_f32(f32 x, f32 y) {
    /* What is left when the remainder is taken away is a multiple of the divisor, and its quotient nearly whole. */
    const f32 quotient = DIVIDE_F32(x, y), rest = fmod_f32(x, y);
    f32 near = DIVIDE_F32(x - rest, y);
    near = rest != 0 && (rest < 0) != (y < 0) ? near - 1.0f : near;
    const f32 low = floor_f32(near), whole = near - low > 0.5f ? low + 1.0f : low;
    return y == 0 ? quotient : near == 0 ? with_sign_f32(0, quotient) : whole;
}

FUNCTION f64 floor_divide_f64(f64 x, f64 y) {
    const f64 quotient = DIVIDE_F64(x, y), rest = fmod_f64(x, y);
    f64 near = DIVIDE_F64(x - rest, y);
    near = rest != 0 && (rest < 0) != (y < 0) ? near - 1.0 : near;
    const f64 low = floor_f64(near), whole = near - low > 0.5 ? low + 1.0 : low;
    return y == 0 ? quotient : near == 0 ? with_sign_f64(0, quotient) : whole;
}

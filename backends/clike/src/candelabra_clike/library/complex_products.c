/* Products of complex numbers. */

FUNCTION c64 product_c64(c64 a, c64 b) {
    return C64(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

FUNCTION c128 product_c128(c128 a, c128 b) {
    return C128(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

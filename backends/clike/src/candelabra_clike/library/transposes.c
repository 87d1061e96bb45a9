/* Transposes the array of eight vectors `v` of eight numbers: blocks of 1, 2 and 4 numbers change places. */
#define TRANSPOSE_X8(type, v) { \
    UNROLL for (int i = 0; i < 8; i += 2) { \
        const type##x8 first = v[i]; v[i].odd = v[i + 1].even; v[i + 1].even = first.odd; } \
    UNROLL for (int i = 0; i < 6; i += i == 1 ? 3 : 1) { \
        const type##x8 first = v[i]; v[i].s2367 = v[i + 2].s0145; v[i + 2].s0145 = first.s2367; } \
    UNROLL for (int i = 0; i < 4; ++i) { \
        const type##x8 first = v[i]; v[i].hi = v[i + 4].lo; v[i + 4].lo = first.hi; } }

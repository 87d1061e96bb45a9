/* Complaints, see faults.py: the first one since the host's last look is kept. */

FUNCTION void complain(GLOBAL i64* faults, u32 number, i64 index, i64 dim, i64 size) {
    if (CLAIM(faults, 0, number) == 0) {
        faults[1] = index;
        faults[2] = dim;
        faults[3] = size;
    }
}

/* In an expression: the value is refused, and the kernel complains at its end. */
#define BAD(condition) (bad |= (condition) ? 1u : 0u)

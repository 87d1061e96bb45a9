/* Complaints, see faults.py: the first one since the host's last look is kept. */

FUNCTION void complain(GLOBAL i64* faults, u32 number, i64 first, i64 second, i64 third) {
    if (CLAIM(faults, 0, number) == 0) {
        faults[1] = first;
        faults[2] = second;
        faults[3] = third;
    }
}

/* Errors found by kernels, see device_errors.py. The buffer keeps the first error since the host last read it. */

FUNCTION void report_error(GLOBAL i64* errors, u32 number, i64 index, i64 dim, i64 size) {
    if (COMPARE_AND_SWAP(errors, 0, number) == 0) {
        errors[1] = index;
        errors[2] = dim;
        errors[3] = size;
    }
}

/* In an expression: refuses a value. The reason is a number that the kernel takes; it reports the reason at its end. */
#define REFUSE(condition, reason) (refused = (condition) ? (reason) : refused)

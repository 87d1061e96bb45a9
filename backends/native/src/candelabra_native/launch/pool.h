/* The process's thread pool: runs a kernel's work-items on several threads. */
#ifndef CANDELABRA_POOL_H
#define CANDELABRA_POOL_H

#include <stdint.h>

/* Runs the work-items first … last-1 of total. A slot holds a pointer, or a number in its low bytes. */
typedef void (*kernel_function)(const uint64_t *slots, uint64_t first, uint64_t last, uint64_t total);

/* More threads than this are never used. */
#define POOL_MAX_THREADS 1024

/* Forgets all workers and jobs. Call it before any other function, and in a child made by fork: a child has only the
 * thread that called fork. */
void pool_reset(void);

/* Runs all work-items and returns when they are done. Any thread may call it, also several at once. */
void pool_run(kernel_function function, const char *name, const uint64_t *slots, uint64_t total);

void pool_set_num_threads(unsigned number);
unsigned pool_num_threads(void);

#endif

/* Memory for results: blocks aligned to cache lines, and reused. */
#ifndef CANDELABRA_MEMORY_H
#define CANDELABRA_MEMORY_H

#include <Python.h>

/* Adds allocate(), statistics() and release() to the module. Returns -1 with a Python error set, or 0. */
int memory_add_to(PyObject *module);

/* Returns memory of at least `size` bytes, and how many it has, or NULL. Needs no Python lock, as the next function. */
void *memory_take(size_t size, size_t *reserved);
void memory_give(void *start, size_t reserved);

/* Makes a block of memory that memory_take() returned. Returns NULL if that is NULL, or with a Python error set; the
 * memory is then given back. */
PyObject *memory_block(void *start, size_t size, size_t reserved);

/* Raises the error of memory that cannot be allocated. Returns NULL. */
PyObject *memory_refuse(size_t size);

/* Call it in a child made by fork, where the thread that held the lock may not exist. */
void memory_reset_lock(void);

#endif

/* Memory for results: blocks aligned to cache lines, and reused. */
#ifndef CANDELABRA_MEMORY_H
#define CANDELABRA_MEMORY_H

#include <Python.h>

/* Adds allocate(), statistics() and release() to the module. Returns -1 with a Python error set, or 0. */
int memory_add_to(PyObject *module);

#endif

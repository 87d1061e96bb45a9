/* Arrays of many rows at once. */
#ifndef CANDELABRA_ROWS_H
#define CANDELABRA_ROWS_H

#include <Python.h>

/* Adds dense_rows() to the module. Returns -1 with a Python error set, or 0. */
int rows_add_to(PyObject *module);

#endif

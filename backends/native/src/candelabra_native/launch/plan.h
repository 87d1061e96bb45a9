/* Plans: many launches in one call. */
#ifndef CANDELABRA_PLAN_H
#define CANDELABRA_PLAN_H

#include <Python.h>

/* Adds plan() to the module. Returns -1 with a Python error set, or 0. */
int plan_add_to(PyObject *module);

#endif

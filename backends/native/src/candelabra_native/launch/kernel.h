/* Kernels as Python objects, for the files that launch them. */
#ifndef CANDELABRA_KERNEL_H
#define CANDELABRA_KERNEL_H

#include <Python.h>
#include <stdint.h>

#include "pool.h"

/* A kernel, and the `self` of the function that launches it. */
typedef struct {
    PyObject_HEAD
    kernel_function function;
    PyMethodDef method;
    Py_ssize_t arity;
    char *name;
    char *types; /* a letter per parameter */
} Kernel;

/* Puts a number of work-items into `total`. Returns 0 with a Python error set if it is none. */
int kernel_total(PyObject *argument, uint64_t *total);

/* Puts a number into a slot of a type. Returns 0 with a Python error set if it has another type, or is out of range. */
int kernel_number(PyObject *argument, char type, uint64_t *slot);

/* Puts the names of kernel and argument in front of the current exception's message; -1 is the count of work-items. */
void kernel_name_argument(const Kernel *kernel, Py_ssize_t index);

/* Returns the kernel of a function that kernel() returned, borrowed, or NULL with a Python error set. */
Kernel *kernel_of(PyObject *module, PyObject *launch);

#endif

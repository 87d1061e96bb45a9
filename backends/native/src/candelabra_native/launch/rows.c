/* Arrays of many rows at once, such as the parameters, the gradients and the state of an optimizer. */
#include "rows.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    uintptr_t start, end;
} Range;

static int by_start(const void *a, const void *b)
{
    uintptr_t x = ((const Range *)a)->start, y = ((const Range *)b)->start;
    return (x > y) - (x < y);
}

/* Whether no two ranges share a byte. Sorts them. */
static int are_disjoint(Range *ranges, Py_ssize_t count)
{
    qsort(ranges, (size_t)count, sizeof(Range), by_start);
    for (Py_ssize_t i = 1; i < count; i++)
        if (ranges[i].start < ranges[i - 1].end)
            return 0;
    return 1;
}

static int same_shape(const Py_buffer *a, const Py_buffer *b)
{
    if (a->ndim != b->ndim || a->itemsize != b->itemsize)
        return 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return 0;
    return 1;
}

/* Reads row `row` of all columns. Returns its number of elements, or -1 if an array is not suitable. */
static Py_ssize_t read_row(PyObject *columns, Py_ssize_t row, Range *ranges)
{
    Py_ssize_t arrays = PyTuple_Size(columns), size = -1;
    Py_buffer first, view;
    int held = 0;
    for (Py_ssize_t i = 0; i < arrays; i++) {
        PyObject *array = PyList_GetItem(PyTuple_GetItem(columns, i), row);
        if (!array || PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) {
            PyErr_Clear();
            size = -1;
            break;
        }
        uintptr_t start = (uintptr_t)view.buf;
        ranges[i] = (Range){start, start + (uintptr_t)view.len};
        size = view.itemsize && start % (uintptr_t)view.itemsize == 0 ? view.len / view.itemsize : -1;
        if (held) {
            if (!same_shape(&first, &view))
                size = -1;
            PyBuffer_Release(&view);
        } else {
            first = view;
            held = 1;
        }
        if (size < 0)
            break;
    }
    if (held)
        PyBuffer_Release(&first);
    return size;
}

PyDoc_STRVAR(dense_rows_doc,
             "dense_rows(columns)\n--\n\n"
             "Return the sizes of the rows of a tuple of lists of arrays, in elements, or None.\n\n"
             "None means that an array is read-only, not contiguous or not aligned, that the arrays of a row have\n"
             "several shapes, or that two arrays share memory.");

static PyObject *dense_rows(PyObject *module, PyObject *columns)
{
    (void)module;
    Py_ssize_t arrays = PyTuple_Check(columns) ? PyTuple_Size(columns) : 0, rows = 0;
    for (Py_ssize_t i = 0; i < arrays; i++) {
        PyObject *column = PyTuple_GetItem(columns, i);
        if (!PyList_Check(column) || (i && PyList_Size(column) != rows))
            return Py_NewRef(Py_None);
        rows = PyList_Size(column);
    }
    if (!rows)
        return Py_NewRef(Py_None);
    Range *ranges = PyMem_Calloc((size_t)(arrays * rows), sizeof(Range));
    PyObject *sizes = PyList_New(0);
    int suitable = ranges && sizes;
    if (!suitable)
        PyErr_NoMemory();
    for (Py_ssize_t row = 0; suitable && row < rows; row++) {
        Py_ssize_t size = read_row(columns, row, ranges + row * arrays);
        suitable = size >= 0;
        PyObject *number = suitable ? PyLong_FromSsize_t(size) : NULL;
        if (number && PyList_Append(sizes, number))
            suitable = 0;
        Py_XDECREF(number);
    }
    if (suitable)
        suitable = are_disjoint(ranges, arrays * rows);
    PyMem_Free(ranges);
    if (suitable)
        return sizes;
    Py_XDECREF(sizes);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"dense_rows", dense_rows, METH_O, dense_rows_doc},
    {NULL, NULL, 0, NULL},
};

int rows_add_to(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}

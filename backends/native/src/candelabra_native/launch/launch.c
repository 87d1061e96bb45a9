/* The module _launch: calls compiled kernels on Python's arrays and numbers.
 *
 * It is built for the stable ABI of CPython 3.11, the first that has the buffer protocol. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#include "crash.h"
#include "kernel.h"
#include "memory.h"
#include "plan.h"
#include "pool.h"
#include "rows.h"

enum { MAX_ARGUMENTS = 512 };

/* Py_RETURN_NONE of the headers of Python 3.12 and newer counts no reference, whatever Py_LIMITED_API says; in 3.11,
 * where the module must run too, each launch would then take one from None. */
static PyObject *none(void)
{
    return Py_NewRef(Py_None);
}

/* ---- arguments ---- */

void kernel_name_argument(const Kernel *kernel, Py_ssize_t index)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (index < 0)
        PyErr_Format(type, "kernel %s: the count of work-items: %S", kernel->name, value);
    else
        PyErr_Format(type, "kernel %s: argument %zd ('%c'): %S", kernel->name, index, kernel->types[index], value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

static int out_of_range(PyObject *argument, const char *type)
{
    PyErr_Format(PyExc_OverflowError, "%R is out of the range of %s", argument, type);
    return 0;
}

/* Replaces Python's message for an integer that is too large; other errors stay. */
static int refuse_integer(PyObject *argument, const char *type)
{
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        out_of_range(argument, type);
    }
    return 0;
}

static int integer(PyObject *argument, int64_t low, int64_t high, const char *type, uint64_t *slot)
{
    long long value = PyLong_AsLongLong(argument);
    if (value == -1 && PyErr_Occurred())
        return refuse_integer(argument, type);
    if (value < low || value > high)
        return out_of_range(argument, type);
    *slot = (uint64_t)value;
    return 1;
}

/* Almost every number fits into 63 bits, and the function for these is the faster one. */
static int uint64_number(PyObject *argument, uint64_t *slot)
{
    long long small = PyLong_AsLongLong(argument);
    if (small >= 0) {
        *slot = (uint64_t)small;
        return 1;
    }
    if (!PyErr_Occurred())
        return out_of_range(argument, "uint64");
    if (!PyErr_ExceptionMatches(PyExc_OverflowError))
        return 0;
    PyErr_Clear();
    PyObject *exact = PyNumber_Index(argument);
    if (!exact)
        return 0;
    unsigned long long value = PyLong_AsUnsignedLongLong(exact);
    Py_DECREF(exact);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return refuse_integer(argument, "uint64");
    *slot = value;
    return 1;
}

static int real_number(PyObject *argument, char type, uint64_t *slot)
{
    double value = PyFloat_AsDouble(argument);
    if (value == -1.0 && PyErr_Occurred())
        return 0;
    if (type == 'd') {
        memcpy(slot, &value, sizeof value);
        return 1;
    }
    float rounded = (float)value;
    if (isinf(rounded) && !isinf(value))
        return out_of_range(argument, "float32");
    *slot = 0;
    memcpy(slot, &rounded, sizeof rounded);
    return 1;
}

int kernel_number(PyObject *argument, char type, uint64_t *slot)
{
    switch (type) {
    case 'i':
        return integer(argument, INT32_MIN, INT32_MAX, "int32", slot);
    case 'q':
        return integer(argument, INT64_MIN, INT64_MAX, "int64", slot);
    case 'I':
        return integer(argument, 0, UINT32_MAX, "uint32", slot);
    case 'Q':
        return uint64_number(argument, slot);
    default:
        return real_number(argument, type, slot);
    }
}

int kernel_total(PyObject *argument, uint64_t *total)
{
    return integer(argument, 0, INT64_MAX, "sizes", total);
}

/* ---- launches ---- */

static PyObject *launch(PyObject *self, PyObject *const *arguments, Py_ssize_t given)
{
    Kernel *kernel = (Kernel *)self;
    uint64_t slots[MAX_ARGUMENTS], total;
    Py_buffer buffers[MAX_ARGUMENTS];
    Py_ssize_t index = -1;
    int held = 0, done = 0;

    if (given != kernel->arity + 1)
        return PyErr_Format(PyExc_TypeError, "kernel %s takes the count of work-items and %zd arguments, got %zd",
                            kernel->name, kernel->arity, given < 1 ? 0 : given - 1);
    if (!kernel_total(arguments[0], &total))
        goto release;
    for (index = 0; index < kernel->arity; index++) {
        PyObject *argument = arguments[index + 1];
        if (kernel->types[index] != 'b') {
            if (!kernel_number(argument, kernel->types[index], &slots[index]))
                goto release;
            continue;
        }
        /* Strides are asked for so that arrays of any layout pass, the format is not: some dtypes have none. */
        if (PyObject_GetBuffer(argument, &buffers[held], PyBUF_STRIDES))
            goto release;
        slots[index] = (uint64_t)(uintptr_t)buffers[held++].buf;
    }
    if (total) {
        Py_BEGIN_ALLOW_THREADS
        pool_run(kernel->function, kernel->name, slots, total);
        Py_END_ALLOW_THREADS
    }
    done = 1;

release:
    if (!done)
        kernel_name_argument(kernel, index);
    while (held)
        PyBuffer_Release(&buffers[--held]);
    if (!done)
        return NULL;
    return none();
}

/* ---- kernels ---- */

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(((Kernel *)self)->name);
    PyMem_Free(((Kernel *)self)->types);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMemberDef kernel_members[] = {
    {"name", T_STRING, offsetof(Kernel, name), READONLY, "The kernel's name."},
    {"types", T_STRING, offsetof(Kernel, types), READONLY, "A letter per parameter."},
    {"address", T_ULONGLONG, offsetof(Kernel, function), READONLY, "The address of the compiled function."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "A compiled kernel: the __self__ of the function that launches it."},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_members, kernel_members},
    {0, NULL},
};

static PyType_Spec kernel_spec = {
    .name = "candelabra_native.launch._launch.Kernel",
    .basicsize = sizeof(Kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = kernel_slots,
};

static char *copy_text(const char *text)
{
    char *copy = PyMem_Malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : (char *)PyErr_NoMemory();
}

static int check_types(const char *types, const char *name)
{
    if (strlen(types) > MAX_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "kernel %s has %zu parameters; at most %d are supported", name, strlen(types),
                     MAX_ARGUMENTS);
        return 0;
    }
    size_t known = strspn(types, "biIqQfd");
    if (types[known]) {
        PyErr_Format(PyExc_ValueError, "kernel %s: parameter %zu has the unknown type '%c'; expected one of biIqQfd", name,
                     known, types[known]);
        return 0;
    }
    return 1;
}

Kernel *kernel_of(PyObject *module, PyObject *launch)
{
    PyTypeObject **type = PyModule_GetState(module);
    PyObject *self = PyObject_GetAttrString(launch, "__self__");
    if (self && Py_TYPE(self) == *type) {
        Py_DECREF(self); /* the function keeps it */
        return (Kernel *)self;
    }
    Py_XDECREF(self);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "plan() takes launches of kernels, got %R", launch);
    return NULL;
}

PyDoc_STRVAR(kernel_doc,
             "kernel(address, types, name)\n--\n\n"
             "Return a function ``launch(count, *arguments)`` that runs the compiled kernel at an address.");

static PyObject *kernel(PyObject *module, PyObject *arguments)
{
    unsigned long long address;
    const char *types, *name;
    PyObject *integer;
    if (!PyArg_ParseTuple(arguments, "O!ss:kernel", &PyLong_Type, &integer, &types, &name))
        return NULL;
    address = PyLong_AsUnsignedLongLong(integer);
    if (address == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    if (!address)
        return PyErr_Format(PyExc_ValueError, "kernel %s has the address 0", name);
    if (!check_types(types, name))
        return NULL;
    PyTypeObject **type = PyModule_GetState(module);
    Kernel *self = (Kernel *)PyType_GenericAlloc(*type, 0);
    if (!self)
        return NULL;
    self->function = (kernel_function)(uintptr_t)address;
    self->arity = (Py_ssize_t)strlen(types);
    PyObject *function = NULL;
    if ((self->name = copy_text(name)) && (self->types = copy_text(types))) {
        self->method.ml_name = self->name;
        self->method.ml_meth = (PyCFunction)(void (*)(void))launch;
        self->method.ml_flags = METH_FASTCALL;
        /* A built-in function is what the interpreter calls fastest. It keeps `self`, and so its own definition. */
        function = PyCFunction_NewEx(&self->method, (PyObject *)self, NULL);
        crash_install();
    }
    Py_DECREF(self);
    return function;
}

/* ---- threads ---- */

PyDoc_STRVAR(set_num_threads_doc,
             "set_num_threads(number)\n--\n\n"
             "Set how many threads run a kernel, the caller's included. Threads start when they are first needed.");

static PyObject *set_num_threads(PyObject *module, PyObject *argument)
{
    long long number = PyLong_AsLongLong(argument);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (number < 1)
        return PyErr_Format(PyExc_ValueError, "set_num_threads expects a positive integer, got %lld", number);
    pool_set_num_threads(number < POOL_MAX_THREADS ? (unsigned)number : POOL_MAX_THREADS);
    return none();
}

PyDoc_STRVAR(get_num_threads_doc, "get_num_threads()\n--\n\nReturn how many threads run a kernel at most.");

static PyObject *get_num_threads(PyObject *module, PyObject *ignored)
{
    return PyLong_FromUnsignedLong(pool_num_threads());
}

PyDoc_STRVAR(forget_threads_doc,
             "forget_threads()\n--\n\n"
             "Prepare the pool for new threads, in a child made by fork: a child has only the thread that called fork.");

static PyObject *forget_threads(PyObject *module, PyObject *ignored)
{
    pool_reset();
    memory_reset_lock();
    return none();
}

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"kernel", kernel, METH_VARARGS, kernel_doc},
    {"set_num_threads", set_num_threads, METH_O, set_num_threads_doc},
    {"get_num_threads", get_num_threads, METH_NOARGS, get_num_threads_doc},
    {"forget_threads", forget_threads, METH_NOARGS, forget_threads_doc},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    static int prepared; /* under the interpreter's lock; several interpreters share the pool */
    if (!prepared)
        pool_reset();
    prepared = 1;
    PyObject **type = PyModule_GetState(module);
    if (!(*type = PyType_FromModuleAndSpec(module, &kernel_spec, NULL)))
        return -1;
    if (rows_add_to(module) || plan_add_to(module))
        return -1;
    return memory_add_to(module);
}

static int clear(PyObject *module)
{
    PyObject **type = PyModule_GetState(module);
    if (type)
        Py_CLEAR(*type);
    return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **type = PyModule_GetState(module);
    if (type)
        Py_VISIT(*type);
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_launch",
    .m_doc = "Calls compiled kernels on arrays and numbers, on a pool of threads.",
    .m_size = sizeof(PyObject *),
    .m_methods = methods,
    .m_slots = module_slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__launch(void)
{
    return PyModuleDef_Init(&module);
}

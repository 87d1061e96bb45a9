/* Plans: launches that were prepared together run in one call, without the interpreter between them.
 *
 * A plan has its launches with all numbers, and for each buffer the number of a block and an offset. A call names the
 * blocks: arrays, which must have the layouts that the launches were prepared for, and blocks of memory. */
#define PY_SSIZE_T_CLEAN
#include "plan.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "crash.h"
#include "kernel.h"
#include "pool.h"

typedef struct {
    kernel_function function;
    const char *name; /* the kernel's */
    uint64_t total;
    Py_ssize_t first; /* its first slot */
} Step;

/* A slot that gets an address. */
typedef struct {
    Py_ssize_t slot, block, offset;
} Place;

/* The layout that an array must have. */
typedef struct {
    int ndim; /* -1 for a block of memory, which has any */
    Py_ssize_t alignment;
    Py_ssize_t *strides;
} Layout;

typedef struct {
    PyObject_HEAD
    PyMethodDef method;
    PyObject *kernels; /* keeps them */
    Py_ssize_t steps_count, slots_count, places_count, blocks_count;
    Step *steps;
    uint64_t *slots;
    Place *places;
    Layout *layouts;
} Plan;

static PyTypeObject *plan_type;

static void plan_dealloc(PyObject *object)
{
    Plan *self = (Plan *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (Py_ssize_t i = 0; self->layouts && i < self->blocks_count; i++)
        PyMem_Free(self->layouts[i].strides);
    PyMem_Free(self->layouts);
    PyMem_Free(self->places);
    PyMem_Free(self->slots);
    PyMem_Free(self->steps);
    Py_XDECREF(self->kernels);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyType_Slot plan_slots[] = {
    {Py_tp_doc, "Prepared launches: the __self__ of the function that runs them."},
    {Py_tp_dealloc, plan_dealloc},
    {0, NULL},
};

static PyType_Spec plan_spec = {
    .name = "candelabra_native.launch._launch.Plan",
    .basicsize = sizeof(Plan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = plan_slots,
};

/* ---- calls ---- */

/* Whether an array has a layout. The stride of a dim of one element does not matter. */
static int has_layout(const Py_buffer *buffer, const Layout *layout)
{
    if (layout->ndim < 0)
        return 1;
    if (buffer->ndim != layout->ndim || (uintptr_t)buffer->buf % (uintptr_t)layout->alignment)
        return 0;
    for (int d = 0; d < layout->ndim; d++)
        if (buffer->shape[d] != 1 && buffer->strides[d] != layout->strides[d])
            return 0;
    return 1;
}

static PyObject *run(PyObject *object, PyObject *const *blocks, Py_ssize_t given)
{
    Plan *self = (Plan *)object;
    if (given != self->blocks_count)
        return PyErr_Format(PyExc_TypeError, "the plan takes %zd blocks, got %zd", self->blocks_count, given);
    size_t views = (size_t)given * sizeof(Py_buffer), slots_size = (size_t)self->slots_count * sizeof(uint64_t);
    char *memory = PyMem_Malloc(views + slots_size + 1);
    if (!memory)
        return PyErr_NoMemory();
    Py_buffer *buffers = (Py_buffer *)memory;
    uint64_t *slots = (uint64_t *)(memory + views);
    Py_ssize_t held = 0;
    int fits = 1;
    /* Strides are asked for so that arrays of any layout pass, the format is not: some dtypes have none. */
    while (fits && held < given && !PyObject_GetBuffer(blocks[held], &buffers[held], PyBUF_STRIDES)) {
        fits = has_layout(&buffers[held], &self->layouts[held]);
        held++;
    }
    int failed = fits && held < given;
    if (fits && !failed) {
        memcpy(slots, self->slots, slots_size);
        for (const Place *place = self->places; place < self->places + self->places_count; place++)
            slots[place->slot] = (uint64_t)((uintptr_t)buffers[place->block].buf + (uintptr_t)place->offset);
        Py_BEGIN_ALLOW_THREADS
        for (const Step *step = self->steps; step < self->steps + self->steps_count; step++)
            pool_run(step->function, step->name, slots + step->first, step->total);
        Py_END_ALLOW_THREADS
    }
    while (held)
        PyBuffer_Release(&buffers[--held]);
    PyMem_Free(memory);
    return failed ? NULL : PyBool_FromLong(fits);
}

/* ---- construction ---- */

static int read_place(Plan *self, PyObject *argument, Py_ssize_t slot)
{
    Place *place = &self->places[self->places_count];
    place->slot = slot;
    if (!PyTuple_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "a buffer of a plan is (block, offset), got %R", argument);
        return 0;
    }
    if (!PyArg_ParseTuple(argument, "nn;a buffer of a plan is (block, offset)", &place->block, &place->offset))
        return 0;
    if (place->block < 0 || place->block >= self->blocks_count) {
        PyErr_Format(PyExc_ValueError, "block %zd is not one of the %zd", place->block, self->blocks_count);
        return 0;
    }
    self->places_count++;
    return 1;
}

static int read_step(PyObject *module, Plan *self, PyObject *launch)
{
    PyObject *function = PyTuple_GetItem(launch, 0), *arguments = PyTuple_GetItem(launch, 2);
    Kernel *kernel = kernel_of(module, function);
    if (!kernel || PyList_Append(self->kernels, function))
        return 0;
    if (PyTuple_Size(arguments) != kernel->arity) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %zd arguments, got %zd", kernel->name, kernel->arity,
                     PyTuple_Size(arguments));
        return 0;
    }
    Step *step = &self->steps[self->steps_count++];
    *step = (Step){kernel->function, kernel->name, 0, self->slots_count};
    Py_ssize_t index = -1;
    int right = kernel_total(PyTuple_GetItem(launch, 1), &step->total);
    while (right && ++index < kernel->arity) {
        PyObject *argument = PyTuple_GetItem(arguments, index);
        uint64_t *slot = &self->slots[self->slots_count];
        if (kernel->types[index] != 'b')
            right = kernel_number(argument, kernel->types[index], slot);
        else
            right = read_place(self, argument, self->slots_count);
        self->slots_count++;
    }
    if (!right)
        kernel_name_argument(kernel, index);
    return right;
}

static int read_layout(Layout *layout, PyObject *given)
{
    PyObject *strides;
    layout->ndim = -1;
    if (Py_IsNone(given))
        return 1;
    if (!PyArg_ParseTuple(given, "O!n;a layout of a plan is (strides, alignment)", &PyTuple_Type, &strides,
                          &layout->alignment))
        return 0;
    if (layout->alignment < 1) {
        PyErr_Format(PyExc_ValueError, "an alignment is at least 1, got %zd", layout->alignment);
        return 0;
    }
    Py_ssize_t ndim = PyTuple_Size(strides);
    if (!(layout->strides = PyMem_Calloc((size_t)ndim + 1, sizeof(Py_ssize_t)))) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t d = 0; d < ndim; d++) {
        layout->strides[d] = PyLong_AsSsize_t(PyTuple_GetItem(strides, d));
        if (layout->strides[d] == -1 && PyErr_Occurred())
            return 0;
    }
    layout->ndim = (int)ndim;
    return 1;
}

/* Returns the number of arguments of all launches, or -1 with a Python error set. */
static Py_ssize_t count_arguments(PyObject *launches)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(launches); i++) {
        PyObject *launch = PyTuple_GetItem(launches, i);
        if (!PyTuple_Check(launch) || PyTuple_Size(launch) != 3 || !PyTuple_Check(PyTuple_GetItem(launch, 2))) {
            PyErr_Format(PyExc_TypeError, "a launch of a plan is (kernel, count, arguments), got %R", launch);
            return -1;
        }
        count += PyTuple_Size(PyTuple_GetItem(launch, 2));
    }
    return count;
}

PyDoc_STRVAR(plan_doc,
             "plan(launches, layouts)\n--\n\n"
             "Return a function of blocks that runs launches, tuples of (launch of a kernel, count, arguments), in turn.\n\n"
             "A buffer among the arguments is (position of a block, offset in bytes). A block of a layout, which is\n"
             "(strides in bytes, alignment), is an array; one of None is memory. The function returns whether all arrays\n"
             "have their layouts; otherwise it launches nothing.");

static PyObject *plan(PyObject *module, PyObject *arguments)
{
    PyObject *launches, *layouts, *function = NULL;
    if (!PyArg_ParseTuple(arguments, "O!O!:plan", &PyTuple_Type, &launches, &PyTuple_Type, &layouts))
        return NULL;
    Py_ssize_t count = count_arguments(launches), steps = PyTuple_Size(launches), blocks = PyTuple_Size(layouts);
    if (count < 0)
        return NULL;
    Plan *self = (Plan *)PyType_GenericAlloc(plan_type, 0);
    if (!self)
        return NULL;
    self->steps = PyMem_Calloc((size_t)steps + 1, sizeof(Step));
    self->slots = PyMem_Calloc((size_t)count + 1, sizeof(uint64_t));
    self->places = PyMem_Calloc((size_t)count + 1, sizeof(Place));
    self->layouts = PyMem_Calloc((size_t)blocks + 1, sizeof(Layout));
    self->kernels = PyList_New(0);
    self->blocks_count = blocks;
    int right = self->steps && self->slots && self->places && self->layouts && self->kernels;
    if (!right && !PyErr_Occurred())
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; right && i < blocks; i++)
        right = read_layout(&self->layouts[i], PyTuple_GetItem(layouts, i));
    for (Py_ssize_t i = 0; right && i < steps; i++)
        right = read_step(module, self, PyTuple_GetItem(launches, i));
    if (right) {
        self->method = (PyMethodDef){"plan", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL};
        function = PyCFunction_NewEx(&self->method, (PyObject *)self, NULL); /* it keeps `self` */
        crash_install();
    }
    Py_DECREF(self);
    return function;
}

static PyMethodDef methods[] = {
    {"plan", plan, METH_VARARGS, plan_doc},
    {NULL, NULL, 0, NULL},
};

int plan_add_to(PyObject *module)
{
    if (!plan_type && !(plan_type = (PyTypeObject *)PyType_FromSpec(&plan_spec)))
        return -1;
    return PyModule_AddFunctions(module, methods);
}

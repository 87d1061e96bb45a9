/* Plans: launches that were prepared together run in one call, without the interpreter between them.
 *
 * A plan has its launches with all numbers, and for each buffer the number of a block and an offset. Blocks are arrays of
 * the call, which must have the layouts that the launches were prepared for, or memory of the plan. Memory is taken
 * before the first launch that uses it and given back after the last one; that of results remains. An array that the
 * caller does not need any more is released after the last launch that uses it, too. So the memory of a plan is that of
 * single calls. */
#define PY_SSIZE_T_CLEAN
#include "plan.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "kernel.h"
#include "memory.h"
#include "pool.h"

typedef struct {
    kernel_function function;
    const char *name; /* the kernel's */
    uint64_t total;
    Py_ssize_t first;  /* its first slot */
    Py_ssize_t places; /* the end of its places */
} Step;

/* A slot that gets an address. */
typedef struct {
    Py_ssize_t slot, block, offset;
} Place;

/* The layout that an array must have. */
typedef struct {
    int ndim; /* -1 for any */
    Py_ssize_t alignment;
    Py_ssize_t *strides;
} Layout;

/* After which step, or before which, something happens to a block. */
typedef struct {
    Py_ssize_t step, block;
} Event;

typedef struct {
    PyObject_HEAD
    PyMethodDef method;
    PyObject *kernels; /* keeps them */
    Py_ssize_t launches_count, steps_count, slots_count, places_count, arrays_count, blocks_count, results_count;
    Step *steps;
    uint64_t *slots;
    Place *places;
    Layout *layouts;     /* of the arrays, which are the first blocks */
    size_t *sizes;       /* of the other blocks */
    Event *takes;        /* blocks of memory, in the order of the launches before which they are taken */
    Event *ends;         /* blocks, in the order of the launches after which they are given back */
    Py_ssize_t ends_count;
    Py_ssize_t *results; /* blocks that remain */
} Plan;

static PyTypeObject *plan_type;

static void plan_dealloc(PyObject *object)
{
    Plan *self = (Plan *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (Py_ssize_t i = 0; self->layouts && i < self->arrays_count; i++)
        PyMem_Free(self->layouts[i].strides);
    PyMem_Free(self->results);
    PyMem_Free(self->ends);
    PyMem_Free(self->takes);
    PyMem_Free(self->sizes);
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

/* What a call holds. */
typedef struct {
    PyObject *arrays;   /* a list */
    Py_buffer *buffers; /* of the arrays */
    Py_ssize_t held;    /* buffers that were got */
    void **starts;      /* of the blocks; NULL if it is not there (any more) */
    size_t *reserved;   /* of the blocks of memory */
    uint64_t *slots;
} Call;

/* Release an array of the call that the caller does not need any more. */
static void release_array(Call *call, Py_ssize_t index)
{
    PyBuffer_Release(&call->buffers[index]);
    PyList_SetItem(call->arrays, index, Py_NewRef(Py_None));
}

/* Runs the steps without the interpreter's lock. Returns the block for which there is no memory, or -1. */
static Py_ssize_t run_steps(const Plan *self, Call *call)
{
    const Event *take = self->takes, *end = self->ends;
    const Event *takes_end = take + (self->blocks_count - self->arrays_count), *ends_end = end + self->ends_count;
    const Place *place = self->places;
    Py_ssize_t missing = -1;
    PyThreadState *thread = PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < self->steps_count && missing < 0; i++) {
        const Step *step = &self->steps[i];
        for (; take < takes_end && take->step <= i && missing < 0; take++) {
            Py_ssize_t own = take->block - self->arrays_count;
            call->starts[take->block] = memory_take(self->sizes[own], &call->reserved[own]);
            if (!call->starts[take->block])
                missing = take->block;
        }
        if (missing >= 0)
            break;
        for (; place < self->places + step->places; place++)
            call->slots[place->slot] = (uint64_t)((uintptr_t)call->starts[place->block] + (uintptr_t)place->offset);
        pool_run(step->function, step->name, call->slots + step->first, step->total);
        for (; end < ends_end && end->step <= i; end++) {
            if (end->block >= self->arrays_count) {
                memory_give(call->starts[end->block], call->reserved[end->block - self->arrays_count]);
                call->starts[end->block] = NULL;
                continue;
            }
            PyEval_RestoreThread(thread);
            release_array(call, end->block);
            thread = PyEval_SaveThread();
        }
    }
    PyEval_RestoreThread(thread);
    return missing;
}

/* Returns the results as a tuple of blocks. */
static PyObject *results_of(const Plan *self, Call *call)
{
    PyObject *results = PyTuple_New(self->results_count);
    for (Py_ssize_t i = 0; results && i < self->results_count; i++) {
        Py_ssize_t block = self->results[i], own = block - self->arrays_count;
        PyObject *result = memory_block(call->starts[block], self->sizes[own], call->reserved[own]);
        call->starts[block] = NULL;
        if (result)
            PyTuple_SetItem(results, i, result);
        else
            Py_CLEAR(results);
    }
    return results;
}

/* Gets the buffers of all arrays. Returns 1 if they have their layouts, 0 if not, and -1 with a Python error set. */
static int get_buffers(const Plan *self, Call *call)
{
    for (; call->held < self->arrays_count; call->held++) {
        Py_buffer *buffer = &call->buffers[call->held];
        /* Strides are asked for so that arrays of any layout pass, the format is not: some dtypes have none. */
        if (PyObject_GetBuffer(PyList_GetItem(call->arrays, call->held), buffer, PyBUF_STRIDES))
            return -1;
        call->starts[call->held] = buffer->buf;
        if (!has_layout(buffer, &self->layouts[call->held])) {
            PyBuffer_Release(buffer);
            return 0;
        }
    }
    return 1;
}

static PyObject *run(PyObject *object, PyObject *arrays)
{
    Plan *self = (Plan *)object;
    if (!PyList_Check(arrays) || PyList_Size(arrays) != self->arrays_count)
        return PyErr_Format(PyExc_TypeError, "the plan takes a list of %zd arrays, got %R", self->arrays_count, arrays);
    size_t owned = (size_t)(self->blocks_count - self->arrays_count), blocks = (size_t)self->blocks_count;
    size_t views = (size_t)self->arrays_count * sizeof(Py_buffer), slots = (size_t)self->slots_count * sizeof(uint64_t);
    char *memory = PyMem_Malloc(views + slots + blocks * sizeof(void *) + owned * sizeof(size_t) + 1);
    if (!memory)
        return PyErr_NoMemory();
    Call call = {arrays, (Py_buffer *)memory, 0, (void **)(memory + views + slots), NULL, (uint64_t *)(memory + views)};
    call.reserved = (size_t *)(call.starts + blocks);
    memset(call.starts, 0, blocks * sizeof(void *));
    memcpy(call.slots, self->slots, slots);
    int fits = get_buffers(self, &call);
    PyObject *found = fits ? NULL : Py_NewRef(Py_None);
    if (fits > 0) {
        Py_ssize_t missing = run_steps(self, &call);
        found = missing < 0 ? results_of(self, &call) : memory_refuse(self->sizes[missing - self->arrays_count]);
    }
    for (Py_ssize_t i = 0; i < call.held; i++)
        PyBuffer_Release(&call.buffers[i]); /* it does nothing the second time */
    for (Py_ssize_t i = self->arrays_count; i < self->blocks_count; i++)
        if (call.starts[i])
            memory_give(call.starts[i], call.reserved[i - self->arrays_count]);
    PyMem_Free(memory);
    return found;
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
    *step = (Step){kernel->function, kernel->name, 0, self->slots_count, 0};
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
    step->places = self->places_count;
    if (!right)
        kernel_name_argument(kernel, index);
    return right;
}

static int read_layout(Plan *self, Py_ssize_t index, PyObject *given)
{
    Layout *layout = &self->layouts[index];
    PyObject *strides;
    Py_ssize_t last;
    layout->ndim = -1;
    if (Py_IsNone(given))
        return 1;
    if (!PyArg_ParseTuple(given, "O!nn;a layout of a plan is (strides, alignment, last launch)", &PyTuple_Type, &strides,
                          &layout->alignment, &last))
        return 0;
    if (last >= 0)
        self->ends[self->ends_count++] = (Event){last, index};
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

/* Reads (bytes, first launch, last launch or -1) of a block of memory. */
static int read_memory(Plan *self, Py_ssize_t index, PyObject *given)
{
    Py_ssize_t size, first, last, block = self->arrays_count + index;
    if (!PyTuple_Check(given)) {
        PyErr_Format(PyExc_TypeError, "memory of a plan is (bytes, first launch, last launch), got %R", given);
        return 0;
    }
    if (!PyArg_ParseTuple(given, "nnn;memory of a plan is (bytes, first launch, last launch)", &size, &first, &last))
        return 0;
    if (size < 0 || first < 0 || first >= self->launches_count || (last != -1 && last < first)) {
        PyErr_Format(PyExc_ValueError, "%zd bytes cannot be used by the launches %zd to %zd of %zd", size, first, last,
                     self->launches_count);
        return 0;
    }
    self->sizes[index] = (size_t)size;
    self->takes[index] = (Event){first, block};
    if (last < 0)
        self->results[self->results_count++] = block;
    else
        self->ends[self->ends_count++] = (Event){last, block};
    return 1;
}

static int compare_events(const void *one, const void *other)
{
    Py_ssize_t a = ((const Event *)one)->step, b = ((const Event *)other)->step;
    return (a > b) - (a < b);
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
             "plan(launches, layouts, memory)\n--\n\n"
             "Return a function of a list of arrays that runs launches, (launch of a kernel, count, arguments), in turn.\n\n"
             "A buffer among the arguments is (position of a block, offset in bytes). The blocks are the arrays, then the\n"
             "memory. An array has a layout (strides in bytes, alignment, last launch), or None for any. After its last\n"
             "launch the list has None in its place; -1: it stays. Memory is (bytes, first launch, last launch), or with\n"
             "-1 a result. The function returns the tuple of the results, or None if an array has another layout; then it\n"
             "launches nothing.");

/* Allocates what a plan of these sizes has. Returns 0 with a Python error set if there is no memory. */
static int prepare(Plan *self, Py_ssize_t arguments, Py_ssize_t memory)
{
    self->blocks_count = self->arrays_count + memory;
    self->steps = PyMem_Calloc((size_t)self->launches_count + 1, sizeof(Step));
    self->slots = PyMem_Calloc((size_t)arguments + 1, sizeof(uint64_t));
    self->places = PyMem_Calloc((size_t)arguments + 1, sizeof(Place));
    self->layouts = PyMem_Calloc((size_t)self->arrays_count + 1, sizeof(Layout));
    self->sizes = PyMem_Calloc((size_t)memory + 1, sizeof(size_t));
    self->takes = PyMem_Calloc((size_t)memory + 1, sizeof(Event));
    self->ends = PyMem_Calloc((size_t)self->blocks_count + 1, sizeof(Event));
    self->results = PyMem_Calloc((size_t)memory + 1, sizeof(Py_ssize_t));
    self->kernels = PyList_New(0);
    int right = self->steps && self->slots && self->places && self->layouts && self->sizes && self->takes &&
                self->ends && self->results && self->kernels;
    if (!right && !PyErr_Occurred())
        PyErr_NoMemory();
    return right;
}

static PyObject *plan(PyObject *module, PyObject *arguments)
{
    PyObject *launches, *layouts, *memory, *function = NULL;
    if (!PyArg_ParseTuple(arguments, "O!O!O!:plan", &PyTuple_Type, &launches, &PyTuple_Type, &layouts, &PyTuple_Type,
                          &memory))
        return NULL;
    Py_ssize_t count = count_arguments(launches), owned = PyTuple_Size(memory);
    if (count < 0)
        return NULL;
    Plan *self = (Plan *)PyType_GenericAlloc(plan_type, 0);
    if (!self)
        return NULL;
    self->launches_count = PyTuple_Size(launches);
    self->arrays_count = PyTuple_Size(layouts);
    int right = prepare(self, count, owned);
    for (Py_ssize_t i = 0; right && i < self->arrays_count; i++)
        right = read_layout(self, i, PyTuple_GetItem(layouts, i));
    for (Py_ssize_t i = 0; right && i < owned; i++)
        right = read_memory(self, i, PyTuple_GetItem(memory, i));
    for (Py_ssize_t i = 0; right && i < self->launches_count; i++)
        right = read_step(module, self, PyTuple_GetItem(launches, i));
    if (right) {
        qsort(self->takes, (size_t)owned, sizeof(Event), compare_events);
        qsort(self->ends, (size_t)self->ends_count, sizeof(Event), compare_events);
        self->method = (PyMethodDef){"plan", run, METH_O, NULL};
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

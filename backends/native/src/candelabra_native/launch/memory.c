/* Memory for results: blocks aligned to cache lines, and reused.

A block is a Python object that exports its bytes. NumPy's arrays over it keep it alive, views too. When the last one is
gone, the memory of a large block is kept for the next block of its size class: the system would unmap it, and map it,
page by page, for the next result. A size class is at most an eighth larger than what was asked for. Beyond
`MOST_OWNED` bytes, large kept blocks are offered to the system: it takes pages when it has no others, and until then
they serve the next block without a page fault. Smaller blocks, which have no whole huge pages to offer, have
`MOST_OWNED` bytes of their own, whatever large ones came before; beyond, those that were not used for longest are freed,
so that sizes of earlier calls make room for those of later ones. Plans take memory while they do not hold the Python lock, so the kept memory
has a lock of its own. */

#include "memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_FREE
#define MADV_FREE 8 /* Linux 4.5 and newer; the headers of older C libraries lack it */
#endif

enum {
    ALIGNMENT = 64,
    /* Smaller blocks are left to malloc, which keeps them itself. */
    LEAST_KEPT = 1 << 18,
    /* Blocks of at least this size ask for huge pages. */
    LEAST_HUGE = 1 << 22,
    HUGE_PAGE = 1 << 21,
    CLASSES = 8 * 64,
    /* At most this part of the machine's memory is kept in large blocks. */
    KEPT_PART = 8
};

/* Kept memory up to this size, of small blocks and of large ones, remains the process's own. */
static const size_t MOST_OWNED = (size_t)256 << 20;

/* The head of a kept block. */
typedef struct Kept {
    struct Kept *next, *previous; /* of its size class, the last one given first */
    struct Kept *older, *newer;   /* of the small blocks */
    size_t size;
    int class;
} Kept;

typedef struct {
    PyObject_HEAD
    void *start;
    size_t size;     /* what was asked for */
    size_t reserved; /* what the block has */
    Py_ssize_t length;
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the next three lines */
static Kept *kept[CLASSES];
static Kept *oldest, *newest; /* of the small blocks */
static size_t bytes_small, bytes_large;
static _Atomic size_t bytes_allocated, bytes_peak;
static PyTypeObject *block_type;
static PyObject *out_of_memory; /* the class of errors, MemoryError unless set */

/* The size class of a size: its highest bit, and the three bits below it, rounded up. */
static int class_of(size_t size, size_t *rounded) {
    int bit = 63 - __builtin_clzll(size);
    size_t step = (size_t)1 << (bit - 3);
    *rounded = (size + step - 1) & ~(step - 1);
    bit = 63 - __builtin_clzll(*rounded);
    return bit * 8 + (int)((*rounded >> (bit - 3)) & 7);
}

/* The most bytes of large blocks that are kept. */
static size_t most_kept(void) {
    static size_t most;
    if (!most) {
        long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        most = pages > 0 && size > 0 ? (size_t)pages / KEPT_PART * (size_t)size : MOST_OWNED;
        if (most < MOST_OWNED) most = MOST_OWNED;
    }
    return most;
}

/* Let the system take the pages of a block when it needs them; whole huge pages, which it would split. */
static int offer(void *start, size_t size) {
    uintptr_t first = ((uintptr_t)start + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t last = ((uintptr_t)start + size) & ~(uintptr_t)(HUGE_PAGE - 1);
    return last > first && !madvise((void *)first, last - first, MADV_FREE);
}

static int is_small(size_t size) { return size < LEAST_HUGE; }

/* Adds a block to the kept ones. The caller has the lock. */
static void link_kept(void *start, size_t size, int class) {
    Kept *block = start;
    *block = (Kept){kept[class], NULL, NULL, NULL, size, class};
    if (block->next) block->next->previous = block;
    kept[class] = block;
    *(is_small(size) ? &bytes_small : &bytes_large) += size;
    if (!is_small(size)) return;
    block->older = newest;
    *(newest ? &newest->newer : &oldest) = block;
    newest = block;
}

/* Takes a block out of the kept ones. The caller has the lock. */
static void unlink_kept(Kept *block) {
    *(block->previous ? &block->previous->next : &kept[block->class]) = block->next;
    if (block->next) block->next->previous = block->previous;
    *(is_small(block->size) ? &bytes_small : &bytes_large) -= block->size;
    if (!is_small(block->size)) return;
    *(block->older ? &block->older->newer : &oldest) = block->newer;
    *(block->newer ? &block->newer->older : &newest) = block->older;
}

static void release_kept(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CLASSES; ++i)
        while (kept[i]) {
            Kept *first = kept[i];
            unlink_kept(first);
            free(first);
        }
    pthread_mutex_unlock(&lock);
}

static void *new_memory(size_t size) {
    void *start = NULL;
    if (posix_memalign(&start, ALIGNMENT, size)) {
        release_kept();
        if (posix_memalign(&start, ALIGNMENT, size)) return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (size >= LEAST_HUGE) {
        uintptr_t first = ((uintptr_t)start + 4095) & ~(uintptr_t)4095;
        uintptr_t last = ((uintptr_t)start + size) & ~(uintptr_t)4095;
        madvise((void *)first, last - first, MADV_HUGEPAGE);
    }
#endif
    return start;
}

/* Take a block of a class from the kept ones, or return NULL. */
static void *reused(int class) {
    pthread_mutex_lock(&lock);
    Kept *first = kept[class];
    if (first) unlink_kept(first);
    pthread_mutex_unlock(&lock);
    return first;
}

/* Keep a block for the next of its class. Returns 0 if there is too much kept memory already, of large blocks. */
static int keep(void *start, size_t size) {
    size_t rounded;
    int class = class_of(size, &rounded);
    pthread_mutex_lock(&lock);
    size_t after = bytes_large + size;
    int keeps = is_small(size) || (after <= most_kept() && (after <= MOST_OWNED || offer(start, size)));
    while (is_small(size) && bytes_small + size > MOST_OWNED) {
        Kept *block = oldest;
        unlink_kept(block);
        free(block);
    }
    if (keeps) link_kept(start, size, class);
    pthread_mutex_unlock(&lock);
    return keeps;
}

void *memory_take(size_t size, size_t *reserved) {
    void *start = NULL;
    *reserved = size;
    if (size >= LEAST_KEPT) {
        int class = class_of(size, reserved);
        start = reused(class);
    }
    if (!start && !(start = new_memory(*reserved ? *reserved : 1))) return NULL;
    size_t now = atomic_fetch_add_explicit(&bytes_allocated, *reserved, memory_order_relaxed) + *reserved;
    size_t peak = atomic_load_explicit(&bytes_peak, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak(&bytes_peak, &peak, now));
    return start;
}

void memory_give(void *start, size_t reserved) {
    atomic_fetch_sub_explicit(&bytes_allocated, reserved, memory_order_relaxed);
    if (reserved < LEAST_KEPT || !keep(start, reserved)) free(start);
}

void memory_reset_lock(void) {
    pthread_mutex_init(&lock, NULL);
}

static PyObject *refuse(PyObject *size) {
    return PyErr_Format(out_of_memory ? out_of_memory : PyExc_MemoryError, "cannot allocate %S bytes on the CPU", size);
}

PyObject *memory_block(void *start, size_t size, size_t reserved) {
    Block *block = start ? PyObject_New(Block, block_type) : NULL;
    if (block) {
        block->start = start;
        block->size = size;
        block->reserved = reserved;
        block->length = (Py_ssize_t)size;
    } else if (start) {
        memory_give(start, reserved);
    }
    return (PyObject *)block;
}

PyObject *memory_refuse(size_t size) {
    PyObject *number = PyLong_FromSize_t(size);
    if (number) refuse(number);
    Py_XDECREF(number);
    return NULL;
}

static PyObject *allocate(PyObject *module, PyObject *argument) {
    (void)module;
    size_t size = PyLong_AsSize_t(argument), reserved = size;
    if (size == (size_t)-1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
        PyErr_Clear();
        return refuse(argument);
    }
    if (size > PY_SSIZE_T_MAX / 2) return refuse(argument);
    void *start = memory_take(size, &reserved);
    PyObject *block = memory_block(start, size, reserved);
    return block || PyErr_Occurred() ? block : refuse(argument);
}

static void block_dealloc(PyObject *object) {
    Block *block = (Block *)object;
    memory_give(block->start, block->reserved);
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

static int block_get_buffer(PyObject *object, Py_buffer *view, int flags) {
    Block *block = (Block *)object;
    return PyBuffer_FillInfo(view, object, block->start, block->length, 0, flags);
}

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Uninitialised memory, aligned to cache lines. It exports its bytes."},
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_bf_getbuffer, (void *)block_get_buffer},
    {0, NULL},
};

static PyType_Spec block_spec = {
    "candelabra_native.launch._launch.Block", sizeof(Block), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots,
};

static PyObject *address_of(PyObject *module, PyObject *object) {
    (void)module;
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_STRIDES)) return NULL;
    PyObject *address = PyLong_FromVoidPtr(view.buf);
    PyBuffer_Release(&view);
    return address;
}

static PyObject *statistics(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    pthread_mutex_lock(&lock);
    Py_ssize_t held = (Py_ssize_t)(bytes_small + bytes_large);
    pthread_mutex_unlock(&lock);
    Py_ssize_t used = (Py_ssize_t)atomic_load(&bytes_allocated), peak = (Py_ssize_t)atomic_load(&bytes_peak);
    return Py_BuildValue("{s:n,s:n,s:n}", "allocated", used, "reserved", used + held, "peak", peak);
}

static PyObject *release(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    release_kept();
    return Py_NewRef(Py_None);
}

static PyObject *reset_peak(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    atomic_store(&bytes_peak, atomic_load(&bytes_allocated));
    return Py_NewRef(Py_None);
}

static PyObject *raise_instead(PyObject *module, PyObject *error) {
    (void)module;
    PyObject *before = out_of_memory;
    out_of_memory = Py_NewRef(error);
    Py_XDECREF(before);
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"allocate", allocate, METH_O, "allocate(nbytes): return a new block of memory. Raises MemoryError."},
    {"raise_instead", raise_instead, METH_O, "raise_instead(error): set the class that allocate() raises."},
    {"address_of", address_of, METH_O, "address_of(object): return the address of the first element of a buffer."},
    {"statistics", statistics, METH_NOARGS, "Return the bytes that are allocated, reserved, and were at most allocated."},
    {"reset_peak", reset_peak, METH_NOARGS, "Count the most bytes that are allocated from now on."},
    {"release", release, METH_NOARGS, "Return the memory that is kept for reuse to the system."},
    {NULL, NULL, 0, NULL},
};

int memory_add_to(PyObject *module) {
    block_type = (PyTypeObject *)PyType_FromSpec(&block_spec);
    if (!block_type || PyModule_AddFunctions(module, methods)) return -1;
    return PyModule_AddType(module, block_type);
}

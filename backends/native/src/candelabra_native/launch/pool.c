/* The process's thread pool.
 *
 * A call posts a job, works on it, and waits for the helpers that joined. A job without helpers is completed by its
 * caller alone: there is no deadlock, and waking threads only matters for speed.
 *
 * The work-items are cut into chunks, and each thread takes the next chunk when it has done one, so a slow thread takes
 * fewer. Several threads may post jobs at the same time. */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "crash.h"

enum {
    JOBS = 8,               /* jobs at once; one more runs in its caller's thread alone */
    CHUNKS_PER_THREAD = 16, /* a thread that is late costs at most 1/16 of its share */
    STACK_SIZE = 4 << 20,   /* musl's default is 128 KiB */
    SPIN_NS = 200000,       /* how long a thread waits without sleeping */
};

/* The state of a job, from the lowest bits: how many helpers are inside, how many may be, whether it is closed to more,
 * and the job's number, so that a helper that read the state of an earlier job cannot join a later one. */
#define INSIDE ((uint64_t)0xffff)
#define HELPERS(state) ((state) >> 16 & 0x7fff)
#define CLOSED ((uint64_t)1 << 31)
#define NUMBER(state) ((state) >> 32)

typedef struct {
    _Alignas(64) _Atomic uint64_t state;
    atomic_bool taken;
    /* Written by the caller before the job is open, read inside. */
    kernel_function function;
    const char *name;
    const uint64_t *slots;
    uint64_t total, chunks, own; /* own: the chunks that the caller takes if all threads are equally fast */
    uint32_t control;
    int backwards;
    /* Chunks taken from the front in the low half, from the back in the high half. */
    _Alignas(64) _Atomic uint64_t next;
    atomic_bool waiting; /* the caller sleeps until no helper is inside */
    pthread_mutex_t mutex;
    pthread_cond_t done;
} job_t;

typedef struct {
    _Alignas(64) atomic_bool asleep;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} worker_t;

static job_t jobs[JOBS];
static worker_t workers[POOL_MAX_THREADS]; /* the first is not used: it stands for a caller */
static pthread_mutex_t starting;
static _Atomic uint32_t started; /* workers that run */
static _Atomic uint32_t limit = 1;
static _Atomic uint32_t callers;
static _Atomic uint64_t posted;

/* ---- the processor ---- */

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Rounding and the treatment of denormal numbers: a helper takes over its caller's, or results would depend on who
 * computes them. */
static inline uint32_t floating_point_control(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3fu; /* without the flags of past exceptions */
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (uint32_t)control;
#else
    return 0;
#endif
}

static inline void set_floating_point_control(uint32_t control)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)control));
#endif
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits without sleeping until a word equals a value, or until it does not, for SPIN_NS at most. Returns whether it came
 * to that.
 *
 * A sleeping thread answers after some 50 microseconds, a spinning one at once. It offers its processor to others every
 * few microseconds: other pools (OpenBLAS's) spin as well, and on a busy machine the thread that it waits for may be
 * one that waits for a processor. */
static int spin(_Atomic uint64_t *word, uint64_t value, int equal)
{
    uint64_t end = nanoseconds() + SPIN_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if ((atomic_load(word) == value) == equal)
                return 1;
            pause_briefly();
        }
        sched_yield();
    } while (nanoseconds() < end);
    return 0;
}

/* ---- a job ---- */

/* Returns whether there was a chunk left, and its number. The caller takes chunks from the front and helpers from the
 * back, so that in a sequence of kernels over the same memory, a thread mostly finds its part in its own cache.
 *
 * Every other job runs through the caller's part and through the helpers' part backwards. What a kernel wrote last is
 * still cached, and the next kernel begins with it. In the same order as before, it would begin with what was displaced
 * first, and find nothing. */
static int take(job_t *job, int helper, uint64_t *chunk)
{
    uint64_t next = atomic_fetch_add_explicit(&job->next, helper ? (uint64_t)1 << 32 : 1, memory_order_relaxed);
    uint64_t front = next & UINT32_MAX, back = next >> 32;
    uint64_t place = helper ? job->chunks - 1 - back : front;
    *chunk = !job->backwards ? place : place < job->own ? job->own - 1 - place : job->chunks - 1 + job->own - place;
    return front + back < job->chunks;
}

/* Whether a worker may run in addition to the callers: together they are no more than `limit`. */
static int may_help(uint32_t index)
{
    return index + atomic_load_explicit(&callers, memory_order_relaxed) <=
           atomic_load_explicit(&limit, memory_order_relaxed);
}

/* Runs chunks until none is left, which closes the job, or until the worker must make room for another caller. */
static void work(job_t *job, uint32_t index)
{
    uint64_t size = job->total / job->chunks, longer = job->total % job->chunks, chunk;
    crash_set_kernel(job->name);
    while (!index || may_help(index)) {
        if (!take(job, index != 0, &chunk)) {
            atomic_fetch_or(&job->state, CLOSED);
            break;
        }
        uint64_t first = chunk * size + (chunk < longer ? chunk : longer);
        job->function(job->slots, first, first + size + (chunk < longer), job->total);
    }
    crash_set_kernel(NULL);
}

static int join(job_t *job, uint32_t index)
{
    uint64_t state = atomic_load_explicit(&job->state, memory_order_acquire);
    while (!(state & CLOSED) && (state & INSIDE) < HELPERS(state) && may_help(index))
        if (atomic_compare_exchange_weak_explicit(&job->state, &state, state + 1, memory_order_acquire,
                                                  memory_order_acquire))
            return 1;
    return 0;
}

/* The last access to the job may come after its caller's return: jobs are never freed. */
static void leave(job_t *job)
{
    uint64_t state = atomic_fetch_sub(&job->state, 1);
    if ((state & CLOSED) && (state & INSIDE) == 1 && atomic_load(&job->waiting)) {
        pthread_mutex_lock(&job->mutex);
        pthread_cond_broadcast(&job->done);
        pthread_mutex_unlock(&job->mutex);
    }
}

/* Waits until no helper is inside a job that is closed. */
static void finish(job_t *job)
{
    uint64_t empty = atomic_load(&job->state) & ~INSIDE;
    if (spin(&job->state, empty, 1))
        return;
    pthread_mutex_lock(&job->mutex);
    atomic_store(&job->waiting, 1);
    while (atomic_load(&job->state) != empty)
        pthread_cond_wait(&job->done, &job->mutex);
    atomic_store(&job->waiting, 0);
    pthread_mutex_unlock(&job->mutex);
}

/* ---- the workers ---- */

/* Wakes at most two of the first `number` workers, of those that may help. The caller and each helper that joins do
 * this, so that waking many takes logarithmic time. */
static void wake_two(uint64_t number)
{
    int woken = 0;
    for (uint32_t i = 1; i <= number && woken < 2 && may_help(i); i++) {
        worker_t *worker = &workers[i];
        if (!atomic_load(&worker->asleep))
            continue;
        pthread_mutex_lock(&worker->mutex);
        if (atomic_exchange(&worker->asleep, 0)) {
            woken++;
            pthread_cond_signal(&worker->wake);
        }
        pthread_mutex_unlock(&worker->mutex);
    }
}

static int help(uint32_t index)
{
    int helped = 0;
    for (int i = 0; i < JOBS; i++) {
        if (!join(&jobs[i], index))
            continue;
        wake_two(HELPERS(atomic_load(&jobs[i].state)));
        uint32_t own = floating_point_control();
        if (own != jobs[i].control)
            set_floating_point_control(jobs[i].control);
        work(&jobs[i], index);
        leave(&jobs[i]);
        helped = 1;
    }
    return helped;
}

/* Waits for a job after the first `seen`. */
static void wait_for_job(worker_t *worker, uint64_t seen)
{
    if (spin(&posted, seen, 0))
        return;
    pthread_mutex_lock(&worker->mutex);
    atomic_store(&worker->asleep, 1);
    /* A caller counts its job and then reads which threads sleep, in this order, so one of both sees the other. */
    while (atomic_load(&worker->asleep) && atomic_load(&posted) == seen)
        pthread_cond_wait(&worker->wake, &worker->mutex);
    atomic_store(&worker->asleep, 0);
    pthread_mutex_unlock(&worker->mutex);
}

static void *worker_main(void *argument)
{
    uint32_t index = (uint32_t)(uintptr_t)argument;
    for (;;) {
        uint64_t seen = atomic_load(&posted);
        if (!help(index))
            wait_for_job(&workers[index], seen);
    }
    return NULL;
}

/* Starts a thread that handles no signals but its own faults: handlers belong to the threads of the program. */
static int start_worker(uint32_t index)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    atomic_store(&workers[index].asleep, 0);
    pthread_mutex_init(&workers[index].mutex, NULL);
    pthread_cond_init(&workers[index].wake, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, worker_main, (void *)(uintptr_t)index);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Starts workers until there are `number`, or fewer if the system refuses. */
static void start_workers(uint32_t number)
{
    pthread_mutex_lock(&starting);
    uint32_t index = atomic_load(&started);
    while (index < number && !start_worker(index + 1))
        atomic_store(&started, ++index);
    pthread_mutex_unlock(&starting);
}

/* ---- calls ---- */

static void run_alone(kernel_function function, const char *name, const uint64_t *slots, uint64_t total)
{
    crash_set_kernel(name);
    function(slots, 0, total, total);
    crash_set_kernel(NULL);
}

static job_t *take_job(void)
{
    for (int i = 0; i < JOBS; i++)
        if (!atomic_load_explicit(&jobs[i].taken, memory_order_relaxed) && !atomic_exchange(&jobs[i].taken, 1))
            return &jobs[i];
    return NULL;
}

/* Tells workers that there is something new to do. */
static void announce(uint64_t helpers)
{
    atomic_fetch_add(&posted, 1);
    wake_two(helpers);
}

static void run_with_helpers(job_t *job, uint32_t threads)
{
    uint32_t helpers = threads - 1 < job->total - 1 ? threads - 1 : (uint32_t)(job->total - 1);
    uint64_t chunks = (uint64_t)threads * CHUNKS_PER_THREAD;
    uint64_t number = NUMBER(atomic_load_explicit(&job->state, memory_order_relaxed)) + 1;
    if (atomic_load(&started) < helpers)
        start_workers(helpers);
    job->chunks = chunks < job->total ? chunks : job->total;
    job->own = job->chunks / (helpers + 1);
    job->backwards = number & 1;
    job->control = floating_point_control();
    atomic_store_explicit(&job->next, 0, memory_order_relaxed);
    atomic_store_explicit(&job->state, number << 32 | helpers << 16, memory_order_release);
    announce(helpers);
    work(job, 0);
    finish(job);
}

void pool_run(kernel_function function, const char *name, const uint64_t *slots, uint64_t total)
{
    uint32_t threads = atomic_load_explicit(&limit, memory_order_relaxed);
    if (total < 2 || threads < 2) {
        if (total)
            run_alone(function, name, slots, total);
        return;
    }
    atomic_fetch_add(&callers, 1);
    job_t *job = take_job();
    if (job) {
        job->function = function;
        job->name = name;
        job->slots = slots;
        job->total = total;
        run_with_helpers(job, threads);
        atomic_store_explicit(&job->taken, 0, memory_order_release);
    } else {
        run_alone(function, name, slots, total);
    }
    if (atomic_fetch_sub(&callers, 1) > 1)
        announce(threads - 1); /* one more worker may help the other callers */
}

void pool_set_num_threads(unsigned number)
{
    atomic_store(&limit, number < POOL_MAX_THREADS ? number : POOL_MAX_THREADS);
}

unsigned pool_num_threads(void)
{
    return atomic_load(&limit);
}

void pool_reset(void)
{
    for (uint32_t i = 1; i <= atomic_load(&started); i++)
        atomic_store(&workers[i].asleep, 0);
    atomic_store(&started, 0);
    atomic_store(&callers, 0);
    pthread_mutex_init(&starting, NULL);
    for (int i = 0; i < JOBS; i++) {
        atomic_store(&jobs[i].state, CLOSED);
        atomic_store(&jobs[i].taken, 0);
        atomic_store(&jobs[i].waiting, 0);
        pthread_mutex_init(&jobs[i].mutex, NULL);
        pthread_cond_init(&jobs[i].done, NULL);
    }
}

/* Names the kernel in which the process crashes.
 *
 * A fault in a kernel otherwise ends the process with "Segmentation fault" and no word about where. The handler writes
 * one line and passes the signal on to whatever was installed before: faulthandler's traceback and core dumps remain. */
#include "crash.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* The kernel that a thread runs. Not _Thread_local: the first use in a thread of such a variable of a loaded library may
 * allocate memory, which a signal handler must not, and it would tie the file to one C library. */
static pthread_key_t running;
static atomic_bool usable; /* there are 1024 keys in a process */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { SIGNALS = sizeof signals / sizeof *signals };
static struct sigaction previous[SIGNALS];

/* Only functions that are safe in a signal handler: no stdio. */
static void write_text(const char *text)
{
    size_t length = strlen(text);
    while (length) {
        ssize_t written = write(STDERR_FILENO, text, length);
        if (written <= 0)
            return;
        text += written;
        length -= (size_t)written;
    }
}

/* Runs the handler that was installed before ours. */
static void pass_on(const struct sigaction *action, int number, siginfo_t *info, void *context)
{
    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        action->sa_handler(number);
    } else {
        /* After the return a fault happens again, now without us. A signal that was sent must be sent again. */
        sigaction(number, action, NULL);
        if (info->si_code <= 0)
            raise(number);
    }
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    const char *name = pthread_getspecific(running);
    if (name) {
        crash_set_kernel(NULL); /* the handlers after ours may come back here */
        write_text("candelabra: crash in kernel ");
        write_text(name);
        write_text("\n");
    }
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i] == number)
            pass_on(&previous[i], number, info, context);
}

void crash_set_kernel(const char *name)
{
    if (atomic_load_explicit(&usable, memory_order_acquire))
        pthread_setspecific(running, name);
}

void crash_install(void)
{
    static atomic_flag installed = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&installed) || pthread_key_create(&running, NULL))
        return;
    atomic_store_explicit(&usable, 1, memory_order_release);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        /* Read first: ours may run as soon as it is installed. */
        sigaction(signals[i], NULL, &previous[i]);
        sigaction(signals[i], &action, NULL);
    }
}

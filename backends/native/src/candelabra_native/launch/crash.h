/* Names the kernel in which the process crashes. */
#ifndef CANDELABRA_CRASH_H
#define CANDELABRA_CRASH_H

/* The name of the kernel that this thread runs, or NULL. */
extern _Thread_local const char *volatile crash_kernel;

/* Installs the handler at its first call. Handlers that were installed before still run, after ours. */
void crash_install(void);

#endif

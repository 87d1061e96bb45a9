/* Names the kernel in which the process crashes. */
#ifndef CANDELABRA_CRASH_H
#define CANDELABRA_CRASH_H

/* Installs the handler at the first call. Handlers that were installed before still run, after ours. */
void crash_install(void);

/* Says which kernel this thread runs; NULL for none. */
void crash_set_kernel(const char *name);

#endif

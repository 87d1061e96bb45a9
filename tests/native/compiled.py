"""Kernels in C for the tests of launches and threads, compiled when they are first needed."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from candelabra_native.launch import kernel
from candelabra_native.launch.build import host_target

SOURCE = r"""
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() __asm__ volatile("yield")
#endif

#define KERNEL(name) void name(const uint64_t *slots, uint64_t first, uint64_t last, uint64_t total)
#define EACH(i) for (uint64_t i = first; i < last; i++)

/* The second slot as it is, into an array of uint64. */
KERNEL(store) { *(uint64_t *)slots[0] = slots[1]; }

/* How often each work-item runs, and the total that it sees. */
KERNEL(visit) { EACH(i) { ((uint8_t *)slots[0])[i]++; ((uint64_t *)slots[1])[i] = total; } }

/* The number of calls, the lowest first and the highest last: nothing per work-item. */
KERNEL(ranges)
{
    _Atomic uint64_t *seen = (_Atomic uint64_t *)slots[0];
    atomic_fetch_add(&seen[0], 1);
    atomic_fetch_add(&seen[1], last - first);
    if (last == total) seen[2] = last;
}

/* When each work-item runs: slots[1] counts. */
KERNEL(order) { EACH(i) ((uint64_t *)slots[0])[i] = atomic_fetch_add((_Atomic uint64_t *)slots[1], 1); }

/* A sum of float32 per work-item, of slots[2] numbers: its bits depend on the order of the additions. */
KERNEL(sums)
{
    EACH(i) {
        const float *x = (const float *)slots[0] + i * slots[2];
        float sum = 0;
        for (uint64_t j = 0; j < slots[2]; j++) sum += x[j] * 1.1f;
        ((float *)slots[1])[i] = sum;
    }
}

/* Each work-item waits until slots[1] of them are running at the same time. Gives up after a while. */
KERNEL(meet)
{
    _Atomic uint64_t *present = (_Atomic uint64_t *)slots[0];
    EACH(i) {
        atomic_fetch_add(present, 1);
        for (uint64_t spins = 0; *present < slots[1] && spins < 200000000; spins++) PAUSE();
        ((uint64_t *)slots[2])[i] = *present >= slots[1];
    }
}

/* Says that it runs, and runs until it is told to stop. */
KERNEL(hold)
{
    _Atomic uint64_t *flags = (_Atomic uint64_t *)slots[0];
    flags[0] = 1;
    while (!flags[1]) PAUSE();
}

/* The thread of each work-item, which takes slots[1] rounds. */
KERNEL(threads)
{
    EACH(i) {
        ((uint64_t *)slots[0])[i] = (uint64_t)pthread_self();
        for (volatile uint64_t j = 0; j < slots[1]; j++) ;
    }
}

/* Which signals the thread of each work-item blocks: one bit per signal. */
KERNEL(blocked)
{
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, 0, &set);
    EACH(i) {
        uint64_t bits = 0;
        for (int s = 1; s < 32; s++) bits |= (uint64_t)sigismember(&set, s) << s;
        ((uint64_t *)slots[0])[i] = bits;
        for (volatile uint64_t j = 0; j < 100000; j++) ;
    }
}

/* Half of the smallest normal number, for each work-item: 0 where denormal numbers are flushed. */
KERNEL(denormal)
{
    EACH(i) {
        volatile float x = 1.17549435e-38f;
        ((float *)slots[0])[i] = x * 0.5f;
        for (volatile uint64_t j = 0; j < 100000; j++) ;
    }
}
void flush_denormals(int on)
{
#if defined(__x86_64__)
    _mm_setcsr(on ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040);
#else
    uint64_t control, bit = 1 << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control = on ? control | bit : control & ~bit;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

/* Crashes in the last work-item: by a null pointer, a division, an instruction, or a signal that is sent. */
KERNEL(crash)
{
    EACH(i) {
        for (volatile uint64_t j = 0; j < 100000; j++) ;
        if (i + 1 < total) continue;
        if (slots[0] == 0) *(volatile int *)8 = 1;
        if (slots[0] == 1) { volatile int zero = 0; zero = 7 / zero; }
        if (slots[0] == 2) __builtin_trap();
        if (slots[0] == 3) raise(SIGBUS);
    }
}
KERNEL(nothing) { }
"""


@cache
def library() -> Path:
    """Compile the kernels, once per process, and return the library's path."""
    folder = Path(tempfile.mkdtemp(prefix="candelabra-kernels-"))
    source, target = folder / "kernels.c", folder / "kernels.so"
    source.write_text(SOURCE, encoding="utf-8")
    # The target of the extension module, for which the compiler has built its own libraries already.
    command = [sys.executable, "-m", "ziglang", "cc", "-target", host_target(), "-O1", "-w", "-fno-sanitize=undefined"]
    subprocess.run([*command, "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
    return target


@cache
def _loaded(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path))


def function(name: str) -> int:
    """Return the address of a function of the library; ``CANDELABRA_TEST_KERNELS`` names it in subprocesses."""
    path = os.environ.get("CANDELABRA_TEST_KERNELS")
    loaded = _loaded(Path(path) if path else library())
    return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value or 0


def launch(name: str, types: str) -> Callable[..., None]:
    """Return the launch of a kernel."""
    return kernel(function(name), types, name)


def run(program: str, *, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own, where ``launch`` and NumPy are imported."""
    head = """
import os, sys, time
import numpy as np
import candelabra_native.launch as cl
from tests.native.compiled import function, launch
"""
    surroundings = os.environ | {"CANDELABRA_TEST_KERNELS": str(library()), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", head + program],
        cwd=Path(__file__).parents[2],
        env=surroundings,
        capture_output=True,
        text=True,
        check=check,
        timeout=timeout,
    )

"""The number of threads of native kernels: that of ``candelabra.set_num_threads``."""

from __future__ import annotations

from functools import cache

from candelabra.backend import follow_num_threads

from candelabra_native.launch import set_num_threads


@cache
def connect() -> None:
    """Let the thread pool follow ``candelabra.set_num_threads``, from the default number on.

    The default regards the processors that the process may use, the quota of its control group, and
    ``OMP_NUM_THREADS``. No thread starts before a kernel needs it.
    """
    follow_num_threads(set_num_threads)

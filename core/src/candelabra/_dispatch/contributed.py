"""Modes that choose between the kernels of a device's owner and those that other distributions contribute."""

from __future__ import annotations

from candelabra._autograd.modes import Mode
from candelabra._keys import EVERY_SIZE, KERNEL_MODES, OWN_KERNELS, state, switch


class KernelMode(Mode):
    """A mode that lasts as long as the block, also for the backward passes that are started in it."""

    follows = False

    def __exit__(self, *error: object) -> None:
        before = self._before.pop()
        switch(state.bits & ~KERNEL_MODES | before & KERNEL_MODES)


class own_kernels(KernelMode):
    """A context manager and decorator: the kernels of each device's owner serve this thread's calls.

    Use it to compare contributed kernels with those of the device's owner, or to find out whether one of them causes an
    error. It applies to whatever the calls inside the block call in turn: composites, the fallback, optimizers. The
    backward pass runs under the mode that is active when ``backward()`` is called, whatever it was in the forward pass.
    Kernels that :func:`register_kernel` has registered still serve.

    The environment variable ``CANDELABRA_CONTRIBUTIONS=0`` switches contributions off for a whole process.
    """

    def _bits(self, before: int) -> int:
        return before | OWN_KERNELS


class serve_every_size(KernelMode):
    """A context manager and decorator: contributed kernels serve this thread's calls of every size.

    Contributed kernels usually leave small calls to the owner's. The conformance suite, whose samples are small, runs
    them in this mode: the hook ``candelabra_kernels`` is called again, with ``every_size=True``, and the kernels
    that it returns serve. :class:`own_kernels` takes precedence.
    """

    def _bits(self, before: int) -> int:
        return before | EVERY_SIZE

"""The mode in which the kernels of a device's owner serve, and not those that other distributions contribute."""

from __future__ import annotations

from candelabra._autograd.modes import Mode
from candelabra._keys import OWN_KERNELS, state, switch


class own_kernels(Mode):
    """A context manager and decorator: the kernels of each device's owner serve this thread's calls.

    Use it to compare contributed kernels with those of the device's owner, or to find out whether one of them causes an
    error. It applies to whatever the calls inside the block call in turn: composites, the fallback, optimizers. The
    backward pass runs under the mode that is active when ``backward()`` is called, whatever it was in the forward pass.
    Kernels that :func:`register_kernel` has registered still serve.

    The environment variable ``CANDELABRA_CONTRIBUTIONS=0`` switches contributions off for a whole process.
    """

    def _bits(self, before: int) -> int:
        return before | OWN_KERNELS

    def __exit__(self, *error: object) -> None:
        before = self._before.pop()
        switch(state.bits & ~OWN_KERNELS | before & OWN_KERNELS)

"""The languages of kernels.

The text of a kernel is the same in all languages: C with the following words, which the preamble of a dialect defines.
Another C-like language needs another :class:`Dialect`.

========================================  ==============================================================
``i8`` … ``u64``, ``f32``, ``f64``        numbers, of the same size on every device
``c64``, ``c128``                         complex numbers with parts ``.x`` and ``.y``; created by ``C64(re, im)``
``KERNEL``, ``FUNCTION``                  the qualifiers of an entry point and of a library function
``GLOBAL``, ``LOCAL``, ``CONSTANT``       memory of the device, memory of a work-group, tables in the program
``GLOBAL_ID``, ``LOCAL_ID``, ``GROUP_ID`` ids of the work-item along dim 0 (along dims 1 and 2: ``GROUP_ID_1`` …)
``GROUP_SIZE``, ``GLOBAL_SIZE``           the numbers of work-items in the group and in the launch
``BARRIER``                               a barrier of the work-group, which also orders its memory accesses
``REQUIRED_GROUP(n)``                     between ``KERNEL`` and ``void``: the work-group size at compile time
``BITS_F32(u)``, ``BITS_U32(f)``          an integer's bits as a float, and vice versa (``F64``, ``U64`` too)
``MULTIPLY_HIGH(a, b)``                   the upper 64 bits of a product of two ``u64``. A dialect in which it is one
                                          instruction also defines WIDE_MULTIPLY
``SQRT_F32(x)``, ``DIVIDE_F32(a, b)``     correctly rounded (``F64`` too)
``FMA_F32(a, b, c)``                      fused multiply-add, if the device has it (``F64`` too). A dialect in which
                                          x * 2**k, rounded once, is one instruction also defines LDEXP_F32(x, k),
                                          LDEXP_F64, and LDEXP_X8 and LDEXP_X16 with the bits of k as u32
``COMPARE_AND_SWAP(address, old, new)``   atomic compare and swap of a ``GLOBAL u32``; returns the old value
``ATOMIC_ADD_U32(address, value)``        atomic addition to a ``GLOBAL u32``; returns the old value
``UNROLL``                                before a loop with a constant number of iterations
``INDEPENDENT``                           before a loop without dependencies between iterations. Some drivers vectorise
                                          no other loop, and only loops of the form ``for (int j = 0; j < n; ++j)`` over
                                          pointers to the first element
``INDEPENDENT_FEW``                       the same, for fewer iterations than a vector has lanes
``f32x8`` … ``u64x8``                     vectors of eight, in the forms for ``serial`` devices: not in all dialects
``LOAD_X8(f32, p)``                       a vector load from device memory, aligned like one element
``STORE_X8(f32, p, v)``                   a vector store to device memory
``PRIVATE_X8(f32, p)``                    a vector in an array of the work-item, to read or to write
``AS_F32X8(v)``, ``BITS_F32X8(v)``        a vector converted to another type, the bits of a vector as another type
``f64x4``                                 vectors of four, with ``LOAD_X4`` and ``PRIVATE_X4``
``f32x16``, ``u32x16``                    vectors of sixteen, with ``LOAD_X16``, ``STORE_X16``, ``PRIVATE_X16``,
                                          ``BITS_F32X16`` and ``BITS_U32X16``, in the dialects of engines whose
                                          ``Traits.lanes`` are 16
``PREFETCH(address)``                     loads the cache line of an address, which may be beyond the buffer, ahead of
                                          its use, if the dialect can
``CACHE_LINE``                            a type of 64 bytes
``STORE_NONTEMPORAL(address, line)``      a store to an aligned address that bypasses the caches, if possible
``BYTES_16``, ``BYTES_8``                 types of these sizes, which a lane loads and stores at once: not in C
``SHUFFLE(value, lane)``                  the value of another lane of the warp, in dialects with :attr:`Dialect.warp`.
                                          All lanes of the warp call it
========================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """A language of kernels. ``preamble`` defines the words above; the options are those of its compiler."""

    name: str
    preamble: str
    float64: str = ""
    """The part of the preamble for devices with float64."""
    exact: str = ""
    """A pragma at the start of programs that must not contract ``a * b + c``."""
    exact_options: Sequence[str] = ()
    """The compiler options of such programs: all except those with polynomials and matrix products."""
    options: Sequence[str] = ()
    """The compiler options of every program."""
    rounding: Sequence[str] = ()
    """The compiler options for correctly rounded division and square root, for devices that support them."""
    processor: Sequence[str] = ()
    """The compiler options for devices that are the host's processor."""
    declaring: Sequence[str] = ()
    """The options with which Clang reads no header, because the preamble declares the functions that kernels use."""
    warp: int = 1
    """The adjacent work-items of a group that SHUFFLE exchanges values between, or 1 without SHUFFLE."""
    rounds_up: bool = False
    """Whether launches consist of whole work-groups. A source without ``group`` then gets the number of work-items as
    its last argument, and work-items beyond that number return."""
    ranges: bool = False
    """Whether the host calls a kernel as a function, for a range of work-items: ``void name(slots, first, last,
    total)``. ``slots`` are the arguments, in 8 bytes each."""

"""The number of counters that a draw consumes: the only rule of the random-number specification that the core needs.

A generator's state is ``(seed, offset)``. A draw reads the Philox counters ``offset + 1 … offset + used`` and advances
the offset to ``offset + used``. A backend gets ``(seed, offset)`` and computes the same ``used``. One counter yields
256 random bits: ``used = ceil(n / k)`` with ``k = 256 / (bits per value)``, independently of the launch shape.

Specification: ``docs/notes/0001-random-numbers.md``.
"""

from __future__ import annotations

__all__ = ["COUNTER_BITS", "bits_per_value", "counters_used"]

COUNTER_BITS = 256
"""Random bits that one Philox 4x64 counter yields: four words of 64."""

_REAL = {"float16": 32, "bfloat16": 32, "float32": 32, "float64": 64}
_COMPLEX = {"complex64": 64, "complex128": 128}
_BY_DTYPE: dict[str, dict[str, int]] = {
    "uniform": _REAL | _COMPLEX,
    "normal": _REAL | _COMPLEX,
    "exponential": _REAL,
    "bernoulli": _REAL,
}
_ANY_DTYPE = {"permutation": 64, "multinomial": 64, "poisson": 64, "binomial": 64, "gamma": 64}


def bits_per_value(kind: str, dtype: str, span: int = 1) -> int:
    """Return the number of random bits for one value of ``kind``: 32, 64 or 128.

    ``dtype`` is the name of the result's dtype (for ``"bernoulli"``, that of the probability). It is ignored for
    ``"integers"``, ``"permutation"``, ``"multinomial"``, ``"poisson"``, ``"binomial"`` and ``"gamma"``. ``span`` is
    ``high - low``, for ``"integers"`` only.

    Raises ``ValueError`` for a kind, a dtype or a span that the specification does not define.
    """
    if kind == "integers":
        if not 1 <= span <= 1 << 64:
            raise ValueError(f"integers: expected 1 <= high - low <= 2**64, got {span}")
        return 64 if span <= 1 << 32 else 128
    if kind in _ANY_DTYPE:
        return _ANY_DTYPE[kind]
    if kind not in _BY_DTYPE:
        kinds = ", ".join(sorted([*_BY_DTYPE, *_ANY_DTYPE, "integers"]))
        raise ValueError(f"random kind {kind!r} is not defined; expected one of {kinds}")
    if dtype not in _BY_DTYPE[kind]:
        raise ValueError(f"{kind}: dtype {dtype} is not supported; expected one of {', '.join(_BY_DTYPE[kind])}")
    return _BY_DTYPE[kind][dtype]


def counters_used(kind: str, n: int, dtype: str, span: int = 1) -> int:
    """Return the number of counters for ``n`` values, 0 for ``n = 0``. Arguments and errors as in `bits_per_value`.

    >>> counters_used("uniform", 9, "float32"), counters_used("normal", 9, "complex128")
    (2, 5)
    """
    if n < 0:
        raise ValueError(f"{kind}: expected n >= 0, got {n}")
    return -(-n * bits_per_value(kind, dtype, span) // COUNTER_BITS)

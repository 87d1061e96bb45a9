"""The first calls on a device, each compared with the reference: ``python tools/cuda_first.py cuda:0``.

It prints a line for each result. Exit status: 0 if all are right, 1 if some are wrong, 2 if the first one is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import candelabra as cd
from candelabra import Tensor
from candelabra._plugins.registry import reference_device


def matrix(device: str) -> Tensor:
    """Return a well-conditioned matrix of known numbers."""
    return (cd.arange(64, dtype=cd.float32) % 7).reshape(8, 8).to(device) + 8 * cd.eye(8, device=device)


def gradient(device: str) -> Tensor:
    """Return the gradient of a sum of a function of a product."""
    x = matrix(device).requires_grad_()
    (x @ x).tanh().sum().backward()
    assert x.grad is not None
    return x.grad


CALLS: dict[str, Callable[[str], Tensor]] = {
    "a kernel in C": lambda device: cd.arange(1000, dtype=cd.float32, device=device) * 2 + 1,
    "a reduction": lambda device: cd.arange(100_000, dtype=cd.float64, device=device).sum(),
    "a product of matrices": lambda device: matrix(device) @ matrix(device),
    "a product in bfloat16": lambda device: matrix(device).bfloat16() @ matrix(device).bfloat16(),
    "a gradient": gradient,
    "random numbers": lambda device: cd.rand(9, generator=cd.Generator(device).manual_seed(7), device=device),
    "a sort": lambda device: (cd.arange(1000, device=device) * 7919 % 1000).sort().values,
    "a Fourier transform": lambda device: cd.fft.rfft(matrix(device)).abs(),
    "a linear system": lambda device: cd.linalg.solve(matrix(device), cd.eye(8, device=device)),
}
"""The calls, beginning with those without requirements; the last ones need cuBLAS, cuFFT and cuSOLVER."""


def main(device: str) -> int:
    """Run the calls and return the exit status."""
    reference = str(reference_device())
    wrong = []
    for name, call in CALLS.items():
        start = time.perf_counter()
        try:
            got, want = call(device).to(reference), call(reference)
            tolerance = 2e-2 if want.dtype is cd.bfloat16 else 1e-4
            right = cd.allclose(got, want, rtol=tolerance, atol=tolerance)
            said = "right" if right else f"wrong: {got.flatten()[:4].tolist()} for {want.flatten()[:4].tolist()}"
        except Exception as error:
            right, said = False, f"wrong: {type(error).__name__}: {error}"
        if not right:
            wrong.append(name)
        print(f"{name}: {said} ({time.perf_counter() - start:.2f} s)", flush=True)
    return 2 if next(iter(CALLS)) in wrong else min(len(wrong), 1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))

"""Comparison of two results: of their structure, and of their values up to PyTorch's own errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import torch
from oracle_peer import Missing, each, leaves, to_torch

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16", "int64", "int32", "int16", "int8",
          "uint8", "bool")  # fmt: skip
"""The dtypes of both libraries, the most informative first."""
KNOWN = frozenset(getattr(torch, name) for name in (*DTYPES, "uint16", "uint32", "uint64"))
WIDE = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64,
        torch.complex64: torch.complex128}  # fmt: skip


class Slow(Exception):
    """The error if the time of an operator is over."""


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Return the result of a call, or its error."""
    try:
        return call(), None
    except (Slow, Missing):
        raise
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, Slow):  # PyTorch's comparison wraps exceptions
            raise Slow from None
        return None, error


def words(error: Exception) -> str:
    """Return an error on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def described(sample: Any) -> str:
    """Return a sample on one line."""
    return " ".join(str(sample.summary()).split())[:300]


def structure_differs(got: Any, expected: Any) -> str | None:
    """Compare types, dtypes, shapes, lengths, names of fields, and plain numbers."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, cd.Tensor):
            return f"gives {type(got).__name__}, not a tensor"
        dtype, shape = str(got.dtype).rpartition(".")[2], tuple(got.shape)
        if dtype != str(expected.dtype).rpartition(".")[2]:
            return f"dtype {dtype}, PyTorch's is {str(expected.dtype).rpartition('.')[2]}"
        return None if shape == tuple(expected.shape) else f"shape {shape}, PyTorch's is {tuple(expected.shape)}"
    if isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(expected):
            return f"gives {type(got).__name__}, PyTorch {type(expected).__name__} of {len(expected)}"
        for name in [n for n in dir(expected) if n[0] != "_" and n not in dir(tuple) and not n.startswith("n_")]:
            if isinstance(getattr(expected, name), torch.Tensor) and not hasattr(got, name):
                return f"result has no field {name}"
        return next(filter(None, map(structure_differs, got, expected)), None)
    if isinstance(expected, (float, complex)) and type(got) is type(expected):
        near = (
            got == expected
            or (got != got and expected != expected)
            or abs(got - expected) <= 1e-5 * abs(expected) + 1e-7
        )
        return None if near else f"gives {got}, PyTorch {expected}"
    got = to_torch(got)
    return None if type(got) is type(expected) and got == expected else f"gives {got!r}, PyTorch {expected!r}"


def torch_leaves(value: Any) -> list[torch.Tensor]:
    """Return all of PyTorch's tensors in a nest."""
    return leaves(value, torch.Tensor)


def values_differ(
    got: Any, expected: Any, reference: Callable[[], Any], source: torch.Tensor | None = None
) -> str | None:
    """Compare all tensors of two results of one structure; None stands for a gradient of zeros."""
    results, peer_results = leaves(got, cd.Tensor), leaves(expected, torch.Tensor)
    wide: Any = None
    for position, (tensor, standard) in enumerate(zip(results, peer_results)):
        actual, standard = to_torch(tensor), standard.detach().resolve_conj().resolve_neg()
        try:
            torch.testing.assert_close(actual, standard, equal_nan=True, check_stride=False)
        except RuntimeError as error:
            raise (Slow() if isinstance(error.__cause__, Slow) else error) from None
        except AssertionError as error:
            if source is not None and actual.dtype is torch.int64 and picks_equal(source, actual, standard):
                continue
            if actual.dtype in WIDE and actual.shape == standard.shape:
                wide = (attempt(reference)[0] or []) if wide is None else wide
                if position < len(wide) and as_near(actual, standard, wide[position].detach()):
                    continue
            return "values: " + " ".join(str(error).split())[:200]
    return None


def picks_equal(source: torch.Tensor, actual: torch.Tensor, standard: torch.Tensor) -> bool:
    """Return whether both indices, along any one dim, select equal elements."""
    for dim in range(source.ndim):
        keepers = (actual, standard) if actual.ndim == source.ndim else (actual.unsqueeze(dim), standard.unsqueeze(dim))
        picked, _ = attempt(lambda: [source.detach().gather(dim, index) for index in keepers])  # noqa: B023
        if picked and torch.equal(*(p.nan_to_num() for p in picked)):
            return True
    return False


def as_near(actual: torch.Tensor, standard: torch.Tensor, truth: torch.Tensor) -> bool:
    """Return whether ``actual`` has at most twice PyTorch's error, or is right where PyTorch has NaN."""
    truth = truth.resolve_conj().resolve_neg()
    if truth.shape != actual.shape:
        return False
    if not torch.equal(actual.isfinite(), standard.isfinite()):
        rounded = truth.to(actual.dtype)
        return torch.allclose(actual, rounded, rtol=4 * torch.finfo(actual.dtype).eps, atol=1e-5, equal_nan=True)
    finite = standard.isfinite() & truth.isfinite()
    near, far = ((t.to(truth.dtype) - truth)[finite].abs() for t in (standard, actual))
    scale = torch.finfo(actual.dtype).eps * truth[finite].abs()
    return bool((far <= 2 * near.max() + 4 * scale).all()) if far.numel() else True


def widened(value: Any) -> Any:
    """Return arguments in double precision, including a requested dtype."""
    if isinstance(value, dict):
        value = {k: WIDE.get(v, v) if isinstance(v, torch.dtype) else v for k, v in value.items()}
    return each(value, lambda t: t.detach().to(WIDE.get(t.dtype, t.dtype)).requires_grad_(t.requires_grad))

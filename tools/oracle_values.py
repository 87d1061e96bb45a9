"""Whether two results are alike: in structure, and in values up to what PyTorch itself gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import torch
from oracle_peer import Missing, each, leaves, to_torch

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16", "int64", "int32", "int16", "int8",
          "uint8", "bool")  # fmt: skip
"""The dtypes of both, the telling ones first."""
KNOWN = frozenset(getattr(torch, name) for name in (*DTYPES, "uint16", "uint32", "uint64"))
WIDE = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64,
        torch.complex64: torch.complex128}  # fmt: skip


class Slow(Exception):
    """The time of an operator is over."""


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The result of a call, or its error."""
    try:
        return call(), None
    except (Slow, Missing):
        raise
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, Slow):  # PyTorch's comparison wraps what it meets
            raise Slow from None
        return None, error


def words(error: Exception) -> str:
    """An error on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def described(sample: Any) -> str:
    """A sample on one line."""
    return " ".join(str(sample.summary()).split())[:300]


def structure_differs(got: Any, wanted: Any) -> str | None:
    """Compare types, dtypes, shapes, lengths, names of fields, and plain numbers."""
    if isinstance(wanted, torch.Tensor):
        if not isinstance(got, cd.Tensor):
            return f"gives {type(got).__name__}, not a tensor"
        dtype, shape = str(got.dtype).rpartition(".")[2], tuple(got.shape)
        if dtype != str(wanted.dtype).rpartition(".")[2]:
            return f"dtype {dtype}, PyTorch's is {str(wanted.dtype).rpartition('.')[2]}"
        return None if shape == tuple(wanted.shape) else f"shape {shape}, PyTorch's is {tuple(wanted.shape)}"
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return f"gives {type(got).__name__}, PyTorch {type(wanted).__name__} of {len(wanted)}"
        for name in [n for n in dir(wanted) if n[0] != "_" and n not in dir(tuple) and not n.startswith("n_")]:
            if isinstance(getattr(wanted, name), torch.Tensor) and not hasattr(got, name):
                return f"result has no field {name}"
        return next(filter(None, map(structure_differs, got, wanted)), None)
    if isinstance(wanted, (float, complex)) and type(got) is type(wanted):
        near = got == wanted or (got != got and wanted != wanted) or abs(got - wanted) <= 1e-5 * abs(wanted) + 1e-7
        return None if near else f"gives {got}, PyTorch {wanted}"
    got = to_torch(got)
    return None if type(got) is type(wanted) and got == wanted else f"gives {got!r}, PyTorch {wanted!r}"


def torch_leaves(value: Any) -> list[torch.Tensor]:
    """All of PyTorch's tensors in a nest."""
    return leaves(value, torch.Tensor)


def values_differ(
    got: Any, wanted: Any, reference: Callable[[], Any], source: torch.Tensor | None = None
) -> str | None:
    """Compare all tensors of two results of one structure; None stands for a gradient of zeros."""
    ours, theirs = leaves(got, cd.Tensor), leaves(wanted, torch.Tensor)
    wide: Any = None
    for position, (tensor, standard) in enumerate(zip(ours, theirs)):
        mine, standard = to_torch(tensor), standard.detach().resolve_conj().resolve_neg()
        try:
            torch.testing.assert_close(mine, standard, equal_nan=True, check_stride=False)
        except RuntimeError as error:
            raise (Slow() if isinstance(error.__cause__, Slow) else error) from None
        except AssertionError as error:
            if source is not None and mine.dtype is torch.int64 and picks_equal(source, mine, standard):
                continue
            if mine.dtype in WIDE and mine.shape == standard.shape:
                wide = (attempt(reference)[0] or []) if wide is None else wide
                if position < len(wide) and as_near(mine, standard, wide[position].detach()):
                    continue
            return "values: " + " ".join(str(error).split())[:200]
    return None


def picks_equal(source: torch.Tensor, mine: torch.Tensor, standard: torch.Tensor) -> bool:
    """Whether both indices, along some dim, pick equal elements."""
    for dim in range(source.ndim):
        keepers = (mine, standard) if mine.ndim == source.ndim else (mine.unsqueeze(dim), standard.unsqueeze(dim))
        picked, _ = attempt(lambda: [source.detach().gather(dim, index) for index in keepers])  # noqa: B023
        if picked and torch.equal(*(p.nan_to_num() for p in picked)):
            return True
    return False


def as_near(mine: torch.Tensor, standard: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether ``mine`` is at most twice as far from the truth as PyTorch, or right where PyTorch has no number."""
    truth = truth.resolve_conj().resolve_neg()
    if truth.shape != mine.shape:
        return False
    if not torch.equal(mine.isfinite(), standard.isfinite()):
        rounded = truth.to(mine.dtype)
        return torch.allclose(mine, rounded, rtol=4 * torch.finfo(mine.dtype).eps, atol=1e-5, equal_nan=True)
    finite = standard.isfinite() & truth.isfinite()
    near, far = ((t.to(truth.dtype) - truth)[finite].abs() for t in (standard, mine))
    scale = torch.finfo(mine.dtype).eps * truth[finite].abs()
    return bool((far <= 2 * near.max() + 4 * scale).all()) if far.numel() else True


def widened(value: Any) -> Any:
    """Arguments in double precision, a dtype that is asked for too."""
    if isinstance(value, dict):
        value = {k: WIDE.get(v, v) if isinstance(v, torch.dtype) else v for k, v in value.items()}
    return each(value, lambda t: t.detach().to(WIDE.get(t.dtype, t.dtype)).requires_grad_(t.requires_grad))

"""The functions of a namespace that each kernel uses, and those that a namespace lacks.

A test records the functions that each kernel calls and compares them with :data:`NEEDS`.
``docs/your-array-library.md`` has the same content as tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER

from candelabra_arrayapi.pointwise import RENAMED, SAME_NAME

_ADD_ROWS = "argsort max nonzero searchsorted"
_GATHERED_VIEW = "arange full reshape take zeros"

NEEDS: Final[dict[str, str]] = {
    # pointwise.py
    **{name: name for name in SAME_NAME}, **RENAMED,
    "floor": "floor isdtype", "ceil": "ceil isdtype", "trunc": "trunc isdtype",
    "exp2": "asarray pow", "pow": "isdtype pow where", "round": "asarray isdtype round",
    "trunc_divide": "floor_divide isdtype trunc where",
    "fmod": "copysign isdtype remainder where", "conj_physical": "asarray conj isdtype", "sign": "asarray isdtype sign",
    # floating.py
    "copysign": "copysign", "hypot": "hypot", "nextafter": "nextafter where", "signbit": "isdtype signbit",
    # reductions.py
    "sum": "astype isdtype sum", "prod": "astype isdtype prod", "amax": "max", "amin": "min", "all": "all astype",
    "any": "any astype", "argmax": "argmax astype", "argmin": "argmin astype",
    "cumsum": "astype cumulative_sum isdtype", "cumprod": "astype cumulative_prod isdtype", "matmul": "matmul",
    # shaping.py
    "full": "full", "arange": "arange astype", "linspace": "astype linspace", "eye": "eye", "cast": "astype real",
    "clone": "asarray reshape", "cat": "concat",
    "flip": "asarray flip", "tril": "asarray tril", "triu": "asarray triu",
    # network.py
    "conv": "concat full matmul reshape stack",
    "conv_input": "concat expand_dims flip full matmul permute_dims reshape stack zeros",
    "conv_weight": "astype concat full matmul matrix_transpose reshape stack sum",
    "max_pool": "arange asarray broadcast_to concat full iinfo int64 isdtype isnan reshape where",
    "max_pool_values": "asarray concat full iinfo isdtype maximum",
    "sum_pool": "asarray astype concat full",
    "sum_pool_adjoint": "asarray astype concat expand_dims full moveaxis reshape zeros",
    "embedding": "max min reshape take",
    # linalg.py
    "linalg_cholesky_ex": "any astype conj isdtype isfinite linalg.cholesky matrix_transpose tril triu",
    "linalg_inv_ex": "any asarray astype isfinite isnan linalg.inv where",
    "linalg_solve_ex": "any asarray astype broadcast_to isfinite isnan linalg.solve where",
    "linalg_qr": "linalg.qr", "linalg_svd": "linalg.svd", "linalg_svdvals": "linalg.svdvals",
    "linalg_eigh": "conj isdtype linalg.eigh matrix_transpose tril triu",
    "linalg_eigvalsh": "conj isdtype linalg.eigvalsh matrix_transpose tril triu",
    "linalg_eig": "astype isdtype linalg.eig", "linalg_eigvals": "astype isdtype linalg.eigvals",
    "linalg_det": "linalg.det", "linalg_slogdet": "linalg.slogdet",
    "linalg_vecdot": "any broadcast_arrays isdtype logical_and vecdot",
    # fft.py
    "fft_c2c": "fft.fftn fft.ifftn", "fft_r2c": "astype complex64 fft.fftn fft.rfftn result_type",
    "fft_c2r": "fft.irfftn",
    # indexing.py and rows.py
    "gather": "any arange empty reshape take zeros_like", "index_select": "any asarray reshape take",
    "scatter_add": f"any arange asarray astype isdtype reshape take zeros_like {_ADD_ROWS}",
    "scatter_src": "any arange argsort asarray astype nonzero reshape searchsorted take zeros_like",
    "index_add": f"any arange asarray astype isdtype moveaxis reshape take {_ADD_ROWS}",
    "index": "any asarray broadcast_arrays moveaxis permute_dims reshape take where",
    "index_put": "any arange asarray astype broadcast_arrays broadcast_to isdtype moveaxis permute_dims reshape take "
    f"where {_ADD_ROWS}",
    "nonzero": "astype nonzero stack zeros", "basic_index_adjoint": "zeros", "basic_index_scatter": "asarray",
    # sorting.py
    "sort": "argsort asarray astype flip isdtype isnan take_along_axis where",
    # views.py
    "detach": "", "alias": "", "basic_index": "", "transpose": "permute_dims", "t": "permute_dims",
    "permute": "permute_dims", "expand": "broadcast_to", "view": "reshape", "squeeze": "squeeze",
    "unsqueeze": "expand_dims",
}  # fmt: skip
"""The functions and constants of the standard that each kernel uses, separated by spaces."""

ASSIGNING: Final = frozenset(
    {"scatter_add", "scatter_src", "index_add", "index_put", "basic_index_adjoint", "basic_index_scatter"}
)
"""The operators whose kernels use ``assign``."""

ADDING: Final = frozenset({"scatter_add", "index_add"})
"""The operators whose kernels use ``accumulate`` in place of ``assign``, if the backend has it."""

SUPPLIED: Final = frozenset({"isdtype"})
"""The functions that :func:`snapshot` supplies if the namespace lacks them."""

_KINDS = {BOOL: "bool", INTEGER: "integral", FLOATING: "real floating", COMPLEX: "complex floating"}


class MissingFunctionsWarning(UserWarning):
    """A namespace lacks functions of the Array API standard, so some operators have no kernel."""


def needs(operator: str, assign: Iterable[str] = (), accumulate: bool = False) -> frozenset[str]:
    """Return the names that the kernel of an operator uses.

    A view operator that is not in :data:`NEEDS` is gathered from the flattened array. ``assign`` are the names that
    this function needs. ``accumulate``: there is such a function, and additions to rows need neither ``assign`` nor
    sorting.
    """
    found = frozenset(NEEDS.get(operator, _GATHERED_VIEW).split())
    if accumulate and operator in ADDING:
        return found - frozenset(_ADD_ROWS.split())
    return found | frozenset(assign) if operator in ASSIGNING else found


def names() -> list[str]:
    """Return every name of the standard that some kernel uses, in alphabetical order."""
    return sorted({name for operator in (*NEEDS, "as_strided") for name in needs(operator)})


def snapshot(xp: Any, dtypes: Mapping[Any, Any]) -> SimpleNamespace:
    """Return a namespace with the :func:`names` of ``xp``; those that it lacks are None, except :data:`SUPPLIED`."""
    held = SimpleNamespace(linalg=SimpleNamespace(), fft=SimpleNamespace())
    for name in names():
        extension, _, function = name.rpartition(".")
        source = getattr(xp, extension, None) if extension else xp
        setattr(getattr(held, extension) if extension else held, function, getattr(source, function, None))
    if held.isdtype is None:
        held.isdtype = _isdtype(dtypes)
    return held


def _isdtype(dtypes: Mapping[Any, Any]) -> Any:
    """Return the standard's ``isdtype`` for the dtypes of the backend."""
    known = [(held, _KINDS[d.category]) for d, held in dtypes.items()]

    def isdtype(dtype: Any, kind: str | tuple[str, ...]) -> bool:
        kinds = (kind,) if isinstance(kind, str) else kind
        return next((found in kinds for held, found in known if held == dtype), False)

    return isdtype


def missing_functions(
    xp: Any, operators: Iterable[str] | None = None, assign: Iterable[str] = (), accumulate: bool = False
) -> dict[str, list[str]]:
    """Return ``{operator: names that it needs and the namespace lacks}``, for operators that lack any.

    ``assign`` and ``accumulate`` are those of :func:`needs`.
    """
    held = snapshot(xp, {})
    lacking = {name for name in names() if name not in SUPPLIED and _get(held, name) is None}
    wanted = {
        name: sorted(needs(name, assign, accumulate) & lacking) for name in (NEEDS if operators is None else operators)
    }
    return {operator: found for operator, found in wanted.items() if found}


def warn(xp: Any, absent: Mapping[str, Collection[str]], known: Collection[str]) -> None:
    """Warn once about all operators without a kernel, except those that lack only ``known`` names."""
    unknown = {operator: found for operator, found in absent.items() if not set(found) <= set(known)}
    if not unknown:
        return
    lacking = sorted({name for found in unknown.values() for name in found})
    warnings.warn(
        f"namespace {getattr(xp, '__name__', xp)!r} lacks {', '.join(lacking)}. These operators get no kernel from "
        f"candelabra-arrayapi, so another body or the reference device serves them: {', '.join(sorted(unknown))}. Add "
        "the functions to the namespace, or pass their names as missing= to accept this",
        MissingFunctionsWarning,
        stacklevel=3,
    )


def _get(held: SimpleNamespace, name: str) -> Any:
    extension, _, function = name.rpartition(".")
    return getattr(getattr(held, extension) if extension else held, function)

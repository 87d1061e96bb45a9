"""Eigenvalues and eigenvectors.

With A V = V diag(L) (Boeddeker and others, On the computation of complex-valued gradients, 2017):

    gA = V⁻ᴴ [ diag(gL) + (Vᴴ gV - VᴴV diag(Re Vᴴ gV)) / conj(E) ] Vᴴ,        E_ij = l_j - l_i, 1 on the diagonal,

and for Hermitian A, where V⁻¹ = Vᴴ,  gA = V [ diag(gL) + (Vᴴ gV) / E ] Vᴴ. Eigenvectors are determined up to a phase: a
loss that depends on it has no derivative, and is refused.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.inversion import linalg_solve_ex
from candelabra._operators.linalg.requirements import check_square, factored, square, whole
from candelabra._operators.linalg.triangular import identity
from candelabra._operators.primitives.creation import uncast
from candelabra._records.callables import public
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import shape_of
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def _values(shape: Ints) -> Ints:
    return shape[:-1]


def _complex(d: dtype) -> dtype:
    return d.to_complex()


class Eigen(NamedTuple):
    """The eigenvalues, and the eigenvectors as columns, of length 1."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@operator(
    square("linalg.eigh", _values, whole),
    promote=factored("linalg.eigh"),
    result=(real_part, same),
    public=False,
    method=False,
)
def linalg_eigh(A: Tensor, UPLO: str) -> Eigen:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    ...


def _eigh_back(
    eigenvalues: Tensor,
    eigenvectors: Tensor,
    g_eigenvalues: Tensor | None = None,
    g_eigenvectors: Tensor | None = None,
) -> Tensor:
    L, V = eigenvalues, eigenvectors
    if g_eigenvectors is None:
        assert g_eigenvalues is not None  # one of the two has arrived
        return (V * g_eigenvalues.unsqueeze(-2)) @ V.mH
    turn = V.mH @ g_eigenvectors
    _check_phase("linalg_eigh_backward", turn)
    one = identity(L.shape[-1], L)
    inner = turn * (1 - one) / (L.unsqueeze(-2) - L.unsqueeze(-1) + one)
    if g_eigenvalues is not None:
        inner = inner + g_eigenvalues.diag_embed()
    return V @ inner @ V.mH


def _check_phase(name: str, turn: Tensor) -> None:
    if turn.is_complex() and bool((turn.detach().diagonal(0, -2, -1).imag.abs() > 1e-2).any()):
        raise RuntimeError(
            f"{name}: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The "
            "specified loss function depends on this quantity, so it is ill-defined."
        )


linalg_eigh.vjp(A=_eigh_back)


@operator(square("linalg.eigh", _values), promote=factored("linalg.eigh"), result=real_part, public=False, method=False)
def linalg_eigvalsh(A: Tensor, UPLO: str) -> Tensor:
    """The eigenvalues alone, ascending."""
    ...


def _eigvalsh_back(g: Tensor, A: Tensor, UPLO: str) -> Tensor:
    V = linalg_eigh(A, UPLO).eigenvectors
    return (V * g.unsqueeze(-2)) @ V.mH


linalg_eigvalsh.vjp(A=_eigvalsh_back)


def _triangle(UPLO: str) -> str:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@public(namespace="linalg")
@takes_tensors("linalg_eigh")
def eigh(input: Tensor, UPLO: str = "L", *, out: Any = None) -> Eigen:
    """``(eigenvalues, eigenvectors)`` of Hermitian matrices (…, n, n), eigenvalues real and ascending.

    The lower (``"L"``) or upper (``"U"``) triangle is read.
    """
    return delivered("linalg.eigh", linalg_eigh(input, _triangle(UPLO)), out)


@public(namespace="linalg")
@takes_tensors("linalg_eigvalsh")
def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices (…, n, n), real and ascending; see :func:`eigh`."""
    return delivered("linalg.eigvalsh", linalg_eigvalsh(input, _triangle(UPLO)), out)


@operator(
    square("linalg.eig", _values, whole),
    promote=factored("linalg.eig"),
    result=(_complex, _complex),
    public=False,
    method=False,
)
def linalg_eig(A: Tensor) -> Eigen:
    """Eigenvalues, in no order, and eigenvectors of square matrices; both are complex."""
    ...


def _eig_back(
    A_spec: Any,
    eigenvalues: Tensor,
    eigenvectors: Tensor,
    g_eigenvalues: Tensor | None = None,
    g_eigenvectors: Tensor | None = None,
) -> Tensor:
    L, V = eigenvalues, eigenvectors
    if g_eigenvectors is None:
        assert g_eigenvalues is not None  # one of the two has arrived
        inner = g_eigenvalues.diag_embed()
    else:
        turn = V.mH @ g_eigenvectors
        _check_phase("linalg_eig_backward", turn)
        one = identity(L.shape[-1], L)
        scale = turn.diagonal(0, -2, -1).real.unsqueeze(-2)
        # Where two eigenvalues meet the quotient is infinite; on the diagonal it is replaced by gL.
        inner = (turn - V.mH @ (V * scale)) * (1 - one) / (L.unsqueeze(-2) - L.unsqueeze(-1) + one).conj()
        if g_eigenvalues is not None:
            inner = inner + g_eigenvalues.diag_embed()
    return uncast(linalg_solve_ex(V.mH, inner @ V.mH).result, A_spec)


linalg_eig.vjp(A=_eig_back)


@operator(
    square("linalg.eigvals", _values), promote=factored("linalg.eigvals"), result=_complex, public=False, method=False
)
def linalg_eigvals(A: Tensor) -> Tensor:
    """The eigenvalues alone, in no order, complex."""
    ...


def _eigvals_back(g: Tensor, A: Tensor) -> Tensor:
    V = linalg_eig(A).eigenvectors
    return uncast(linalg_solve_ex(V.mH, g.unsqueeze(-1) * V.mH).result, A)


linalg_eigvals.vjp(A=_eigvals_back)


@public(namespace="linalg")
@takes_tensors("linalg_eig")
def eig(input: Tensor, *, out: Any = None) -> Eigen:
    """``(eigenvalues, eigenvectors)`` of square matrices (…, n, n), complex, in no particular order.

    ``LinAlgError`` for matrices that are not finite.
    """
    return delivered("linalg.eig", linalg_eig(input), out)


@public(namespace="linalg")
@takes_tensors("linalg_eigvals")
def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of square matrices (…, n, n), complex, in no particular order."""
    check_square("linalg.eigvals", shape_of(input))
    return delivered("linalg.eigvals", linalg_eigvals(input), out)

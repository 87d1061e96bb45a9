"""Eigenvalues and eigenvectors.

With A V = V diag(L) (Boeddeker and others, On the computation of complex-valued gradients, 2017):

    gA = V⁻ᴴ [ diag(gL) + (Vᴴ gV - VᴴV diag(Re Vᴴ gV)) / conj(E) ] Vᴴ,        E_ij = l_j - l_i, 1 on the diagonal,

and for Hermitian A, where V⁻¹ = Vᴴ,  gA = V [ diag(gL) + (Vᴴ gV) / E ] Vᴴ. Forward, dL = diag(V⁻¹ dA V) and
dV = V [ V⁻¹ dA V / E ], 0 on the diagonal, less the component that changes the length of an eigenvector. Eigenvectors
are determined up to a phase: a loss that depends on it has no derivative, and its gradient raises RuntimeError.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.conversion.dtype_and_device import uncast
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg.rules import check_square, floating, matrix, square, vector
from candelabra._operators.linalg.solvers import linalg_solve_ex
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def _complex(d: dtype) -> dtype:
    return d.to_complex()


class Eigen(NamedTuple):
    """The eigenvalues, and the eigenvectors as columns, of length 1."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _check_phase(name: str, projected: Tensor) -> None:
    """Raise ``RuntimeError`` for a loss that depends on the phase of eigenvectors; ``projected`` is Vᴴ gV."""
    if projected.is_complex():
        raise_if_nonzero(
            (projected.detach().diagonal(0, -2, -1).imag.abs() > 1e-2).any(),
            f"{name}: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The "
            "specified loss function depends on this quantity, so it is ill-defined.",
            RuntimeError,
        )


# -- Hermitian matrices -----------------------------------------------------------------------------------------------
def _check_triangle(UPLO: str) -> None:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")


@by
def _eigh_shapes(input: Tensor, UPLO: str) -> tuple[Ints, Ints]:
    _check_triangle(UPLO)
    shape = shape_of(input)
    check_square("linalg.eigh", shape)
    return shape[:-1], shape


@by
def _eigvalsh_shape(input: Tensor, UPLO: str) -> Ints:
    shapes: tuple[Ints, Ints] = _eigh_shapes(None, (input, UPLO))
    return shapes[0]


@operator(
    _eigh_shapes,
    promote=floating("linalg.eigh"),
    result=(real_part, same),
    public=False,
    out=True,
    autocast=Autocast(host="float32"),
)
def linalg_eigh(input: Tensor, UPLO: str = "L") -> Eigen:
    """Return ``(eigenvalues, eigenvectors)`` of Hermitian matrices (…, n, n), eigenvalues real and ascending.

    The lower (``"L"``) or upper (``"U"``) triangle is read.
    """
    ...


def _eigh_back(
    eigenvalues: Tensor,
    eigenvectors: Tensor,
    g_eigenvalues: Tensor | None = None,
    g_eigenvectors: Tensor | None = None,
) -> Tensor:
    L, V = eigenvalues, eigenvectors
    if g_eigenvectors is None:
        assert g_eigenvalues is not None  # at least one of the two gradients exists
        return (V * g_eigenvalues.unsqueeze(-2)) @ V.mH
    projected = V.mH @ g_eigenvectors
    _check_phase("linalg_eigh_backward", projected)
    one = new_eye(L, L.shape[-1], L.shape[-1])
    inner = projected * (1 - one) / (L.unsqueeze(-2) - L.unsqueeze(-1) + one)
    if g_eigenvalues is not None:
        inner = inner + g_eigenvalues.diag_embed()
    return V @ inner @ V.mH


linalg_eigh.vjp(input=_eigh_back)


def _eigh_along(t_input: Tensor, eigenvalues: Tensor, eigenvectors: Tensor) -> tuple[Tensor, Any]:
    L, V = eigenvalues, eigenvectors
    inner = V.mH @ t_input @ V

    def to_vectors() -> Tensor:
        one = new_eye(L, L.shape[-1], L.shape[-1])
        return V @ (inner * (1 - one) / (L.unsqueeze(-2) - L.unsqueeze(-1) + one))

    return inner.diagonal(0, -2, -1).real, to_vectors


linalg_eigh.jvp(_eigh_along)


@operator(_eigh_shapes, promote=floating("linalg.eigh"), result=(real_part, same), public=False, out=True)
def linalg_eigh_triangle(input: Tensor, UPLO: str) -> Eigen:
    """Raise ``RuntimeError`` for another ``UPLO``."""
    _check_triangle(UPLO)
    return linalg_eigh(input, UPLO.upper())


eigh = overloads("linalg_eigh", (linalg_eigh, "input"), linalg_eigh_triangle, namespace="linalg")


@operator(
    _eigvalsh_shape, promote=floating("linalg.eigh"), result=real_part, public=False, autocast=Autocast(host="float32")
)
def linalg_eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices (…, n, n), real and ascending; see
    :func:`candelabra.linalg.eigh`.
    """
    ...


def _eigvalsh_back(g: Tensor, input: Tensor, UPLO: str) -> Tensor:
    V = linalg_eigh(input, UPLO).eigenvectors
    return (V * g.unsqueeze(-2)) @ V.mH


linalg_eigvalsh.vjp(input=_eigvalsh_back)


def _eigvalsh_along(t_input: Tensor, input: Tensor, UPLO: str) -> tuple[Tensor, Tensor]:
    L, V = linalg_eigh(input, UPLO)
    return L, (V.conj() * (t_input @ V)).sum(-2).real


linalg_eigvalsh.jvp(_eigvalsh_along, joint=True)


@operator(_eigvalsh_shape, promote=floating("linalg.eigh"), result=real_part, public=False)
def linalg_eigvalsh_triangle(input: Tensor, UPLO: str) -> Tensor:
    """Raise ``RuntimeError`` for another ``UPLO``."""
    _check_triangle(UPLO)
    return linalg_eigvalsh(input, UPLO.upper())


eigvalsh = overloads("linalg_eigvalsh", (linalg_eigvalsh, "input"), linalg_eigvalsh_triangle, namespace="linalg")


# -- any square matrices ----------------------------------------------------------------------------------------------
@operator(
    square("linalg.eig", vector, matrix),
    promote=floating("linalg.eig"),
    result=(_complex, _complex),
    namespace="linalg",
    out=True,
    autocast=Autocast(host="float32"),
)
def linalg_eig(input: Tensor) -> Eigen:
    """Return ``(eigenvalues, eigenvectors)`` of square matrices (…, n, n), complex, in no particular order.

    Raises ``LinAlgError`` for matrices that are not finite.
    """
    ...


def _eig_back(
    input_spec: Any,
    eigenvalues: Tensor,
    eigenvectors: Tensor,
    g_eigenvalues: Tensor | None = None,
    g_eigenvectors: Tensor | None = None,
) -> Tensor:
    L, V = eigenvalues, eigenvectors
    if g_eigenvectors is None:
        assert g_eigenvalues is not None  # at least one of the two gradients exists
        inner = g_eigenvalues.diag_embed()
    else:
        projected = V.mH @ g_eigenvectors
        _check_phase("linalg_eig_backward", projected)
        one = new_eye(L, L.shape[-1], L.shape[-1])
        scale = projected.diagonal(0, -2, -1).real.unsqueeze(-2)
        # For equal eigenvalues the quotient is infinite; on the diagonal, gL replaces it.
        inner = (projected - V.mH @ (V * scale)) * (1 - one) / (L.unsqueeze(-2) - L.unsqueeze(-1) + one).conj()
        if g_eigenvalues is not None:
            inner = inner + g_eigenvalues.diag_embed()
    return uncast(linalg_solve_ex(V.mH, inner @ V.mH).result, input_spec)


linalg_eig.vjp(input=_eig_back)


def _eig_along(t_input: Tensor, eigenvalues: Tensor, eigenvectors: Tensor) -> tuple[Tensor, Any]:
    L, V = eigenvalues, eigenvectors
    inner = linalg_solve_ex(V, t_input.to(V.dtype) @ V).result

    def to_vectors() -> Tensor:
        one = new_eye(L, L.shape[-1], L.shape[-1])
        along = V @ (inner * (1 - one) / (L.unsqueeze(-2) - L.unsqueeze(-1) + one))
        return along - V * (V.conj() * along).sum(-2, True).real  # the length remains 1

    return inner.diagonal(0, -2, -1), to_vectors


linalg_eig.jvp(_eig_along)


@operator(
    square("linalg.eigvals", vector),
    promote=floating("linalg.eigvals"),
    result=_complex,
    namespace="linalg",
    autocast=Autocast(host="float32"),
)
def linalg_eigvals(input: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices (…, n, n), complex, in no particular order."""
    ...


def _eigvals_back(g: Tensor, input: Tensor) -> Tensor:
    V = linalg_eig(input).eigenvectors
    return uncast(linalg_solve_ex(V.mH, g.unsqueeze(-1) * V.mH).result, input)


linalg_eigvals.vjp(input=_eigvals_back)


def _eigvals_along(t_input: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    L, V = linalg_eig(input)
    return L, linalg_solve_ex(V, t_input.to(V.dtype) @ V).result.diagonal(0, -2, -1)


linalg_eigvals.jvp(_eigvals_along, joint=True)
